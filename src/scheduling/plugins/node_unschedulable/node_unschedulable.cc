#include "scheduling/plugins/node_unschedulable/node_unschedulable.h"

#include "cluster/selectors.h"

namespace nos::scheduling {

Verdict NodeUnschedulable::Filter(const CycleState&, const cluster::Pod& pod,
                                  const cluster::NodeInfo& node) const {
  if (!node.node->unschedulable) return Verdict::Fits();
  const cluster::Taint cordon{"node.kubernetes.io/unschedulable", "", "NoSchedule"};
  if (cluster::Tolerates(pod.tolerations, cordon)) return Verdict::Fits();
  return Verdict::Unresolvable("NodeUnschedulable", "node(s) were unschedulable");
}

}  // namespace nos::scheduling
