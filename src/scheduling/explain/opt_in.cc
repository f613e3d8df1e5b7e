// How a node whose GPUs nos does not partition comes to provide slices.
#include <fmt/core.h>

#include <algorithm>

#include "base/text.h"
#include "cluster/annotations.h"
#include "cluster/device_interface.h"
#include "gpu/shares.h"
#include "scheduling/packing/view.h"
#include "scheduling/remedies.h"
#include "scheduling/slice_reasons.h"

namespace nos::scheduling {
namespace {

std::optional<int64_t> NumberAt(std::string_view label, const cluster::Node& node) {
  const auto found = node.meta.labels.find(label);
  return found == node.meta.labels.end() ? std::nullopt : ParseInt(found->second);
}

int64_t WholeGpus(const cluster::ResourceVector& requests) {
  return requests.Get(packing::WholeGpuResource());
}

}  // namespace

std::optional<Remedy> SliceDemand::OptIn(const cluster::NodeInfo& info,
                                         const cluster::Pod& pod) const {
  const cluster::Node& node = *info.node;
  const auto product = node.meta.labels.find(cluster::kProductLabel);
  if (slices_.empty() || product == node.meta.labels.end()) return std::nullopt;
  if (cluster::ServesClaims(node)) return std::nullopt;
  // A node with this label offers no whole GPUs, except where its agent is of hybrid mode.
  const bool asks_whole = WholeGpus(cluster::RequestsOf(pod)) > 0;
  const std::string_view unserved = UnreportedSharingMode(node);
  const bool shares = HasShares();
  const auto mib = NumberAt(cluster::kMemoryLabel, node);
  if (!unserved.empty()) {
    const bool too_large =
        mib && std::ranges::any_of(slices_, [&](const auto& slice) {
          return gpu::IsShareResource(slice.first) &&
                 (gpu::SharesOfMemory(*mib) == nullptr ||
                  !CanBePartitionedInto(*gpu::SharesOfMemory(*mib), slice.first));
        });
    return too_large ? std::nullopt : InspectAgent(node, unserved);
  }
  const gpu::Model* model = !shares ? catalogue_.FindByProduct(product->second)
                            : mib   ? gpu::SharesOfMemory(*mib)
                                    : nullptr;
  if (model == nullptr || !Suits(*model) || asks_whole) return std::nullopt;
  const int64_t gpus = NumberAt(cluster::kCountLabel, node).value_or(1);
  if (GpusFor(*model) > gpus - WholeGpus(info.requested)) return std::nullopt;
  std::string text =
      fmt::format("opt node {} in to partitioning (label {}={}): it has GPUs {}", node.meta.name,
                  cluster::kPartitioningLabel, shares ? "mps" : "mig", product->second);
  if (!NumberAt(cluster::kCountLabel, node)) {
    text += fmt::format("; label {} is missing too: inspect GPU feature discovery there",
                        cluster::kCountLabel);
  }
  return Remedy{remedies::kOptInNode, std::move(text)};
}

// The node is opted in to partitioning, but its agent does not provide the slices (yet).
std::optional<Remedy> SliceDemand::InspectAgent(const cluster::Node& node,
                                                std::string_view mode) const {
  const gpu::Model* board =
      catalogue_.FindByProduct(node.meta.labels.find(cluster::kProductLabel)->second);
  const bool serves = std::ranges::all_of(slices_, [&](const auto& slice) {
    const std::string& name = slice.first;
    if (gpu::IsShareResource(name)) return true;
    if (mode != "hybrid") return false;
    return IsOfHybridNodes(name) || (board != nullptr && CanBePartitionedInto(*board, name));
  });
  if (!serves) return std::nullopt;
  return Remedy{remedies::kInspectAgent,
                fmt::format("inspect the agent of node {}: with label {}={} it has to run with its "
                            "own device plugin and MPS",
                            node.meta.name, cluster::kPartitioningLabel, mode)};
}

}  // namespace nos::scheduling
