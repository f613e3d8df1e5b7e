#include "scheduling/plugins/scheduling_gates/plugin.h"

namespace nos::scheduling {

Verdict SchedulingGates::PreEnqueue(const cluster::Pod& pod) const {
  if (pod.scheduling_gates.empty()) return Verdict::Fits();
  return Verdict::Unresolvable(SchedulingGated(pod));
}

}  // namespace nos::scheduling
