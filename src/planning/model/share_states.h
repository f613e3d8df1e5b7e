// States of GPUs shared by memory (gpu/shares.h): the used memory, the number of shares, and the
// free shares. Internal to gpu_states.
//
// In such a state a PlacementId is the profile of a share, because its position does not matter.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "gpu/catalogue.h"
#include "planning/model/problem.h"

namespace nos::planning {

// The used and planned shares, packed into a LayoutId: at most about 1,000 slots in 63 shares.
struct Taken {
  int slots = 0, shares = 0;

  static Taken Of(gpu::LayoutId packed) { return {packed >> 6, packed & 63}; }
  gpu::LayoutId Pack() const { return static_cast<gpu::LayoutId>(slots << 6 | shares); }
};

// The capacity for more shares, packed into 64 bits.
struct Open {
  bool may_repartition = false;  // shares may be created, and free ones removed
  int kept = 0;                  // slots kept for a pod that has waited too long
  int kept_shares = 0;           // shares kept for that pod

  static Open Of(uint64_t packed) {
    return {(packed & 1) != 0, static_cast<int>((packed & UINT32_MAX) >> 1),
            static_cast<int>(packed >> 32)};
  }
  uint64_t Pack() const {
    return static_cast<uint64_t>(kept_shares) << 32 | static_cast<uint64_t>(kept) << 1 |
           (may_repartition ? 1 : 0);
  }
  // Number of shares that can be added, by the limit on shares only.
  int Numbers(const gpu::Model& model, Taken taken) const {
    return std::max(0, model.max_instances() - taken.shares - kept_shares);
  }
};

// Interned sorted lists of the profiles of free shares, smallest first. 0 is the empty list.
class FreeShares {
 public:
  FreeShares() { Intern({}); }
  uint64_t Intern(std::vector<gpu::ProfileId> profiles);
  const std::vector<gpu::ProfileId>& Get(uint64_t number) const { return *all_[number]; }
  bool Has(uint64_t number, gpu::ProfileId profile) const;
  // The list without one share of the profile. REQUIRES: Has.
  uint64_t Without(uint64_t number, gpu::ProfileId profile);
  // The longest part of the list that fits beside the used shares.
  uint64_t Kept(const gpu::Model& model, Taken taken, uint64_t number);

 private:
  std::map<std::vector<gpu::ProfileId>, uint64_t> numbers_;
  std::vector<const std::vector<gpu::ProfileId>*> all_;
};

// Number of shares of the profile that fit beside those used and kept.
int CopiesOfShare(const gpu::Model& model, Taken taken, Open open, gpu::ProfileId profile);

// All maximal sets of shares that can be added, by index of `profiles` (absent: not of this model),
// each count within `limits`. nullopt: more than `most` sets.
std::optional<std::vector<std::vector<uint8_t>>> LargestShareSets(
    const gpu::Model& model, Taken taken, Open open,
    std::span<const std::optional<gpu::ProfileId>> profiles, std::span<const int> limits,
    size_t most);

}  // namespace nos::planning
