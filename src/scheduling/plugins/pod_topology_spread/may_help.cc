// Queueing hints of PodTopologySpread.
#include <algorithm>

#include "cluster/selectors.h"
#include "scheduling/framework/domain_sums.h"
#include "scheduling/plugins/pod_topology_spread/constraints.h"
#include "scheduling/plugins/pod_topology_spread/plugin.h"

namespace nos::scheduling {
namespace {

using cluster::Node;
using cluster::Pod;
using cluster::TopologySpreadConstraint;

bool HasAllHardKeys(const std::vector<TopologySpreadConstraint>& constraints, const Node& node) {
  return std::ranges::all_of(constraints, [&](const TopologySpreadConstraint& c) {
    return c.when_unsatisfiable != kDoNotSchedule || LabelOf(node, c.topology_key) != nullptr;
  });
}

bool SameTaints(const Node& left, const Node& right) {
  return std::ranges::equal(left.taints, right.taints,
                            [](const cluster::Taint& a, const cluster::Taint& b) {
                              return a.key == b.key && a.value == b.value && a.effect == b.effect;
                            });
}

bool NodeChangeMayHelp(const std::vector<TopologySpreadConstraint>& constraints, const Pod& pod,
                       const Node& before, const Node& after) {
  const bool had = HasAllHardKeys(constraints, before), has = HasAllHardKeys(constraints, after);
  if (had != has || !has) return had != has;
  const bool moved = std::ranges::any_of(constraints, [&](const TopologySpreadConstraint& c) {
    return c.when_unsatisfiable == kDoNotSchedule &&
           *LabelOf(before, c.topology_key) != *LabelOf(after, c.topology_key);
  });
  return moved || !SameTaints(before, after) ||
         cluster::SelectsNode(pod, before) != cluster::SelectsNode(pod, after);
}

// `before` and `after` of another pod; null if it did not exist or no longer exists. A pod with
// default constraints may be spread together with any pod of its namespace.
bool PodMayHelp(const Pod& pod, const Pod* before, const Pod* after) {
  const Pod& other = after != nullptr ? *after : *before;
  if (other.meta.ns != pod.meta.ns) return false;
  if (pod.spread.empty()) return true;
  return std::ranges::any_of(OwnConstraintsOf(pod, kDoNotSchedule),
                             [&](const SpreadConstraint& constraint) {
                               const auto counts = [&](const Pod* p) {
                                 return p != nullptr && Counts(constraint, pod.meta.ns, *p);
                               };
                               return counts(before) != counts(after);
                             });
}

bool SelectsPods(std::string_view kind) {
  return kind == "Service" || kind == "ReplicationController" || kind == "ReplicaSet" ||
         kind == "StatefulSet";
}

}  // namespace

bool PodTopologySpread::MayHelp(const ClusterEvent& event, const Pod& pod) const {
  using enum ClusterEvent::Kind;
  const std::vector<TopologySpreadConstraint>& constraints =
      pod.spread.empty() ? defaults_ : pod.spread;
  switch (event.kind) {
    case kPodBound:
      return PodMayHelp(pod, nullptr, event.pod.get());
    case kPodLeft:
      return PodMayHelp(pod, event.pod_before.get(), nullptr);
    case kPodChanged:
      return PodMayHelp(pod, event.pod_before.get(), event.pod.get());
    case kNodeAdded:
      return HasAllHardKeys(constraints, *event.node);
    case kNodeChanged:
      return NodeChangeMayHelp(constraints, pod, *event.node_before, *event.node);
    case kNodeRemoved:
      return HasAllHardKeys(constraints, *event.node_before);
    case kContext:
      return pod.spread.empty() && SelectsPods(event.context_kind);
  }
  return true;
}

}  // namespace nos::scheduling
