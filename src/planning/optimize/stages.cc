#include "planning/optimize/stages.h"

#include <algorithm>

namespace nos::planning {
namespace {

// Each stage settles one level with pods for which slots must be kept. Beyond the limit the last
// stage ignores waiting times. A priority has at most a dozen wait ranks.
constexpr int kMaxStages = 24;

// The members of a class are placed in their order: longest waiting first.
std::vector<int> MembersPlaced(const Draft& draft) {
  std::vector<int> member;
  std::vector<int> next(draft.problem().classes.size());
  for (const PlacedPod& pod : draft.pods()) member.push_back(next[pod.cls]++);
  return member;
}

class Stager {
 public:
  Stager(const Problem& problem, GpuStates& states, int max_reservations,
         const std::function<bool()>& out_of_time)
      : whole_(problem),
        rest_(problem),
        states_(states),
        left_(max_reservations),
        out_of_time_(out_of_time),
        hopeless_(problem.classes.size()) {}

  StagedResult Run() {
    // 1. Search without kept slots. If no long-waiting pod is left, this is the result.
    SearchResult found = Search(rest_, states_, out_of_time_);
    StagedResult result{Draft(whole_, states_, Draft::Free::kKeep), {}, {}, 0, true};
    result.upper_bound = found.upper_bound;
    result.complete = found.complete;
    // 2. For the first level with unplaced long-waiting pods: fix the pods up to this level, keep
    //    slots for the unplaced ones, and search again for the lower levels, which may not use the
    //    kept slots.
    int first_level = 0;
    for (int stage = 0; stage < kMaxStages && left_ > 0; ++stage) {
      const int level = FirstLevelInNeed(found.draft, first_level);
      if (level < 0) break;
      Settle(found.draft, level);
      KeepSlots(level);
      first_level = level + 1;
      rest_.IndexShapes();
      found = Search(rest_, states_, out_of_time_);
      result.complete = result.complete && found.complete;
    }
    // 3. Fix the rest, and copy all assignments to a draft of the whole problem.
    Settle(found.draft, whole_.levels);
    for (const Assignment& a : settled_) result.draft.Place(a.cls, a.node, a.devices);
    result.members = MembersPlaced(result.draft);
    result.reservations = std::move(reservations_);
    return result;
  }

 private:
  bool IsInNeed(const Draft& draft, int cls) const {
    const PodClass& c = rest_.classes[cls];
    return c.aged && draft.PlacedOf(cls) < c.count && !c.slices.empty() && !hopeless_[cls];
  }

  // -1 if every long-waiting pod is served, or could not be served even if others ended.
  int FirstLevelInNeed(const Draft& draft, int from) {
    int first = -1;
    for (size_t c = 0; c < rest_.classes.size(); ++c) {
      const int level = rest_.classes[c].level;
      if (level < from || (first >= 0 && level >= first)) continue;
      if (!IsInNeed(draft, static_cast<int>(c))) continue;
      hopeless_[c] = !SoonestPlace(draft, static_cast<int>(c)).has_value();
      if (!hopeless_[c]) first = level;
    }
    return first;
  }

  // Makes the draft final up to this level: its devices count as used from now on.
  void Settle(const Draft& draft, int last_level) {
    Draft settled(rest_, states_, Draft::Free::kKeep);
    for (const PlacedPod& pod : draft.pods()) {
      if (!pod.alive || rest_.classes[pod.cls].level > last_level) continue;
      const auto devices = draft.DevicesOf(pod);
      settled.Place(pod.cls, pod.node, devices);
      settled_.push_back({pod.cls, pod.node, {devices.begin(), devices.end()}});
    }
    CountAsUsed(settled);
    for (size_t n = 0; n < rest_.nodes.size(); ++n) {
      const int64_t* free = settled.FreeOf(static_cast<int>(n));
      std::copy(free, free + rest_.dimensions, &rest_.free[n * rest_.dimensions]);
    }
    for (size_t c = 0; c < rest_.classes.size(); ++c) {
      rest_.classes[c].count -= settled.PlacedOf(static_cast<int>(c));
    }
  }

  void CountAsUsed(const Draft& settled) {
    for (size_t g = 0; g < rest_.gpus.size(); ++g) {
      ProblemGpu& gpu = rest_.gpus[g];
      const uint16_t model = states_.Get(settled.gpu(static_cast<int>(g))).model;
      if (model != gpu.model) gpu.Switch();
    }
    for (const PlacedPod& pod : settled.pods()) {
      for (const Device& device : settled.DevicesOf(pod)) {
        ProblemGpu& gpu = rest_.gpus[device.gpu];
        if (states_.IsCounted(gpu.model)) gpu.used_shares.push_back(device.placement);
      }
    }
    for (size_t g = 0; g < rest_.gpus.size(); ++g) {
      ProblemGpu& gpu = rest_.gpus[g];
      const GpuState& state = states_.Get(settled.gpu(static_cast<int>(g)));
      if (states_.IsCounted(gpu.model)) {
        gpu.free_shares = states_.table().FreeSharesOf(state);
      } else {
        gpu.used = state.occupied;
        gpu.free = state.free;
      }
    }
  }

  // Keeps slots for each unplaced pod of the level. Then the level is finished.
  void KeepSlots(int level) {
    for (size_t c = 0; c < rest_.classes.size(); ++c) {
      PodClass& cls = rest_.classes[c];
      if (cls.level > level) continue;
      for (; cls.aged && cls.level == level && !cls.slices.empty() && cls.count > 0 && left_ > 0;
           --cls.count, --left_) {
        const Draft now(rest_, states_, Draft::Free::kKeep);
        std::optional<FuturePlace> place = SoonestPlace(now, static_cast<int>(c));
        if (!place) break;
        Block(rest_, *place, static_cast<int>(c));
        reservations_.push_back({static_cast<int>(c), std::move(*place)});
      }
      cls.count = 0;
    }
  }

  const Problem& whole_;
  Problem rest_;
  GpuStates& states_;
  int left_;  // reservations left
  const std::function<bool()>& out_of_time_;
  std::vector<bool> hopeless_;  // by class: no node could serve it even when empty
  std::vector<Assignment> settled_;
  std::vector<Reservation> reservations_;
};

}  // namespace

StagedResult SearchInStages(const Problem& problem, GpuStates& states, int max_reservations,
                            const std::function<bool()>& out_of_time) {
  return Stager(problem, states, max_reservations, out_of_time).Run();
}

}  // namespace nos::planning
