// Node selection and tolerations of pods, and label selectors.
//
// Semantics: k8s.io/component-helpers scheduling/corev1 (node selectors, tolerations) and
// apimachinery labels (label selectors). Values that the API server would reject (an unknown
// operator, In without values, Gt without exactly one integer...) match nothing.
//
// Pure functions of values; may be called from any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cluster/objects.h"

namespace nos::cluster {

// True if the labels meet the requirement. NotIn and DoesNotExist hold for an absent key; Gt and Lt
// need a label with an integer.
bool Matches(const SelectorRequirement& requirement, const StringMap& labels);

// All expressions and fields must hold. A term with neither matches no node.
bool Matches(const NodeSelectorTerm& term, const Node& node);
// True if any term matches: the terms are alternatives. An empty list matches no node.
bool MatchesAny(const std::vector<NodeSelectorTerm>& terms, const Node& node);
// True if the pod's node selector and required node affinity match.
bool SelectsNode(const Pod& pod, const Node& node);

// An empty selector selects everything.
bool Matches(const LabelSelector& selector, const StringMap& labels);
// Parses the syntax of kubectl's -l: "app=web,tier!=db,env in (a,b),!legacy,gpu,cores>4". Error:
// kInvalid with the faulty part.
Result<LabelSelector> ParseLabelSelector(std::string_view text);

// An empty effect tolerates every effect; an empty key with Exists tolerates every taint.
bool Tolerates(const Toleration& toleration, const Taint& taint);
bool Tolerates(const std::vector<Toleration>& tolerations, const Taint& taint);

}  // namespace nos::cluster
