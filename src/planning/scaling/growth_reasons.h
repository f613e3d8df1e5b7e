// Why pools do not serve a pod, and which comes nearest.
#pragma once

#include <optional>
#include <vector>

#include "planning/scaling/cover.h"
#include "planning/scaling/growth_world.h"

namespace nos::planning {

struct GrowthOutcome {
  std::vector<int> placed;  // by class
  std::vector<int> used;    // paid nodes, by type
  bool in_time = true;
};

// Of a class that is not served wholly.
class GrowthReasons {
 public:
  // All of these must outlive it.
  GrowthReasons(const GrowthWorld& world, const std::vector<PoolNow>& pools, const Coverer& coverer,
                GpuStates& states, const GrowthOutcome& outcome);

  // `pod`: without its place.
  LeftOut WhyLeftOut(int cls);

 private:
  // How far a pool is from serving it: the higher, the nearer.
  enum class Step { kUnusable, kRefused, kNoSlices, kTooSmall, kClosed, kFull, kCould };
  struct Verdict {
    Step step = Step::kUnusable;
    std::string text;
  };
  Verdict Ask(int cls, int type) const;
  std::string WhyTooSmall(int cls, int type) const;
  bool IsOfBrokenGang(int cls) const;

  const GrowthWorld& world_;
  const std::vector<PoolNow>& pools_;
  const Coverer& coverer_;
  const GrowthOutcome& outcome_;
  const Draft empty_;
};

}  // namespace nos::planning
