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

int64_t LastinglyHeld(const cluster::NodeInfo& node, cluster::ResourceId resource) {
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

Remedy AddLargerNode(const std::vector<TooMuch>& lacks, const std::string& nearest) {
  std::vector<std::string> asked, totals;
  bool kept = false, beside_mig = false;
  for (const TooMuch& lack : lacks) {
    if (auto less = RequestLess(lack.resource, lack.asked)) return *std::move(less);
    asked.push_back(AmountText(lack.resource, lack.asked));
    totals.push_back(AmountText(lack.resource, lack.total));
    kept = kept || lack.kept;
    beside_mig = beside_mig || lack.beside_mig;
  }
  return {remedies::kAddNode,
          fmt::format("add a node with at least {}: node {}, the nearest, has {} {}",
                      Join(asked, " and "), nearest, Join(totals, " and "),
                      kept         ? "beside its DaemonSet and static pods"
                      : beside_mig ? "beside GPUs that may be partitioned for MIG"
                                   : "in all")};
}

}  // namespace nos::scheduling
