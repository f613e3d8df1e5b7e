#include "scheduling/plugins/scheduling_gates/plugin.h"

#include <fmt/core.h>

#include "base/text.h"

namespace nos::scheduling {

Verdict SchedulingGates::PreEnqueue(const cluster::Pod& pod) const {
  if (pod.scheduling_gates.empty()) return Verdict::Fits();
  return Verdict::Unresolvable(
      "Gated", fmt::format("waiting for scheduling gates: [{}]", Join(pod.scheduling_gates, " ")));
}

}  // namespace nos::scheduling
