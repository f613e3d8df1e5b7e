#include "scheduling/plugins/gpu_packing/gpu_packing.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "scheduling/packing/packer.h"
#include "scheduling/packing/view.h"
#include "scheduling/plugins/gpu_packing/instance_loss.h"

namespace nos::scheduling {
namespace {

constexpr const char* kName = "GpuPacking";
constexpr double kSlotUnit = 1024;  // means of slots keep ten binary digits as an order

// Of the cluster. The tables inside grow while they are asked; each learnt state has its own.
struct Learnt {
  explicit Learnt(const cluster::ClusterSnapshot& snapshot, Pods waiting)
      : view(snapshot), value(view.DemandOf(snapshot, waiting)) {}

  packing::View view;
  packing::NodeValue value;
  InstanceLosses losses;
};

// Of one pod.
struct Asked {
  std::shared_ptr<Learnt> learnt;
  packing::PodKind kind;
  std::vector<std::pair<cluster::ResourceId, int64_t>> instances;
};

const Asked* AskedOf(const CycleState& state) { return state.Get<Asked>(kName); }

InstanceLoss LossOf(const Asked& asked, const cluster::NodeInfo& node) {
  InstanceLoss sum;
  for (const auto& [resource, count] : asked.instances) {
    const InstanceLoss loss = asked.learnt->losses.Of(node, resource, count);
    sum.gpus += loss.gpus;
    sum.free_slots += loss.free_slots;
  }
  return sum;
}

int64_t StepsOf(const Asked& asked, const cluster::NodeInfo& info) {
  if (!asked.instances.empty()) {
    return std::llround(std::min(LossOf(asked, info).gpus, 1e6) * kMaxScore);
  }
  packing::NodeValue& value = asked.learnt->value;
  const packing::Node node = asked.learnt->view.NodeOf(info);
  const double loss = value.Worth(node) - value.AfterPlacing(node, asked.kind).worth;
  return packing::LossSteps(asked.kind, node, loss);
}

}  // namespace

void GpuPacking::Learn(const cluster::ClusterSnapshot& snapshot, Pods waiting,
                       CycleState& learnt) const {
  learnt.Set(kName, std::make_shared<Learnt>(snapshot, waiting));
}

void GpuPacking::PreScore(const cluster::Pod& pod, CycleState& state) const {
  const auto* learnt = state.Get<std::shared_ptr<Learnt>>(kName);
  if (learnt == nullptr) return;
  const cluster::ResourceVector requests = cluster::RequestsOf(pod);
  Asked asked{*learnt, (*learnt)->view.KindOf(pod, requests), {}};
  for (const auto& [id, amount] : requests.entries()) {
    if (cluster::IsMigResource(id) && amount > 0) asked.instances.emplace_back(id, amount);
  }
  state.Set(kName, std::move(asked));
}

int64_t GpuPacking::Score(const CycleState& state, const cluster::Pod&,
                          const cluster::NodeInfo& node) const {
  const Asked* asked = AskedOf(state);
  return asked == nullptr ? 0 : -StepsOf(*asked, node);
}

void GpuPacking::Normalize(std::vector<int64_t>& scores) const {
  if (scores.empty()) return;
  const int64_t best = *std::ranges::max_element(scores);
  for (int64_t& score : scores) score = std::max<int64_t>(kMaxScore - (best - score), 0);
}

uint64_t GpuPacking::Order(const CycleState& state, const cluster::Pod&,
                           const cluster::NodeInfo& node) const {
  const Asked* asked = AskedOf(state);
  if (asked == nullptr || !packing::HasGpus(node)) return 0;
  if (asked->instances.empty()) return packing::TieOrder(node.node->meta.name);
  return static_cast<uint64_t>(LossOf(*asked, node).free_slots * kSlotUnit);
}

}  // namespace nos::scheduling
