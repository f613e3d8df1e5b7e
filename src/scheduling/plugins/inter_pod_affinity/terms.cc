#include "scheduling/plugins/inter_pod_affinity/terms.h"

#include <algorithm>

#include "cluster/selectors.h"

namespace nos::scheduling {
namespace {

using cluster::Pod;
using cluster::PodAffinityTerm;

bool IsEverything(const cluster::LabelSelector& selector) {
  return selector.match_labels.empty() && selector.match_expressions.empty();
}

bool Picks(const std::optional<cluster::LabelSelector>& selector, const Pod& pod) {
  return selector && cluster::Matches(*selector, pod.meta.labels);
}

// Ignores the namespace selector.
bool NamesNamespace(const PodAffinityTerm& term, const Pod& owner, std::string_view ns) {
  if (term.namespaces.empty()) return !term.namespace_selector && owner.meta.ns == ns;
  return std::ranges::find(term.namespaces, ns) != term.namespaces.end();
}

}  // namespace

TermMatcher::TermMatcher(const PodAffinityTerm& term, const Pod& owner,
                         const cluster::ClusterContext& context)
    : key_(term.topology_key), selector_(term.selector), namespaces_(term.namespaces) {
  if (!term.namespace_selector) {
    if (namespaces_.empty()) namespaces_.push_back(owner.meta.ns);
  } else if (IsEverything(*term.namespace_selector)) {
    every_namespace_ = true;
  } else {
    for (const auto& [name, ns] : context.namespaces.rows()) {
      if (cluster::Matches(*term.namespace_selector, ns->meta.labels)) namespaces_.push_back(name);
    }
  }
  std::ranges::sort(namespaces_);
}

bool TermMatcher::Matches(const Pod& other) const {
  return (every_namespace_ || std::ranges::binary_search(namespaces_, other.meta.ns)) &&
         Picks(selector_, other);
}

bool IsAttractedBy(const Pod& pod, const Pod& other, const cluster::ClusterContext& context) {
  const auto& terms = pod.pod_affinity.required;
  return !terms.empty() && std::ranges::all_of(terms, [&](const PodAffinityTerm& term) {
    return TermMatcher(term, pod, context).Matches(other);
  });
}

const cluster::StringMap& NamespaceLabels(const cluster::ClusterContext& context,
                                          std::string_view ns) {
  static const cluster::StringMap kNone;
  const cluster::Namespace* found = context.namespaces.Find(ns);
  return found == nullptr ? kNone : found->meta.labels;
}

bool Selects(const PodAffinityTerm& term, const Pod& owner, const Pod& pod,
             const cluster::StringMap& namespace_labels) {
  const bool there =
      NamesNamespace(term, owner, pod.meta.ns) ||
      (term.namespace_selector && cluster::Matches(*term.namespace_selector, namespace_labels));
  return there && Picks(term.selector, pod);
}

bool MaySelect(const PodAffinityTerm& term, const Pod& owner, const Pod& pod) {
  return (term.namespace_selector || NamesNamespace(term, owner, pod.meta.ns)) &&
         Picks(term.selector, pod);
}

}  // namespace nos::scheduling
