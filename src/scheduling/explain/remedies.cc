#include "scheduling/remedies.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "scheduling/pod_state.h"

namespace nos::scheduling {
namespace {

// Above every machine on offer: the largest of AWS, u7inh-32tb, has 1,920 processors and 32 TiB
// (aws.amazon.com/ec2/instance-types).
struct Limit {
  std::string_view resource;
  int64_t most;
};
constexpr std::array kLimits = {Limit{"cpu", int64_t{4096} * int64_t{1000}},
                                Limit{"memory", int64_t{64} << 40},
                                Limit{"nvidia.com/gpu", kMaxGpusOfNode}};

}  // namespace

Remedy LiftGates(const cluster::Pod& pod) {
  return {remedies::kLiftGate,
          "wait until the component that set its scheduling gates removes them: " +
              Join(pod.scheduling_gates, ", ")};
}

std::string GatedText(const cluster::Pod& pod) {
  return fmt::format("{}.{}{}.", SchedulingGated(pod).message, kRemedySeparator,
                     LiftGates(pod).text);
}

Remedy CompleteGang(const std::string& why) {
  return {remedies::kCompleteGang, "complete its group: " + why};
}

Remedy WaitForPods(const std::string& pods, const std::string& node) {
  return {remedies::kWaitForPods, fmt::format("wait for the end of {} on node {}", pods, node)};
}

Remedy FreeResources(const std::vector<std::string>& amounts, const std::string& node) {
  return {remedies::kFreeResources,
          fmt::format("free {} on node {}", Join(amounts, " and "), node)};
}

int64_t HeldByTiedPods(const cluster::NodeInfo& node, cluster::ResourceId resource) {
  int64_t held = 0;
  for (const auto& pod : node.pods) {
    if (IsTiedToNode(*pod)) held += cluster::RequestsOf(*pod).Get(resource);
  }
  return held;
}

std::optional<Remedy> RequestLess(const std::string& resource, int64_t asked) {
  const auto limit = std::ranges::find(kLimits, resource, &Limit::resource);
  if (limit == kLimits.end() || asked <= limit->most) return std::nullopt;
  return Remedy{remedies::kRequestLess, fmt::format("request less {}: no known machine has {}",
                                                    resource, AmountText(resource, asked))};
}

}  // namespace nos::scheduling
