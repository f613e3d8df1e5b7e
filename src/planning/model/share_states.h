// GPUs that are shared by memory (gpu/shares.h) as states of the search: how much of one is taken,
// by how many shares, and which free shares there are. Internal to gpu_states.
//
// In such a state a PlacementId is the share's profile: where it lies does not matter.
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

// What is used or planned, packed into a LayoutId: some 1,000 slots at most, in 63 shares.
struct Taken {
  int slots = 0, shares = 0;

  static Taken Of(gpu::LayoutId packed) { return {packed >> 6, packed & 63}; }
  gpu::LayoutId Pack() const { return static_cast<gpu::LayoutId>(slots << 6 | shares); }
};

// Who may be put there, packed into 64 bits.
struct Open {
  bool recut = false;   // shares may be made, and free ones removed
  int kept = 0;         // slots that are kept for a pod that waits too long
  int kept_shares = 0;  // and of the number of shares so many

  static Open Of(uint64_t packed) {
    return {(packed & 1) != 0, static_cast<int>((packed & UINT32_MAX) >> 1),
            static_cast<int>(packed >> 32)};
  }
  uint64_t Pack() const {
    return static_cast<uint64_t>(kept_shares) << 32 | static_cast<uint64_t>(kept) << 1 |
           (recut ? 1 : 0);
  }
  // How many more shares there may be beside those taken.
  int Numbers(const gpu::Model& model, Taken taken) const {
    return std::max(0, model.most_instances() - taken.shares - kept_shares);
  }
};

// The profiles of free shares, sorted: smallest first. Numbered, 0 for none.
class FreeShares {
 public:
  FreeShares() { Intern({}); }
  uint64_t Intern(std::vector<gpu::ProfileId> profiles);
  const std::vector<gpu::ProfileId>& Get(uint64_t number) const { return *all_[number]; }
  bool Has(uint64_t number, gpu::ProfileId profile) const;
  // One less of the profile. REQUIRES: Has.
  uint64_t Without(uint64_t number, gpu::ProfileId profile);
  // As many as fit beside what is taken.
  uint64_t Kept(const gpu::Model& model, Taken taken, uint64_t number);

 private:
  std::map<std::vector<gpu::ProfileId>, uint64_t> numbers_;
  std::vector<const std::vector<gpu::ProfileId>*> all_;
};

// How many more shares of a profile fit beside what is taken and kept for others.
int CopiesOfShare(const gpu::Model& model, Taken taken, Open open, gpu::ProfileId profile);

// Every largest set of shares that can be added, by index of `profiles` (absent: not of this
// model), of each no more than `limits`. None: there are more than `most` of them.
std::optional<std::vector<std::vector<uint8_t>>> LargestShareSets(
    const gpu::Model& model, Taken taken, Open open,
    std::span<const std::optional<gpu::ProfileId>> profiles, std::span<const int> limits,
    size_t most);

}  // namespace nos::planning
