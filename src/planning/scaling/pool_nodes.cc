#include "planning/pool_nodes.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "cluster/annotations.h"
#include "cluster/node_template.h"
#include "cluster/resources.h"
#include "gpu/modes.h"
#include "gpu/product.h"
#include "gpu/shares.h"

namespace nos::planning {
namespace {

using cluster::NodePool;
using cluster::SharingMode;

Status Wrong(const NodePool& pool, std::string_view field, std::string_view what) {
  return Invalid(fmt::format("NodePool {}: spec.gpu.{}: {}", pool.meta.name, field, what));
}

// Null if it is not in the catalogue, which only matters if GPUs are partitioned.
const gpu::Model* ModelOf(const NodePool& pool, const gpu::Catalogue& catalogue) {
  return pool.gpu.model.empty() ? catalogue.FindByProduct(pool.gpu.product)
                                : catalogue.FindByName(pool.gpu.model);
}

int64_t MebibytesOf(const NodePool& pool, const gpu::Model* model) {
  const int64_t specified = pool.gpu.memory.Value() >> 20;
  if (specified > 0) return specified;
  return model == nullptr ? 0 : int64_t{model->memory_gib()} * 1024;
}

std::string WhyUnknown(const NodePool& pool, const gpu::Catalogue& catalogue) {
  if (!pool.gpu.product.empty()) return catalogue.WhyUnknown(pool.gpu.product);
  return fmt::format(
      "'{}' is not in the catalogue: add it to the catalogue file (docs/catalogue.md)",
      pool.gpu.model);
}

// The models that the agent will report for one GPU.
struct ReportedModels {
  std::string model, other_model;
};

// The state after the agent has started: on Ampere GPUs MIG mode only changes with a GPU reset, so
// it stays off.
ReportedModels HybridGpu(const NodePool& pool, const gpu::Model* model, int64_t mib) {
  const bool stays_off = model != nullptr && model->architecture() == "Ampere";
  gpu::SharingModes modes{stays_off ? nullptr : model,
                          static_cast<int>(std::clamp<int64_t>(mib / 1024, 1, gpu::kMaxModesGib)),
                          true};
  // The agent places time slices at the starts that they have in MIG mode.
  if (stays_off && model->slots() < gpu::kPlainSlots) modes.slots = model->slots();
  modes.time_slices = std::min<int>(pool.gpu.time_slices, gpu::MostTimeSlices(modes));
  const gpu::Model* shares = gpu::SharesOfMemory(mib);
  return {gpu::NameOf(modes), shares == nullptr ? "" : shares->name()};
}

Result<ReportedModels> GpuOf(const NodePool& pool, const gpu::Catalogue& catalogue) {
  const gpu::Model* model = ModelOf(pool, catalogue);
  const std::string_view named = pool.gpu.model.empty() ? "product" : "model";
  if (pool.gpu.partitioning == SharingMode::kMig) {
    if (model == nullptr) return Wrong(pool, named, WhyUnknown(pool, catalogue));
    return ReportedModels{};  // the product label determines the model
  }
  const int64_t mib = MebibytesOf(pool, model);
  if (mib <= 0) {
    return Wrong(pool, "memory",
                 fmt::format("is missing, for the catalogue does not know '{}': "
                             "say how much memory one GPU has",
                             pool.gpu.model.empty() ? pool.gpu.product : pool.gpu.model));
  }
  if (pool.gpu.partitioning == SharingMode::kHybrid) return HybridGpu(pool, model, mib);
  const gpu::Model* shares = gpu::SharesOfMemory(mib);
  if (shares == nullptr) return Wrong(pool, "memory", "is too little to be shared");
  return ReportedModels{shares->name(), ""};
}

void SetLabels(const NodePool& pool, const gpu::Catalogue& catalogue, cluster::Node& node) {
  cluster::StringMap& labels = node.meta.labels;
  labels = pool.labels;
  labels["kubernetes.io/hostname"] = node.meta.name;
  labels.try_emplace("kubernetes.io/os", "linux");
  const std::string& product = pool.gpu.product.empty() ? pool.gpu.model : pool.gpu.product;
  labels.try_emplace("kubernetes.io/arch", gpu::ArchitectureOfHost(product));
  if (pool.gpu.count == 0) return;
  if (!product.empty()) labels.try_emplace(std::string(cluster::kProductLabel), product);
  labels[std::string(cluster::kCountLabel)] = std::to_string(pool.gpu.count);
  const int64_t mib = MebibytesOf(pool, ModelOf(pool, catalogue));
  if (mib > 0) labels.try_emplace(std::string(cluster::kMemoryLabel), std::to_string(mib));
  if (pool.gpu.partitioning == SharingMode::kNone) return;
  labels[std::string(cluster::kPartitioningLabel)] = cluster::NameOf(pool.gpu.partitioning);
}

Status SetGpus(const NodePool& pool, const gpu::Catalogue& catalogue, cluster::Node& node) {
  NOS_ASSIGN(const ReportedModels models, GpuOf(pool, catalogue));
  const bool hybrid = pool.gpu.partitioning == SharingMode::kHybrid;
  for (int i = 0; i < pool.gpu.count; ++i) {
    const auto set = [&](std::string_view what, std::string value) {
      node.meta.annotations[fmt::format("{}{}-{}", cluster::kPrefix, what, i)] = std::move(value);
    };
    set("status-layout", "");
    if (!models.model.empty()) set("status-model", models.model);
    if (hybrid) set("status-other-model", models.other_model);
  }
  const cluster::NodeGpus gpus = cluster::ReadNodeGpus(node, catalogue);
  if (static_cast<int>(gpus.gpus.size()) == pool.gpu.count) return Status::Ok();
  return Wrong(pool, "partitioning",
               gpus.problems.empty() ? fmt::format("these GPUs cannot be divided by {}",
                                                   cluster::NameOf(pool.gpu.partitioning))
                                     : gpus.problems.front());
}

}  // namespace

std::string NewNodeName(std::string_view pool, int number) {
  return fmt::format("{}/new-{}", pool, number);
}

Result<std::shared_ptr<const cluster::Node>> NewNodeOf(const NodePool& pool, int number,
                                                       const gpu::Catalogue& catalogue) {
  if (!cluster::IsDescribed(pool)) {
    return Invalid(fmt::format("NodePool {}: {}", pool.meta.name, cluster::WhyNotDescribed()));
  }
  auto node = std::make_shared<cluster::Node>();
  node->meta.name = NewNodeName(pool.meta.name, number);
  SetLabels(pool, catalogue, *node);
  node->taints = pool.taints;
  node->allocatable = pool.resources;
  node->conditions = {{"Ready", "True", "", "", {}}};
  if (pool.gpu.count > 0 && pool.gpu.partitioning == SharingMode::kNone) {
    node->allocatable[std::string(cluster::kWholeGpuResource)] =
        Quantity::FromValue(pool.gpu.count);
  } else if (pool.gpu.count > 0) {
    NOS_RETURN_IF_ERROR(SetGpus(pool, catalogue, *node));
  }
  node->capacity = node->allocatable;
  return std::shared_ptr<const cluster::Node>(std::move(node));
}

int PoolOf(const cluster::Node& node, std::span<const std::shared_ptr<const NodePool>> pools) {
  const auto found =
      std::ranges::find_if(pools, [&](const auto& pool) { return cluster::IsOf(*pool, node); });
  return found == pools.end() ? -1 : static_cast<int>(found - pools.begin());
}

std::vector<int> CountNodes(const cluster::ClusterSnapshot& snapshot,
                            std::span<const std::shared_ptr<const NodePool>> pools) {
  std::vector<int> counts(pools.size());
  for (size_t n = 0; n < snapshot.size(); ++n) {
    const int pool = PoolOf(*snapshot.node(n).node, pools);
    if (pool >= 0) ++counts[pool];
  }
  return counts;
}

}  // namespace nos::planning
