// Packs pods so that the remaining capacity of GPUs stays usable: a pod goes to the node that loses
// the least.
//
// Pods with whole GPUs or no GPU lose node worth as defined in packing/, for the demand of all
// running and pending pods. The choice equals that of packing::Packer: the same steps, and first
// fit in the same fixed order. Pods with MIG instances lose potential of the GPU
// (gpu/fragmentation.h), in hundredths of a GPU as well. MPS shares are fractions of GPUs and lose
// worth like whole GPUs.
//
// The score is kMaxScore on the best node and decreases by one for each further step of loss. Ties:
// MIG pods take the node whose GPUs have the fewest free slots left, other pods the first node in
// the fixed order (packing::TieOrder). While no pod requests GPUs, the demand does not show what
// pods without GPUs would take from later GPU pods, so these are spread and every node keeps some
// cpu and memory for its GPUs.
//
// Without Precompute all nodes score equally.
#pragma once

#include "scheduling/plugin.h"

namespace nos::scheduling {

class GpuPacking final : public ScorePlugin {
 public:
  std::string Name() const override { return "GpuPacking"; }
  bool Precomputes() const override { return true; }
  void Precompute(const cluster::ClusterSnapshot& snapshot, Pods waiting,
                  CycleState& precomputed) const override;
  bool PreScore(const cluster::Pod& pod, const cluster::ClusterSnapshot& snapshot, Nodes feasible,
                CycleState& state) const override;
  int64_t Score(const CycleState& state, const cluster::Pod& pod,
                const cluster::NodeInfo& node) const override;
  int64_t Normalized(int64_t score, int64_t lowest, int64_t highest) const override;
  std::optional<int> PreferredGpu(const CycleState& precomputed, const cluster::Pod& pod,
                                  const cluster::NodeInfo& node) const override;
  uint64_t Order(const CycleState& state, const cluster::Pod& pod,
                 const cluster::NodeInfo& node) const override;
};

}  // namespace nos::scheduling
