#include "scheduling/plugins/node_resources_balanced_allocation/plugin.h"

#include <algorithm>
#include <cmath>

#include "scheduling/plugins/node_resources_fit/gpu_nodes.h"

namespace nos::scheduling {
namespace {

struct Asked {
  std::vector<int64_t> amounts;
  std::shared_ptr<const dra::DeviceIndex> devices;
};

// Sums fractions in kube-scheduler's order, to obtain bit-identical results.
class Fractions {
 public:
  void Add(double fraction) {
    if (count_ == 0) first_ = fraction;
    last_ = fraction;
    sum_ += fraction;
    ++count_;
  }
  int count() const { return count_; }
  double Mean() const { return sum_ / count_; }
  double HalfDifference() const { return std::abs((first_ - last_) / 2); }

 private:
  double first_ = 0, last_ = 0, sum_ = 0;
  int count_ = 0;
};

}  // namespace

NodeResourcesBalancedAllocation::NodeResourcesBalancedAllocation(const BalanceOptions& options)
    : scored_(options.resources, ScoredResources::Requests::kReal),
      leaves_gpus_(options.leaves_gpus) {}

bool NodeResourcesBalancedAllocation::PreScore(const cluster::Pod& pod,
                                               const cluster::ClusterSnapshot& snapshot, Nodes,
                                               CycleState& state) const {
  const auto& asked = state.Set(Asked{scored_.AskedBy(pod), snapshot.context().devices}).amounts;
  return std::ranges::any_of(asked, [](int64_t amount) { return amount != 0; });
}

int64_t NodeResourcesBalancedAllocation::Score(const CycleState& state, const cluster::Pod& pod,
                                               const cluster::NodeInfo& node) const {
  const auto* asked = state.Get<Asked>();
  const dra::DeviceIndex* devices = asked != nullptr ? asked->devices.get() : nullptr;
  if (leaves_gpus_ && AreGpusScored(node, devices)) return 0;
  return asked != nullptr ? Scored(asked->amounts, node) : Scored(scored_.AskedBy(pod), node);
}

int64_t NodeResourcesBalancedAllocation::Scored(const std::vector<int64_t>& asked,
                                                const cluster::NodeInfo& node) const {
  const auto for_each_fraction = [&](auto visit) {
    scored_.ForEach(asked, node, [&](int64_t taken, int64_t allocatable, int64_t) {
      visit(std::min(static_cast<double>(taken) / static_cast<double>(allocatable), 1.0));
    });
  };
  Fractions fractions;
  for_each_fraction([&](double fraction) { fractions.Add(fraction); });
  double deviation = 0;
  if (fractions.count() == 2) {
    deviation = fractions.HalfDifference();
  } else if (fractions.count() > 2) {
    double squares = 0;
    const double mean = fractions.Mean();
    for_each_fraction([&](double f) { squares = squares + (f - mean) * (f - mean); });
    deviation = std::sqrt(squares / fractions.count());
  }
  return static_cast<int64_t>((1 - deviation) * static_cast<double>(kMaxScore));
}

}  // namespace nos::scheduling
