#include "scheduling/plugins/gpu_packing/plugin.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "gpu/shares.h"
#include "scheduling/packing/packer.h"
#include "scheduling/packing/view.h"
#include "scheduling/plugins/gpu_packing/instance_loss.h"

namespace nos::scheduling {
namespace {

constexpr double kSlotUnit = 1024;  // resolution of means of slots in an order value

// Per cluster. The internal caches grow with use, so each Precompute result has its own.
struct Precomputed {
  explicit Precomputed(const cluster::ClusterSnapshot& snapshot, Pods waiting)
      : view(snapshot), demand(view.DemandOf(snapshot, waiting)), value(demand) {}

  packing::View view;
  packing::Demand demand;
  packing::NodeValue value;
  const bool wants_gpus = demand.WantsGpus();
  InstanceLosses losses;
};

// Per pod.
struct Asked {
  std::shared_ptr<Precomputed> precomputed;
  packing::PodKind kind;
  std::vector<std::pair<cluster::ResourceId, int64_t>> instances, shares;
};

const Asked* AskedOf(const CycleState& state) { return state.Get<Asked>(); }

InstanceLoss LossOf(const Asked& asked, const cluster::NodeInfo& node) {
  InstanceLoss sum;
  for (const auto& [resource, count] : asked.instances) {
    const InstanceLoss loss = asked.precomputed->losses.Of(node, resource, count);
    sum.gpus += loss.gpus;
    sum.free_slots += loss.free_slots;
  }
  return sum;
}

int64_t WorthSteps(Precomputed& precomputed, const packing::PodKind& kind,
                   const packing::Node& node) {
  const double loss =
      precomputed.value.Worth(node) - precomputed.value.AfterPlacing(node, kind).worth;
  return packing::LossSteps(kind, node, loss);
}

// Sum of the losses of all shares, each computed independently. If the model of the node cannot
// place the share (for example on a GPU that must be repartitioned), its size counts as loss.
int64_t ShareSteps(const Asked& asked, const cluster::NodeInfo& info) {
  const packing::Node node = asked.precomputed->view.NodeOf(info);
  int64_t steps = 0;
  for (const auto& [resource, count] : asked.shares) {
    const auto kind = packing::View::KindWithShare(asked.kind, info, resource);
    if (!kind) continue;
    const int64_t each = packing::Fits(node, *kind) ? WorthSteps(*asked.precomputed, *kind, node)
                                                    : kind->milli * kMaxScore / packing::kWholeGpu;
    steps += each * std::min(count, packing::kMaxDevices);
  }
  return steps;
}

int64_t StepsOf(const Asked& asked, const cluster::NodeInfo& info) {
  int64_t steps = asked.shares.empty() ? 0 : ShareSteps(asked, info);
  if (!asked.instances.empty()) {
    steps += std::llround(std::min(LossOf(asked, info).gpus, 1e6) * kMaxScore);
  }
  if (!asked.instances.empty() || !asked.shares.empty()) return steps;
  return WorthSteps(*asked.precomputed, asked.kind, asked.precomputed->view.NodeOf(info));
}

// True if all of the pod's shares exist and are free on the node.
bool HasShares(const Asked& asked, const cluster::NodeInfo& node) {
  return std::ranges::all_of(asked.shares, [&](const auto& share) {
    return node.allocatable.Get(share.first) - node.requested.Get(share.first) >= share.second;
  });
}

// Fraction of cpu or memory, whichever is larger, that scored requests use, in 1/1024.
uint64_t FillOf(const cluster::NodeInfo& node) {
  const auto share = [&](int64_t taken, cluster::ResourceId resource) {
    const auto all = static_cast<double>(node.allocatable.Get(resource));
    const double part = all > 0 ? static_cast<double>(taken) / all : 0;
    return static_cast<uint64_t>(std::clamp(part, 0.0, 1.0) * kSlotUnit);
  };
  return std::max(share(node.scored.cpu, cluster::kCpu),
                  share(node.scored.memory, cluster::kMemory));
}

}  // namespace

void GpuPacking::Precompute(const cluster::ClusterSnapshot& snapshot, Pods waiting,
                            CycleState& precomputed) const {
  precomputed.Set(std::make_shared<Precomputed>(snapshot, waiting));
}

bool GpuPacking::PreScore(const cluster::Pod& pod, const cluster::ClusterSnapshot&, Nodes,
                          CycleState& state) const {
  const auto* precomputed = state.Get<std::shared_ptr<Precomputed>>();
  if (precomputed == nullptr) return false;
  const cluster::ResourceVector requests = cluster::RequestsOf(pod);
  Asked asked{*precomputed, (*precomputed)->view.KindOf(pod, requests), {}, {}};
  for (const auto& [id, amount] : requests.entries()) {
    if (!cluster::IsSliceResource(id) || amount <= 0) continue;
    auto& of = gpu::IsShareResource(cluster::ResourceName(id)) ? asked.shares : asked.instances;
    of.emplace_back(id, amount);
  }
  state.Set(std::move(asked));
  return true;
}

int64_t GpuPacking::Score(const CycleState& state, const cluster::Pod&,
                          const cluster::NodeInfo& node) const {
  const Asked* asked = AskedOf(state);
  return asked == nullptr ? 0 : -StepsOf(*asked, node);
}

int64_t GpuPacking::Normalized(int64_t score, int64_t /*lowest*/, int64_t highest) const {
  return std::max<int64_t>(kMaxScore - (highest - score), 0);
}

// The GPU where the least worth is lost, as in Score.
std::optional<int> GpuPacking::PreferredGpu(const CycleState& precomputed, const cluster::Pod& pod,
                                            const cluster::NodeInfo& info) const {
  const auto* known = precomputed.Get<std::shared_ptr<Precomputed>>();
  if (known == nullptr || !info.gpus.managed) return std::nullopt;
  const cluster::ResourceVector requests = cluster::RequestsOf(pod);
  std::optional<packing::PodKind> kind;
  for (const auto& [id, amount] : requests.entries()) {
    if (amount <= 0 || !gpu::IsShareResource(cluster::ResourceName(id))) continue;
    if (kind || amount > 1) return std::nullopt;  // several shares may need different GPUs
    kind = packing::View::KindWithShare((*known)->view.KindOf(pod, requests), info, id);
  }
  const packing::Node node = (*known)->view.NodeOf(info);
  if (!kind || !packing::Fits(node, *kind)) return std::nullopt;
  const int device = (*known)->value.AfterPlacing(node, *kind).device;
  const bool known_device = device >= 0 && device < std::ssize(info.gpus.gpus);
  return known_device ? std::optional(info.gpus.gpus[static_cast<size_t>(device)].index)
                      : std::nullopt;
}

uint64_t GpuPacking::Order(const CycleState& state, const cluster::Pod&,
                           const cluster::NodeInfo& node) const {
  const Asked* asked = AskedOf(state);
  if (asked == nullptr || !packing::HasGpus(node)) return 0;
  const uint64_t tie = packing::TieOrder(node.node->meta.name);
  const bool slices = !asked->instances.empty() || !asked->shares.empty();
  if (!slices && !asked->precomputed->wants_gpus) return FillOf(node) << 32 | tie;
  if (!asked->shares.empty()) return uint64_t{HasShares(*asked, node) ? 0U : 1U} << 32 | tie;
  if (asked->instances.empty()) return tie;
  return static_cast<uint64_t>(LossOf(*asked, node).free_slots * kSlotUnit);
}

}  // namespace nos::scheduling
