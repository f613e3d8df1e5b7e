// Keeps GPUs useful: a pod goes where what the node can still serve shrinks least.
//
// Pods that ask for whole GPUs or for none lose a node worth as packing/ defines it, from the
// demand learnt from all pods that run or wait; the same steps decide as in packing::Packer, and
// the same first fit along a fixed order. Pods that ask for MIG instances lose potential of the GPU
// that is cut up (gpu/fragmentation.h), in hundredths of a GPU as well. MPS shares are fractions of
// GPUs: they lose worth like whole GPUs do.
//
// The score is kMaxScore on the best node and falls by one for each step more that is lost. Of
// equal nodes MIG pods take the one whose GPUs have fewest slots left, others the first of the
// fixed order (packing::TieOrder). As long as nobody wants a GPU, nothing says what pods without
// would take from those who will: they are spread, so that each node keeps something for its GPUs.
// Without Learn all nodes are the same to it.
#pragma once

#include "scheduling/plugin.h"

namespace nos::scheduling {

class GpuPacking final : public ScorePlugin {
 public:
  std::string Name() const override { return "GpuPacking"; }
  bool Learns() const override { return true; }
  void Learn(const cluster::ClusterSnapshot& snapshot, Pods waiting,
             CycleState& learnt) const override;
  bool PreScore(const cluster::Pod& pod, const cluster::ClusterSnapshot& snapshot, Nodes feasible,
                CycleState& state) const override;
  int64_t Score(const CycleState& state, const cluster::Pod& pod,
                const cluster::NodeInfo& node) const override;
  int64_t Normalized(int64_t score, int64_t lowest, int64_t highest) const override;
  std::optional<int> PreferredGpu(const CycleState& learnt, const cluster::Pod& pod,
                                  const cluster::NodeInfo& node) const override;
  uint64_t Order(const CycleState& state, const cluster::Pod& pod,
                 const cluster::NodeInfo& node) const override;
};

}  // namespace nos::scheduling
