#include "scheduling/slice_reasons.h"

#include <fmt/core.h>

#include "gpu/product.h"
#include "scheduling/remedies.h"

namespace nos::scheduling {

std::string_view UnreportedSharingMode(const cluster::Node& node) {
  if (cluster::IsManaged(node)) return "";
  const std::string_view chosen = cluster::RequestedSharingMode(node);
  return chosen == "mps" ? "mps" : chosen == "hybrid" ? "hybrid" : "";
}

Reason NotPartitioned(const cluster::Node& node) {
  const std::string_view mode = UnreportedSharingMode(node);
  if (mode.empty()) return {codes::kNotPartitioned, "node(s) were not opted in to partitioning"};
  return {codes::kNotPartitioned,
          fmt::format("node(s) have label {}={}, but no agent reports GPUs partitioned like that",
                      cluster::kPartitioningLabel, mode)};
}

Reason GpuProblem(const std::string& problem) {
  return {codes::kGpuProblem, "node(s) had no usable GPU: " + problem};
}

Reason NoGpuForProfile(const cluster::NodeGpus& gpus, const std::string& resource) {
  const std::string profile = ProfileText(resource);
  const auto reason = [](std::string message) {
    return Reason{codes::kNoGpuForProfile, std::move(message)};
  };
  for (const cluster::Gpu& gpu : gpus.gpus) {
    const std::string offered = OfferedAs(*gpu.model, resource);
    if (!offered.empty()) {
      return reason(fmt::format("node(s) offer profile {} as {}", profile, offered));
    }
    if (gpu.model->FindProfile(profile)) {
      return reason(fmt::format("node(s) had GPUs {} that the catalogue does not allow to hold {}",
                                gpu::ProductOf(gpu.model->name()), profile));
    }
  }
  return reason("node(s) had no GPU with profile " + profile);
}

Reason NoRoomForSlices(const std::string& slices, bool beside_used) {
  return {codes::kNoRoomForSlices, fmt::format("node(s) had no room for {}{}", slices,
                                               beside_used ? " beside the instances in use" : "")};
}

}  // namespace nos::scheduling
