#include "scheduling/plugins/pod_topology_spread/constraints.h"

#include <algorithm>

#include "cluster/selectors.h"
#include "scheduling/framework/domain_sums.h"
#include "scheduling/plugins/pod_topology_spread/default_selector.h"

namespace nos::scheduling {
namespace {

using cluster::LabelSelector;
using cluster::Node;
using cluster::Pod;
using cluster::TopologySpreadConstraint;

bool IsEmpty(const LabelSelector& selector) {
  return selector.match_labels.empty() && selector.match_expressions.empty();
}

// The constraint's selector, restricted to pods with the pod's own values of matchLabelKeys.
std::optional<LabelSelector> SelectorOf(const TopologySpreadConstraint& constraint,
                                        const Pod& pod) {
  std::optional<LabelSelector> selector = constraint.selector;
  if (!selector) return selector;
  for (const std::string& key : constraint.match_label_keys) {
    const auto label = pod.meta.labels.find(key);
    if (label == pod.meta.labels.end()) continue;
    selector->match_expressions.push_back({key, "In", {label->second}});
  }
  return selector;
}

SpreadConstraint Compile(const TopologySpreadConstraint& from,
                         std::optional<LabelSelector> selector, const Pod& pod) {
  SpreadConstraint to;
  to.key = from.topology_key;
  to.max_skew = from.max_skew;
  to.min_domains = from.min_domains.value_or(1);
  to.honors_affinity = from.node_affinity_policy == "Honor";
  to.honors_taints = from.node_taints_policy == "Honor";
  to.counts_itself = selector && cluster::Matches(*selector, pod.meta.labels);
  to.selector = std::move(selector);
  return to;
}

bool ToleratesNode(const Pod& pod, const Node& node) {
  return std::ranges::all_of(node.taints, [&](const cluster::Taint& taint) {
    const bool strict = taint.effect == "NoSchedule" || taint.effect == "NoExecute";
    return !strict || cluster::Tolerates(pod.tolerations, taint);
  });
}

}  // namespace

std::vector<SpreadConstraint> OwnConstraintsOf(const Pod& pod, std::string_view action) {
  std::vector<SpreadConstraint> constraints;
  for (const TopologySpreadConstraint& from : pod.spread) {
    if (from.when_unsatisfiable != action) continue;
    constraints.push_back(Compile(from, SelectorOf(from, pod), pod));
  }
  return constraints;
}

std::vector<SpreadConstraint> ConstraintsOf(const Pod& pod, std::string_view action,
                                            std::span<const TopologySpreadConstraint> defaults,
                                            const cluster::ClusterContext& context) {
  if (!pod.spread.empty()) return OwnConstraintsOf(pod, action);
  std::vector<SpreadConstraint> constraints;
  std::optional<LabelSelector> selector;
  for (const TopologySpreadConstraint& from : defaults) {
    if (from.when_unsatisfiable != action) continue;
    if (!selector) selector = DefaultSelector(pod, context);
    if (IsEmpty(*selector)) return {};
    constraints.push_back(Compile(from, selector, pod));
  }
  return constraints;
}

bool HasAllKeys(std::span<const SpreadConstraint> constraints, const Node& node) {
  return std::ranges::all_of(
      constraints, [&](const SpreadConstraint& c) { return LabelOf(node, c.key) != nullptr; });
}

bool Includes(const SpreadConstraint& constraint, const Pod& pod, const Node& node,
              bool selects_node) {
  return (!constraint.honors_affinity || selects_node) &&
         (!constraint.honors_taints || ToleratesNode(pod, node));
}

bool Counts(const SpreadConstraint& constraint, std::string_view ns, const Pod& other) {
  return constraint.selector && !IsEmpty(*constraint.selector) && other.meta.ns == ns &&
         !other.meta.deleted && cluster::Matches(*constraint.selector, other.meta.labels);
}

}  // namespace nos::scheduling
