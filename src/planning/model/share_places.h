// Assigns numbers to the shares of one GPU after a plan. The search only counts shares.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "cluster/annotations.h"
#include "gpu/catalogue.h"

namespace nos::planning {

class SharePlaces {
 public:
  // Reads the current state of the GPU, which must outlive this object.
  explicit SharePlaces(const cluster::Gpu& gpu);

  // Takes an existing free share for a planned pod.
  gpu::Placement TakeFree(gpu::ProfileId profile);
  // Selects the remaining free shares to keep: one per entry of `profiles`, low numbers first. Call
  // before Make, because removed shares release their numbers.
  std::vector<gpu::Placement> KeepFree(const std::vector<gpu::ProfileId>& profiles);
  // Creates a share for a planned pod under an unused number, if possible one that no share had
  // before the plan.
  gpu::Placement Make(gpu::ProfileId profile);

 private:
  std::map<gpu::ProfileId, std::set<uint8_t>> free_;
  uint64_t taken_ = 0;  // numbers in use after the plan
  uint64_t there_ = 0;  // numbers in use now
};

}  // namespace nos::planning
