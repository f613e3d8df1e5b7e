#include "planning/swap.h"

#include <algorithm>

#include "planning/greedy.h"

namespace nos::planning {
namespace {

constexpr int kMostAttempts = 2000;

class Swapper {
 public:
  Swapper(Draft& draft, const std::vector<int>& candidates) : draft_(draft), greedy_(draft) {
    for (const int c : candidates) {
      if (Waiting(c) > 0 && !ClassOf(c).slices.empty()) waiting_.push_back(c);
    }
  }

  bool Run(const std::function<bool()>& out_of_time) {
    // By index: a swap appends to the list, and what was swapped in needs no other look.
    const size_t pods = waiting_.empty() ? 0 : draft_.pods().size();
    int attempts = 0;
    for (uint32_t p = 0; p < pods && attempts < kMostAttempts; ++p) {
      if (!NeedsChanges(p)) continue;
      if (out_of_time()) return false;
      for (const int other : waiting_) {
        if (!AreEqual(draft_.pods()[p].cls, other) || Waiting(other) == 0) continue;
        if (TrySwap(p, other) || ++attempts == kMostAttempts) break;
      }
    }
    return true;
  }

 private:
  const PodClass& ClassOf(int cls) const { return draft_.problem().classes[cls]; }
  int Waiting(int cls) const { return ClassOf(cls).count - draft_.PlacedOf(cls); }

  // Its GPUs lose free instances for it or for others.
  bool NeedsChanges(uint32_t pod) const {
    const PlacedPod& placed = draft_.pods()[pod];
    const auto devices = draft_.DevicesOf(placed);
    return placed.alive && std::any_of(devices.begin(), devices.end(), [&](const Device& d) {
             const uint64_t before = draft_.states().Get(draft_.Original(d.gpu)).free;
             return d.created && before != 0;
           });
  }

  bool AreEqual(int a, int b) const {
    return a != b && ClassOf(a).level == ClassOf(b).level && ClassOf(a).value == ClassOf(b).value;
  }

  bool TrySwap(uint32_t pod, int other) {
    const int node = draft_.pods()[pod].node;
    const ChangeCost before = draft_.CostOn(node);
    const size_t mark = draft_.Mark();
    draft_.Remove(pod);
    if (greedy_.PlaceOn(other, node) && draft_.CostOn(node) < before) return true;
    draft_.Rollback(mark);
    return false;
  }

  Draft& draft_;
  Greedy greedy_;
  std::vector<int> waiting_;  // classes of which some pods found no place
};

}  // namespace

bool SwapForFewerChanges(Draft& draft, const std::vector<int>& candidates,
                         const std::function<bool()>& out_of_time) {
  return Swapper(draft, candidates).Run(out_of_time);
}

}  // namespace nos::planning
