#include "scheduling/plugins/taint_toleration/plugin.h"

#include <algorithm>

#include "cluster/selectors.h"

namespace nos::scheduling {

namespace {

// True if the pod does not tolerate a NoSchedule or NoExecute taint of the node.
bool KeepsAway(const cluster::Node& node, const cluster::Pod& pod) {
  return std::ranges::any_of(node.taints, [&](const cluster::Taint& taint) {
    const bool strict = taint.effect == "NoSchedule" || taint.effect == "NoExecute";
    return strict && !cluster::Tolerates(pod.tolerations, taint);
  });
}

}  // namespace

bool TaintToleration::MayHelp(const ClusterEvent& event, const cluster::Pod& pod) const {
  const bool node_event = event.kind == ClusterEvent::Kind::kNodeAdded ||
                          event.kind == ClusterEvent::Kind::kNodeChanged;
  return node_event && !KeepsAway(*event.node, pod) &&
         (event.node_before == nullptr || KeepsAway(*event.node_before, pod));
}

Verdict TaintToleration::Filter(const CycleState&, const cluster::Pod& pod,
                                const cluster::NodeInfo& node) const {
  if (!KeepsAway(*node.node, pod)) return Verdict::Fits();
  return Verdict::Unresolvable(codes::kTainted, "node(s) had untolerated taint(s)");
}

int64_t TaintToleration::Score(const CycleState&, const cluster::Pod& pod,
                               const cluster::NodeInfo& node) const {
  const auto& taints = node.node->taints;
  return std::count_if(taints.begin(), taints.end(), [&](const cluster::Taint& taint) {
    return taint.effect == "PreferNoSchedule" && !cluster::Tolerates(pod.tolerations, taint);
  });
}

}  // namespace nos::scheduling
