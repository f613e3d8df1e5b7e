// Which numbers the shares of one GPU have after a plan. The search counts them only.
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
  // The GPU as it is. It must outlive this.
  explicit SharePlaces(const cluster::Gpu& gpu);

  // For a planned pod: a free share that is there.
  gpu::Placement TakeFree(gpu::ProfileId profile);
  // Which of the free shares that nobody took stay: so many of each profile, low numbers first.
  // Before any is made: what goes leaves its number to others.
  std::vector<gpu::Placement> KeepFree(const std::vector<gpu::ProfileId>& profiles);
  // For a planned pod: a new one, under a number that no other has, if there is one also not one
  // that has just been given up.
  gpu::Placement Make(gpu::ProfileId profile);

 private:
  std::map<gpu::ProfileId, std::set<uint8_t>> free_;
  uint64_t taken_ = 0;  // numbers
  uint64_t there_ = 0;  // that some share has now
};

}  // namespace nos::planning
