// Explains why no node group serves a pod, and which group comes closest.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planning/scaling/greedy_node_mix.h"
#include "planning/scaling/growth_world.h"

namespace nos::planning {

struct GrowthOutcome {
  std::vector<int> placed;  // by class
  std::vector<int> used;    // number of paid nodes, by type
  bool in_time = true;
};

// For a class with unserved pods.
class GrowthReasons {
 public:
  // All arguments must outlive this object.
  GrowthReasons(const GrowthWorld& world, const std::vector<NodePoolState>& pools,
                const GreedyNodeMix& coverer, GpuStates& states, const GrowthOutcome& outcome);

  // `pod` of the result is not set.
  LeftOut WhyLeftOut(int cls) const;

 private:
  // How close a group is to serving the pod; higher is closer.
  enum class Step { kUnusable, kRefused, kNoSlices, kTooSmall, kClosed, kFull, kCould };
  struct Verdict {
    Step step = Step::kUnusable;
    std::string text;
  };
  Verdict Ask(int cls, int type) const;
  std::string WhyTooSmall(int cls, int type) const;
  // `best` is of the nearest pool.
  Reason ReasonFor(int cls, const Verdict& best, const std::string& pool) const;
  // Why too few pods of its gang get nodes; nullopt if it has none, or enough of them do.
  std::optional<Reason> WhyGangNotWhole(int cls) const;

  const GrowthWorld& world_;
  const std::vector<NodePoolState>& pools_;
  const GreedyNodeMix& coverer_;
  const GrowthOutcome& outcome_;
  const Draft empty_;
};

}  // namespace nos::planning
