#include "planning/optimize/reserve.h"

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>

namespace nos::planning {
namespace {

bool Together(const gpu::LayoutTable& table, gpu::PlacementId a, gpu::PlacementId b) {
  const gpu::LayoutId one = table.Add(gpu::LayoutTable::kEmpty, a);
  return a != b && table.Add(one, b) != gpu::LayoutTable::kIllegal;
}

// The instances of the layout each of which excludes the placement on its own.
uint64_t Against(const gpu::LayoutTable& table, gpu::LayoutId layout, gpu::PlacementId placement) {
  uint64_t against = 0;
  for (uint64_t rest = table.Members(layout); rest != 0; rest &= rest - 1) {
    const auto member = static_cast<gpu::PlacementId>(std::countr_zero(rest));
    if (!Together(table, member, placement)) against |= uint64_t{1} << member;
  }
  return against;
}

// A shared GPU after some of its shares are assumed to have ended.
struct SharedGpu {
  struct InUse {
    int slots = 0;
    SlotInTheWay slot;
  };
  int left = 0, numbers = 0;  // slots, and number of shares that can be added
  std::vector<InUse> in_use;  // smallest first

  // The smallest set of shares that must end to free the slots. nullopt if all are not enough.
  std::optional<std::vector<InUse>> InTheWayOf(int slots) const {
    std::vector<InUse> going;
    int room = left, more = numbers;
    for (auto at = in_use.rbegin(); room < slots || more < 1; ++at) {
      if (at == in_use.rend()) return std::nullopt;
      room += at->slots;
      ++more;
      going.push_back(*at);
    }
    return going;
  }
};

SharedGpu ShareOut(const Draft& draft, int gpu) {
  const Problem& problem = draft.problem();
  const ProblemGpu& facts = problem.gpus[gpu];
  const uint16_t number = draft.states().Get(draft.gpu(gpu)).model;
  const gpu::Model& model = *problem.models[number];
  std::vector<gpu::ProfileId> profiles = facts.used_shares;
  for (const uint32_t index : draft.PodsOn(facts.node)) {
    const PlacedPod& pod = draft.pods()[index];
    if (!pod.alive) continue;
    for (const Device& device : draft.DevicesOf(pod)) {
      if (device.gpu == gpu) profiles.push_back(device.placement);
    }
  }
  SharedGpu shared{model.slots() - facts.kept_slots, model.max_instances() - facts.kept_shares, {}};
  std::map<gpu::ProfileId, int> seen;
  for (const gpu::ProfileId profile : profiles) {
    const int slots = model.profile(profile).slots;
    shared.left -= slots;
    --shared.numbers;
    shared.in_use.push_back({slots, {gpu, profile, seen[profile]++, number}});
  }
  std::ranges::stable_sort(shared.in_use, {}, &SharedGpu::InUse::slots);
  return shared;
}

// One GPU after some instances are assumed to have ended.
struct FutureGpu {
  uint16_t model = 0;
  // The model to which it may switch when empty; kNoModel: none, or slots are kept on it.
  uint16_t alternative = kNoModel;
  gpu::LayoutId layout = gpu::LayoutTable::kEmpty;
  uint64_t usable = 0;
  SharedGpu shared;  // if model is counted()
};

// Finds how one node's GPUs could serve a pod, assuming that some instances end.
class NodePlan {
 public:
  NodePlan(const Draft& draft, int node)
      : draft_(draft), problem_(draft.problem()), node_(problem_.nodes[node]) {
    place_.node = node;
    for (int i = 0; i < node_.gpu_count; ++i) gpus_.push_back(Now(node_.first_gpu + i));
  }

  // Takes the slice where the fewest instances are in the way. False: no GPU of the node could ever
  // serve it.
  bool Take(uint16_t slice) {
    Choice best;
    for (int i = 0; i < node_.gpu_count; ++i) {
      Consider(i, gpus_[i], {}, slice, best);
      ConsiderSwitch(i, slice, best);
    }
    if (best.gpu < 0) return false;
    FutureGpu& gpu = gpus_[best.gpu];
    if (best.switches) {
      for (const SlotInTheWay& slot : AllOn(best.gpu)) place_.in_the_way.push_back(slot);
      gpu = Switched(gpu);
    }
    gpu.alternative = kNoModel;  // the next slice must not switch away what this pod has taken
    const int number = node_.first_gpu + best.gpu;
    place_.devices.push_back({{slice, best.placement, true}, number});
    if (IsCounted(gpu)) {
      TakeShare(gpu, best.placement);
      return true;
    }
    const gpu::LayoutTable& table = Table(gpu);
    const gpu::LayoutId rest = table.FromMembers(table.Members(gpu.layout) & ~best.against);
    gpu.layout = table.Add(rest, best.placement);
    for (uint64_t left = best.against; left != 0; left &= left - 1) {
      const auto member = static_cast<gpu::PlacementId>(std::countr_zero(left));
      place_.in_the_way.push_back({number, member, 0, gpu.model});
    }
    gpu.usable &= ~Conflicts(table, best.placement);
    return true;
  }

  FuturePlace Finish() && {
    std::sort(place_.in_the_way.begin(), place_.in_the_way.end());
    return std::move(place_);
  }

  static uint64_t Conflicts(const gpu::LayoutTable& table, gpu::PlacementId placement) {
    uint64_t conflicts = 0;
    for (size_t p = 0; p < table.placements().size(); ++p) {
      const auto other = static_cast<gpu::PlacementId>(p);
      if (!Together(table, placement, other)) conflicts |= uint64_t{1} << p;
    }
    return conflicts;
  }

 private:
  struct Choice {
    int gpu = -1;
    gpu::PlacementId placement = 0;
    uint64_t against = 0;
    int start = 0;
    int in_the_way = 0;  // number of instances
    bool switches = false;
  };

  FutureGpu Now(int gpu) const {
    const ProblemGpu& facts = problem_.gpus[gpu];
    const GpuState& state = draft_.states().Get(draft_.gpu(gpu));
    FutureGpu now{state.model, OtherOf(facts, state), state.occupied, state.usable, {}};
    if (IsCounted(now)) now.shared = ShareOut(draft_, gpu);
    return now;
  }
  static uint16_t OtherOf(const ProblemGpu& facts, const GpuState& state) {
    if (!facts.may_repartition || facts.blocked != 0) return kNoModel;
    if (facts.kept_slots != 0 || facts.kept_shares != 0) return kNoModel;
    return state.model == facts.model ? facts.alternative : facts.model;
  }
  FutureGpu Switched(const FutureGpu& gpu) const {
    FutureGpu after{gpu.alternative, kNoModel, gpu::LayoutTable::kEmpty, ~uint64_t{0}, {}};
    const gpu::Model& model = *problem_.models[after.model];
    after.shared = {model.slots(), model.max_instances(), {}};
    return after;
  }

  bool IsCounted(const FutureGpu& gpu) const { return draft_.states().IsCounted(gpu.model); }
  const gpu::LayoutTable& Table(const FutureGpu& gpu) const {
    return draft_.states().Layouts(gpu.model);
  }
  int SlotsOf(const FutureGpu& gpu, gpu::ProfileId profile) const {
    return problem_.models[gpu.model]->profile(profile).slots;
  }

  // All instances that must end before the GPU can switch.
  std::vector<SlotInTheWay> AllOn(int i) const {
    const FutureGpu& gpu = gpus_[i];
    std::vector<SlotInTheWay> all;
    for (const SharedGpu::InUse& share : gpu.shared.in_use) all.push_back(share.slot);
    if (IsCounted(gpu)) return all;
    for (uint64_t left = Table(gpu).Members(gpu.layout); left != 0; left &= left - 1) {
      const auto member = static_cast<gpu::PlacementId>(std::countr_zero(left));
      all.push_back({node_.first_gpu + i, member, 0, gpu.model});
    }
    return all;
  }

  void ConsiderSwitch(int i, uint16_t slice, Choice& best) const {
    if (gpus_[i].alternative == kNoModel) return;
    if (problem_.slices[slice].profile[gpus_[i].alternative] == kNoProfile) return;
    Consider(i, Switched(gpus_[i]), AllOn(i), slice, best);
  }

  // `gone`: instances that must end to bring the GPU into the state `gpu`.
  void Consider(int i, const FutureGpu& gpu, const std::vector<SlotInTheWay>& gone, uint16_t slice,
                Choice& best) const {
    const gpu::ProfileId profile = problem_.slices[slice].profile[gpu.model];
    if (profile == kNoProfile || !problem_.gpus[node_.first_gpu + i].may_repartition) return;
    const bool switches = gpu.model != gpus_[i].model;
    const int before = static_cast<int>(gone.size());
    if (IsCounted(gpu)) {
      const auto going = gpu.shared.InTheWayOf(SlotsOf(gpu, profile));
      if (!going) return;
      const int count = before + static_cast<int>(going->size());
      if (best.gpu < 0 || count < best.in_the_way) best = {i, profile, 0, 0, count, switches};
      return;
    }
    const gpu::LayoutTable& table = Table(gpu);
    for (uint64_t rest = table.PlacementsOf(profile) & gpu.usable; rest != 0; rest &= rest - 1) {
      const auto placement = static_cast<gpu::PlacementId>(std::countr_zero(rest));
      const uint64_t against = Against(table, gpu.layout, placement);
      const gpu::LayoutId left = table.FromMembers(table.Members(gpu.layout) & ~against);
      if (table.Add(left, placement) == gpu::LayoutTable::kIllegal) continue;
      const int start = table.placements()[placement].start;
      const int count = before + std::popcount(against);
      const bool better =
          best.gpu < 0 || std::pair(count, -start) < std::pair(best.in_the_way, -best.start);
      if (better) best = {i, placement, against, start, count, switches};
    }
  }

  void TakeShare(FutureGpu& gpu, gpu::ProfileId profile) {
    SharedGpu& shared = gpu.shared;
    const int slots = SlotsOf(gpu, profile);
    const auto in_the_way = shared.InTheWayOf(slots);
    if (!in_the_way) return;
    for (const SharedGpu::InUse& going : *in_the_way) {
      place_.in_the_way.push_back(going.slot);
      shared.in_use.pop_back();
      shared.left += going.slots;
      ++shared.numbers;
    }
    shared.left -= slots;
    --shared.numbers;
  }

  const Draft& draft_;
  const Problem& problem_;
  const ProblemNode& node_;
  std::vector<FutureGpu> gpus_;
  FuturePlace place_;
};

bool CouldEverHold(const Problem& problem, int cls, int node) {
  const int64_t* capacity = &problem.capacity[static_cast<size_t>(node) * problem.dimensions];
  const std::vector<int64_t>& requests = problem.classes[cls].requests;
  for (size_t r = 0; r < problem.dimensions; ++r) {
    if (requests[r] > 0 && requests[r] > capacity[r]) return false;
  }
  return true;
}

}  // namespace

std::optional<FuturePlace> PlaceOnNode(const Draft& draft, int cls, int node) {
  const Problem& problem = draft.problem();
  const PodClass& c = problem.classes[cls];
  if (problem.nodes[node].slices_as_resources) return std::nullopt;
  if (!CouldEverHold(problem, cls, node)) return std::nullopt;
  NodePlan plan(draft, node);
  for (const SliceCount& s : c.slices) {
    for (int n = 0; n < s.count; ++n) {
      if (!plan.Take(s.slice)) return std::nullopt;
    }
  }
  FuturePlace place = std::move(plan).Finish();
  place.short_of_resources = !draft.HasResources(cls, node);
  return place;
}

namespace {

// A lower limit for the instances in the way of a slice on a GPU, cached by state because many GPUs
// are in equal states.
class LeastInTheWay {
 public:
  explicit LeastInTheWay(const Draft& draft) : draft_(draft) {}

  // kNever: the GPU cannot serve it.
  int Of(int gpu, uint16_t slice) {
    const GpuStateId state = draft_.gpu(gpu);
    const size_t at = state * draft_.problem().slices.size() + slice;
    if (at >= known_.size()) known_.resize(at + 1, kUnknown);
    if (known_[at] == kUnknown) known_[at] = Find(draft_.states().Get(state), slice);
    const ProblemGpu& facts = draft_.problem().gpus[gpu];
    if (!facts.may_repartition) return kNever;
    if (known_[at] != kNever || !MaySwitchFor(facts, slice)) return known_[at];
    return draft_.states().Get(state).alternative == kNoModel ? 1 : 0;
  }

  // A lower limit for the instances in the way of the class on this node.
  int OnNode(const PodClass& cls, const ProblemNode& node) {
    int most = 0;
    for (const SliceCount& s : cls.slices) {
      int least = kNever;
      for (int i = 0; i < node.gpu_count; ++i) {
        least = std::min(least, Of(node.first_gpu + i, s.slice));
      }
      most = std::max(most, least);
    }
    return most;
  }

  static constexpr int kNever = 1000;

 private:
  static constexpr int kUnknown = -1;

  // True if the GPU could serve the slice after it is empty.
  bool MaySwitchFor(const ProblemGpu& gpu, uint16_t slice) const {
    const std::vector<gpu::ProfileId>& profile = draft_.problem().slices[slice].profile;
    return gpu.alternative != kNoModel &&
           (profile[gpu.alternative] != kNoProfile || profile[gpu.model] != kNoProfile);
  }

  int Find(const GpuState& state, uint16_t slice) const {
    const gpu::ProfileId profile = draft_.problem().slices[slice].profile[state.model];
    if (profile == kNoProfile) return kNever;
    if (draft_.states().IsCounted(state.model)) {
      const gpu::Model& model = *draft_.problem().models[state.model];
      const Open open = Open::Of(state.usable);
      if (CopiesOfShare(model, Taken::Of(state.occupied), open, profile) > 0) return 0;
      return CopiesOfShare(model, {}, open, profile) > 0 ? 1 : kNever;
    }
    const gpu::LayoutTable& table = draft_.states().Layouts(state.model);
    int least = kNever;
    for (uint64_t rest = table.PlacementsOf(profile) & state.usable; rest != 0; rest &= rest - 1) {
      const auto placement = static_cast<gpu::PlacementId>(std::countr_zero(rest));
      least = std::min(least, std::popcount(Against(table, state.occupied, placement)));
    }
    return least;
  }

  const Draft& draft_;
  std::vector<int> known_;  // state x slice
};

}  // namespace

std::optional<FuturePlace> SoonestPlace(const Draft& draft, int cls) {
  const Problem& problem = draft.problem();
  std::optional<FuturePlace> best;
  const auto rank = [](const FuturePlace& p) {
    return std::tuple(p.in_the_way.size(), p.short_of_resources);
  };
  LeastInTheWay least(draft);
  const std::vector<bool>& allowed = problem.allowed[problem.classes[cls].allowed];
  for (int n = 0; n < static_cast<int>(problem.nodes.size()); ++n) {
    if (!allowed[n]) continue;
    const int at_least = least.OnNode(problem.classes[cls], problem.nodes[n]);
    if (at_least == LeastInTheWay::kNever) continue;
    if (best && static_cast<size_t>(at_least) > best->in_the_way.size()) continue;
    if (best && !best->short_of_resources &&
        static_cast<size_t>(at_least) == best->in_the_way.size()) {
      continue;
    }
    std::optional<FuturePlace> place = PlaceOnNode(draft, cls, n);
    if (place && (!best || rank(*place) < rank(*best))) best = std::move(place);
  }
  return best;
}

namespace {

int SlotsOn(const Problem& problem, const ProblemGpu& gpu, gpu::ProfileId profile) {
  return problem.models[gpu.model]->profile(profile).slots;
}

// True if the GPU must switch to serve the slice.
bool IsOfOther(const Problem& problem, const Device& device) {
  return problem.slices[device.slice].profile[problem.gpus[device.gpu].model] == kNoProfile;
}

// Slots of used shares in the way become free for the pod, so they are not kept in addition.
void KeepForShares(Problem& problem, const FuturePlace& place) {
  struct Kept {
    int slots = 0, shares = 0;
  };
  std::map<int, Kept> more;  // by GPU
  for (const Device& d : place.devices) {
    const ProblemGpu& gpu = problem.gpus[d.gpu];
    const bool shared = problem.models[gpu.model]->counted() && !IsOfOther(problem, d);
    if (!shared) continue;
    more[d.gpu].slots += SlotsOn(problem, gpu, d.placement);
    ++more[d.gpu].shares;
  }
  for (const SlotInTheWay& slot : place.in_the_way) {
    const ProblemGpu& gpu = problem.gpus[slot.gpu];
    const auto kept = more.find(slot.gpu);
    if (kept == more.end()) continue;
    kept->second.slots -= SlotsOn(problem, gpu, slot.placement);
    --kept->second.shares;
  }
  for (const auto& [gpu, kept] : more) {
    problem.gpus[gpu].kept_slots += std::max(0, kept.slots);
    problem.gpus[gpu].kept_shares += std::max(0, kept.shares);
  }
}

}  // namespace

void Block(Problem& problem, const FuturePlace& place, int cls) {
  for (const Device& d : place.devices) {
    ProblemGpu& gpu = problem.gpus[d.gpu];
    if (IsOfOther(problem, d)) {  // block the whole GPU until it is empty
      gpu.blocked = ~uint64_t{0};
      gpu.kept_slots = problem.models[gpu.model]->slots();
    } else if (!problem.models[gpu.model]->counted()) {
      gpu.blocked |= NodePlan::Conflicts(problem.models[gpu.model]->layouts(), d.placement);
    }
  }
  KeepForShares(problem, place);
  int64_t* free = &problem.free[static_cast<size_t>(place.node) * problem.dimensions];
  for (size_t r = 0; r < problem.dimensions; ++r) {
    free[r] = std::max(free[r] - problem.classes[cls].requests[r], -kPlenty);
  }
}

}  // namespace nos::planning
