#include "planning/model/share_places.h"

#include <bit>

#include "gpu/shares.h"

namespace nos::planning {
namespace {

uint64_t Bit(uint8_t start) { return uint64_t{1} << start; }

}  // namespace

SharePlaces::SharePlaces(const cluster::Gpu& gpu) {
  for (const cluster::Instance& instance : gpu.instances) {
    const gpu::Placement placement = instance.placement;
    there_ |= Bit(placement.start);
    if (instance.used) {
      taken_ |= Bit(placement.start);
    } else {
      free_[placement.profile].insert(placement.start);
    }
  }
}

gpu::Placement SharePlaces::TakeFree(gpu::ProfileId profile) {
  std::set<uint8_t>& starts = free_[profile];
  if (starts.empty()) return Make(profile);
  const uint8_t start = *starts.begin();
  starts.erase(starts.begin());
  taken_ |= Bit(start);
  return {profile, start};
}

std::vector<gpu::Placement> SharePlaces::KeepFree(const std::vector<gpu::ProfileId>& profiles) {
  std::vector<gpu::Placement> kept;
  for (const gpu::ProfileId profile : profiles) kept.push_back(TakeFree(profile));
  return kept;
}

gpu::Placement SharePlaces::Make(gpu::ProfileId profile) {
  int start = std::countr_one(taken_ | there_);
  if (start >= gpu::kMaxClients) start = std::countr_one(taken_);
  taken_ |= Bit(static_cast<uint8_t>(start));
  return {profile, static_cast<uint8_t>(start)};
}

}  // namespace nos::planning
