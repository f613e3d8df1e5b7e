#include "scheduling/plugins/inter_pod_affinity/repellers.h"

#include <algorithm>

#include "scheduling/plugins/inter_pod_affinity/terms.h"

namespace nos::scheduling {

using cluster::Pod;
using cluster::PodAffinityTerm;

void Repellers::Add(const std::shared_ptr<const Pod>& pod) {
  for (const PodAffinityTerm& term : pod->pod_anti_affinity.required) {
    if (!term.selector) continue;  // selects no pod
    const auto& labels = term.selector->match_labels;
    const auto& expressions = term.selector->match_expressions;
    const auto in = std::ranges::find(expressions, "In", &cluster::SelectorRequirement::op);
    if (!labels.empty()) {
      AddOnce({pod, &term}, by_label_[labels.begin()->first][labels.begin()->second]);
    } else if (in != expressions.end()) {
      for (const std::string& value : in->values) AddOnce({pod, &term}, by_label_[in->key][value]);
    } else {
      AddOnce({pod, &term}, others_);
    }
  }
}

// Pods of one owner have equal terms, which are stored once.
void Repellers::AddOnce(Term term, Terms& to) {
  const bool known = std::ranges::any_of(to, [&](const Term& other) {
    return other.owner->meta.ns == term.owner->meta.ns && *other.term == *term.term;
  });
  if (!known) to.push_back(std::move(term));
}

bool Repellers::AnyMeans(const Terms& terms, const Pod& pod) const {
  if (terms.empty()) return false;
  const cluster::StringMap& labels = NamespaceLabels(context_, pod.meta.ns);
  return std::ranges::any_of(
      terms, [&](const Term& t) { return Selects(*t.term, *t.owner, pod, labels); });
}

bool Repellers::Repel(const Pod& pod) const {
  if (AnyMeans(others_, pod)) return true;
  if (by_label_.empty()) return false;
  return std::ranges::any_of(pod.meta.labels, [&](const auto& label) {
    const auto values = by_label_.find(label.first);
    if (values == by_label_.end()) return false;
    const auto terms = values->second.find(label.second);
    return terms != values->second.end() && AnyMeans(terms->second, pod);
  });
}

}  // namespace nos::scheduling
