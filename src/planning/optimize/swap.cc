#include "planning/optimize/swap.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "planning/optimize/greedy.h"

namespace nos::planning {
namespace {

constexpr int kMaxAttempts = 2000;

class Swapper {
 public:
  Swapper(Draft& draft, const std::vector<int>& candidates) : draft_(draft), greedy_(draft) {
    for (const int c : candidates) {
      if (Waiting(c) > 0 && !ClassOf(c).slices.empty()) waiting_[CountsAs(c)].push_back(c);
    }
    for (auto& [counts_as, classes] : waiting_) {
      std::ranges::stable_sort(classes, {}, [&](int c) { return SlicesOf(c); });
    }
  }

  bool Run(const std::function<bool()>& out_of_time) {
    // By index: swaps append to the list, and a swapped-in pod is not considered again.
    const size_t pods = waiting_.empty() ? 0 : draft_.pods().size();
    int attempts = 0;
    for (uint32_t p = 0; p < pods && attempts < kMaxAttempts; ++p) {
      const int most = MostSlices(p);
      const auto equals = waiting_.find(CountsAs(draft_.pods()[p].cls));
      if (most == 0 || equals == waiting_.end()) continue;
      if (out_of_time()) return false;
      for (const int other : equals->second) {
        if (SlicesOf(other) > most) break;
        if (other == draft_.pods()[p].cls || Waiting(other) == 0) continue;
        if (TrySwap(p, other) || ++attempts == kMaxAttempts) break;
      }
    }
    return true;
  }

 private:
  const PodClass& ClassOf(int cls) const { return draft_.problem().classes[cls]; }
  int Waiting(int cls) const { return ClassOf(cls).count - draft_.PlacedOf(cls); }
  int SlicesOf(int cls) const { return draft_.problem().shapes[ClassOf(cls).shape].slice_count; }
  // Pods with equal keys are interchangeable.
  std::pair<int, int64_t> CountsAs(int cls) const {
    return {ClassOf(cls).level, ClassOf(cls).value};
  }

  // Maximum number of slices of a pod that may need fewer changes than this one; 0: no such pod.
  // Unlimited if free instances are destroyed for this pod or for others on its GPUs.
  int MostSlices(uint32_t pod) const {
    const PlacedPod& placed = draft_.pods()[pod];
    if (!placed.alive) return 0;
    int created = 0;
    for (const Device& d : draft_.DevicesOf(placed)) {
      if (!d.created) continue;
      if (draft_.states().Get(draft_.Original(d.gpu)).free != 0) {
        return std::numeric_limits<int>::max();
      }
      ++created;
    }
    return std::max(0, created - 1);
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
  // Classes with pending pods, fewest slices first.
  std::map<std::pair<int, int64_t>, std::vector<int>> waiting_;
};

}  // namespace

bool SwapForFewerChanges(Draft& draft, const std::vector<int>& candidates,
                         const std::function<bool()>& out_of_time) {
  return Swapper(draft, candidates).Run(out_of_time);
}

}  // namespace nos::planning
