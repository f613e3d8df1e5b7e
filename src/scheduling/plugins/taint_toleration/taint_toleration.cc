#include "scheduling/plugins/taint_toleration/taint_toleration.h"

#include <fmt/core.h>

#include <algorithm>

#include "cluster/selectors.h"

namespace nos::scheduling {

Verdict TaintToleration::Filter(const CycleState&, const cluster::Pod& pod,
                                const cluster::NodeInfo& node) const {
  for (const cluster::Taint& taint : node.node->taints) {
    const bool strict = taint.effect == "NoSchedule" || taint.effect == "NoExecute";
    if (!strict || cluster::Tolerates(pod.tolerations, taint)) continue;
    return Verdict::Unresolvable(
        "Tainted", fmt::format("node(s) had untolerated taint {{{}: {}}}", taint.key, taint.value));
  }
  return Verdict::Fits();
}

int64_t TaintToleration::Score(const CycleState&, const cluster::Pod& pod,
                               const cluster::NodeInfo& node) const {
  const auto& taints = node.node->taints;
  return std::count_if(taints.begin(), taints.end(), [&](const cluster::Taint& taint) {
    return taint.effect == "PreferNoSchedule" && !cluster::Tolerates(pod.tolerations, taint);
  });
}

}  // namespace nos::scheduling
