#include "scheduling/packing/packer.h"

#include <algorithm>
#include <cmath>

namespace nos::scheduling::packing {
namespace {

// Units: GPUs.
constexpr double kStep = 0.01;
constexpr double kStepWithoutGpu = 1 / 30.0;
// Prevents rounding errors from reducing a loss of exactly k steps to k - 1.
constexpr double kRounding = 1e-9;

int64_t NextEstimate(int64_t learned) {
  return learned < 1024 ? std::max<int64_t>(1, 2 * learned) : learned + 1000;
}

}  // namespace

int32_t LossSteps(const PodKind& kind, const Node& node, double loss) {
  if (kind.gpus > 0) return static_cast<int32_t>(std::floor(loss / kStep + kRounding));
  const auto steps = static_cast<int32_t>(std::floor(loss / kStepWithoutGpu + kRounding));
  return steps + (node.gpu_milli.empty() ? 0 : 1);
}

Packer::Packer(std::vector<Node> nodes, Demand demand)
    : nodes_(std::move(nodes)),
      demand_(std::move(demand)),
      due_(NextEstimate(demand_.learned())),
      value_(demand_),
      worth_(nodes_.size()),
      memo_(nodes_.size()) {}

void Packer::Precompute(const PodKind& kind) {
  demand_.Precompute(kind);
  EstimateIfDue();
}

void Packer::EstimateIfDue() {
  if (demand_.learned() < due_) return;
  due_ = NextEstimate(demand_.learned());
  value_ = NodeValue(demand_);
  worth_.assign(nodes_.size(), std::nullopt);
  memo_.Forget();
}

std::optional<Packer::Placement> Packer::Evaluate(const PodKind& kind, size_t node) {
  if (!Fits(nodes_[node], kind)) return std::nullopt;
  const NodeValue::After after = value_.AfterPlacing(nodes_[node], kind);
  std::optional<double>& worth = worth_[node];
  if (!worth) worth = value_.Worth(nodes_[node]);
  return Placement{*worth - after.worth, after.device};
}

std::optional<Score> Packer::Steps(const PodKind& kind, size_t node) {
  const std::optional<Placement> placement = Evaluate(kind, node);
  if (!placement) return std::nullopt;
  return Score{LossSteps(kind, nodes_[node], placement->loss), placement->device};
}

std::optional<Choice> Packer::Choose(const PodKind& kind) {
  return Choose(kind, [](size_t) { return true; });
}

std::optional<Choice> Packer::Choose(const PodKind& kind,
                                     const std::function<bool(size_t)>& allowed) {
  const auto best = memo_.Lowest(kind, [&](size_t node) { return Steps(kind, node); }, allowed);
  if (!best) return std::nullopt;
  if (best->score.device >= 0) return Choice{best->node, {best->score.device}};
  return Choice{best->node, FirstDevices(nodes_[best->node], kind)};
}

std::optional<double> Packer::Loss(const PodKind& kind, size_t node) {
  const std::optional<Placement> placement = Evaluate(kind, node);
  return placement ? std::optional(placement->loss) : std::nullopt;
}

void Packer::Place(const PodKind& kind, const Choice& choice) {
  Take(nodes_[choice.node], kind, choice.devices);
  Changed(choice.node);
}

void Packer::Release(const PodKind& kind, const Choice& choice) {
  Return(nodes_[choice.node], kind, choice.devices);
  Changed(choice.node);
}

void Packer::Update(size_t node, Node state) {
  nodes_[node] = std::move(state);
  Changed(node);
}

void Packer::Changed(size_t node) {
  worth_[node].reset();
  memo_.Touch(node);
}

}  // namespace nos::scheduling::packing
