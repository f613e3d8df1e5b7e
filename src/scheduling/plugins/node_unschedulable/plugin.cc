#include "scheduling/plugins/node_unschedulable/plugin.h"

#include "cluster/selectors.h"

namespace nos::scheduling {

bool NodeUnschedulable::MayHelp(const ClusterEvent& event, const cluster::Pod&) const {
  const bool node_event = event.kind == ClusterEvent::Kind::kNodeAdded ||
                          event.kind == ClusterEvent::Kind::kNodeChanged;
  return node_event && !event.node->unschedulable &&
         (event.node_before == nullptr || event.node_before->unschedulable);
}

Verdict NodeUnschedulable::Filter(const CycleState&, const cluster::Pod& pod,
                                  const cluster::NodeInfo& node) const {
  if (!node.node->unschedulable) return Verdict::Fits();
  const cluster::Taint cordon{"node.kubernetes.io/unschedulable", "", "NoSchedule"};
  if (cluster::Tolerates(pod.tolerations, cordon)) return Verdict::Fits();
  return Verdict::Unresolvable(codes::kNodeUnschedulable, "node(s) were unschedulable");
}

}  // namespace nos::scheduling
