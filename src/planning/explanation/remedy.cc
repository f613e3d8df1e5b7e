#include "planning/explanation/remedy.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "cluster/annotations.h"
#include "planning/explanation/wording.h"
#include "scheduling/plugins/node_resources_fit/fit.h"
#include "scheduling/pod_names.h"
#include "scheduling/steps.h"

namespace nos::planning {

using scheduling::Remedy;

namespace {

int64_t CapacityOf(const Problem& problem, int node, size_t dimension) {
  return problem.capacity[static_cast<size_t>(node) * problem.dimensions + dimension];
}

}  // namespace

std::optional<Remedy> ForImpossible(const Translation& t, const PodClass& cls,
                                    const scheduling::SliceDemand& demand) {
  if (std::optional<Remedy> impossible = demand.Impossible()) return impossible;
  for (size_t r = 0; r < cls.requests.size(); ++r) {
    auto less = scheduling::RequestLess(cluster::ResourceName(t.dimensions[r]), cls.requests[r]);
    for (size_t n = 0; n < t.nodes.size() && less; ++n) {
      if (CapacityOf(t.problem, static_cast<int>(n), r) >= cls.requests[r]) less.reset();
    }
    if (less) return less;
  }
  return std::nullopt;
}

bool NodeHasProfile(const Problem& problem, int node, uint16_t slice) {
  const ProblemNode& where = problem.nodes[node];
  for (int g = where.first_gpu; g < where.first_gpu + where.gpu_count; ++g) {
    const std::vector<gpu::ProfileId>& profile = problem.slices[slice].profile;
    const ProblemGpu& gpu = problem.gpus[g];
    if (profile[gpu.model] != kNoProfile) return true;
    if (gpu.other != kNoModel && profile[gpu.other] != kNoProfile) return true;
  }
  return false;
}

bool AdvertisesSlices(const Translation& t, const PodClass& cls, int node) {
  if (!t.problem.nodes[node].slices_as_resources) return false;
  for (size_t r = 0; r < cls.requests.size(); ++r) {
    const bool slice = cls.requests[r] > 0 && cluster::IsSliceResource(t.dimensions[r]);
    if (slice && CapacityOf(t.problem, node, r) > 0) return true;
  }
  return false;
}

bool NeedsOptIn(const Translation& t, const PodClass& cls, int node) {
  return !cls.slices.empty() && !t.nodes[node]->gpus.managed && !AdvertisesSlices(t, cls, node);
}

int LackingDimension(const Draft& draft, int cls, int node) {
  const std::vector<int64_t>& requests = draft.problem().classes[cls].requests;
  for (size_t r = 0; r < requests.size(); ++r) {
    if (requests[r] > 0 && requests[r] > draft.FreeOf(node)[r]) return static_cast<int>(r);
  }
  return -1;
}

namespace {

// Steps of the allowance: to check a node; to search a place for a slice on a GPU; to name pods.
constexpr int64_t kStepsOfNode = 3, kStepsOfPlace = 10, kStepsOfText = 100;
// Kinds of changes; of equally many changes the first kind is preferred. The last is worse than any
// number of others: on a node that filters exclude and that is full.
enum class Kind { kWait, kLiftFilter, kOptIn, kLiftAndFree };

class RemedyFinder {
 public:
  RemedyFinder(const RemedyInput& input, int cls, Allowance& allowance)
      : input_(input),
        allowance_(allowance),
        t_(input.translation),
        class_(cls),
        cls_(t_.problem.classes[cls]),
        demand_(DemandOf(t_, cls_, [&](int64_t steps) { allowance.Spend(steps); })),
        after_(input.result.draft) {}

  Remedy Find() {
    // A pod that fits on no node whatever the changes needs no further checks.
    if (std::optional<Remedy> impossible = ForImpossible(t_, cls_, demand_)) {
      return *std::move(impossible);
    }
    for (int n = 0; n < static_cast<int>(t_.nodes.size()) && !NothingSmaller(); ++n) {
      if (!allowance_.Spend(kStepsOfNode)) return {};
      if (NeedsOptIn(t_, cls_, n)) {
        OptIn(n);
      } else if (input_.has_room[n].value_or(false)) {
        SlicesFit(n);
      } else if (input_.obstacles[n].empty()) {
        WaitForInstances(n);
      } else {
        LiftFiltersAndWait(n);
      }
    }
    if (changes_ > 0) return std::move(remedy_);
    return demand_.ForNoNode(Example(), input_.snapshot);
  }

 private:
  const std::string& NameOf(int node) const { return t_.nodes[node]->node->meta.name; }
  bool NothingSmaller() const { return changes_ == 1 && kind_ == Kind::kWait; }

  bool IsBetter(size_t changes, Kind kind) const {
    const auto rank = [](size_t count, Kind of) {
      return std::tuple(std::max(of, Kind::kOptIn), count, of);
    };
    return changes_ == 0 || rank(changes, kind) < rank(changes_, kind_);
  }
  void Offer(size_t changes, Kind kind, Remedy remedy) {
    changes_ = changes;
    kind_ = kind;
    remedy_ = std::move(remedy);
  }

  int64_t CapacityOf(int node, size_t dimension) const {
    return planning::CapacityOf(t_.problem, node, dimension);
  }

  const cluster::Pod& Example() const { return *t_.pending[t_.members[class_][0]]; }

  void OptIn(int node) {
    if (!input_.obstacles[node].empty() || !IsBetter(1, Kind::kOptIn)) return;
    if (LacksOther(node)) return;
    if (auto remedy = demand_.OptIn(*t_.nodes[node], Example())) {
      Offer(1, Kind::kOptIn, *std::move(remedy));
    }
  }

  // Lacks a resource other than slices.
  bool LacksOther(int node) const {
    for (size_t r = 0; r < cls_.requests.size(); ++r) {
      const int64_t asked = cls_.requests[r];
      const bool lacks = asked > 0 && asked > after_.FreeOf(node)[r];
      if (lacks && !cluster::IsSliceResource(t_.dimensions[r])) return true;
    }
    return false;
  }

  std::vector<int> LackingDimensions(int node) const {
    std::vector<int> lacking;
    for (size_t r = 0; r < cls_.requests.size(); ++r) {
      const int64_t asked = cls_.requests[r];
      if (asked > 0 && asked > after_.FreeOf(node)[r]) lacking.push_back(static_cast<int>(r));
    }
    return lacking;
  }

  // The GPUs have capacity; looks for other obstacles.
  void SlicesFit(int node) {
    const bool passes = input_.obstacles[node].empty();
    const bool lacks = LackingDimension(after_, class_, node) >= 0;
    if (!passes) return lacks ? LiftFiltersAndFree(node) : LiftFilters(node, {});
    lacks ? WaitForResources(node) : WaitForReservation(node);
  }

  // Only resources beside slices are missing, which pods hold.
  void WaitForResources(int node) {
    if (!IsBetter(1, Kind::kWait) || IsTooSmall(node)) return;
    const size_t most = changes_ == 0 || kind_ != Kind::kWait ? SIZE_MAX : changes_ - 1;
    const auto pods = input_.holding.Fewest(class_, node, after_, most, allowance_);
    if (pods.empty() || !IsBetter(pods.size(), Kind::kWait)) return;
    allowance_.Spend(kStepsOfText);
    Offer(pods.size(), Kind::kWait, scheduling::WaitForPods(TextOf(pods), NameOf(node)));
  }
  std::string TextOf(const std::vector<Holder>& pods) const {
    std::vector<std::string> keys;
    for (const Holder& pod : pods) keys.push_back(KeyOf(t_, input_.result, pod));
    return scheduling::NamesOf(keys, scheduling::kAllReaders);
  }

  // Pods that can be evicted do not hold all that is missing.
  bool IsTooSmall(int node) const {
    for (size_t r = 0; r < cls_.requests.size(); ++r) {
      const int64_t asked = cls_.requests[r];
      if (asked <= 0 || asked <= after_.FreeOf(node)[r]) continue;
      if (MostOn(node, static_cast<int>(r)) < asked) return true;
    }
    return false;
  }

  // The amount that the node has for the pod once all pods that can be evicted have left.
  int64_t MostOn(int node, int dimension) const {
    const int64_t capacity = CapacityOf(node, static_cast<size_t>(dimension));
    if (capacity < cls_.requests[dimension]) return capacity;
    return capacity - scheduling::LastinglyHeld(*t_.nodes[node], t_.dimensions[dimension]);
  }

  Remedy Freed(int node, const std::vector<int>& lacking) const {
    std::vector<std::string> missing;
    for (const int r : lacking) {
      const int64_t free = std::max<int64_t>(0, after_.FreeOf(node)[r]);
      missing.push_back(
          scheduling::AmountText(cluster::ResourceName(t_.dimensions[r]), cls_.requests[r] - free));
    }
    return scheduling::FreeResources(missing, NameOf(node));
  }
  // Changes that a node needs beside those for its filters.
  struct Beside {
    Kind kind = Kind::kLiftFilter;
    size_t changes = 0;
    std::string text = {};
  };
  void LiftFilters(int node, const Beside& beside) {
    if (!scene_) {
      scene_ =
          scheduling::Scene{input_.snapshot, Example(), "", std::string(scheduling::kAllReaders)};
    }
    scene_->node = NameOf(node);
    std::vector<std::string> steps;
    bool opens = true;
    const auto add = [&](const scheduling::Verdict& obstacle) {
      for (const auto& step : scheduling::StepsFor({obstacle.code, obstacle.message}, *scene_)) {
        if (std::ranges::find(steps, step.text) == steps.end()) steps.push_back(step.text);
        opens = opens && step.opens;
      }
    };
    // Other steps are expensive to find, and each obstacle has one.
    const auto is_cheap = [](const scheduling::Verdict& obstacle) {
      return obstacle.code == scheduling::codes::kNodeUnschedulable ||
             obstacle.code == scheduling::codes::kTainted;
    };
    size_t others = 0;
    for (const auto& o : input_.obstacles[node]) is_cheap(o) ? add(o) : (void)++others;
    const size_t changes = steps.size() + others + beside.changes;
    if (!IsBetter(changes, beside.kind)) return;
    for (const auto& o : input_.obstacles[node]) is_cheap(o) ? (void)0 : add(o);
    opens = opens && beside.changes == 0;
    if (!beside.text.empty()) steps.push_back(beside.text);
    Offer(changes, beside.kind,
          {scheduling::remedies::kLiftConstraints,
           Join(steps, ", and ") + (opens ? ": it has room" : "")});
  }

  void WaitForReservation(int node) {
    bool kept = false;
    for (const Reservation& r : input_.result.reservations) {
      if (r.place.node != node) continue;
      kept = true;
      if (!IsBetter(1, Kind::kWait)) continue;
      Offer(1, Kind::kWait,
            {scheduling::remedies::kWaitForReservation,
             fmt::format("wait until {} is served: room on node {} is kept for it",
                         scheduling::PodText(t_.pending[t_.members[r.cls].back()]->Key()),
                         NameOf(node))});
    }
    if (kept || !IsBetter(1, Kind::kWait)) return;
    Offer(1, Kind::kWait,
          {scheduling::remedies::kRaisePlanTimeout,
           fmt::format("raise planTimeoutSeconds of the partitioner: node {} has room",
                       NameOf(node))});
  }

  // Pods that must end so that the node's GPUs hold the slices.
  struct Wait {
    size_t pods = 0;
    FuturePlace place;
  };
  // Nullopt too if the remedy known so far is better, with `beside` further changes.
  std::optional<Wait> WaitOn(int node, Kind kind, size_t beside) const {
    if (!IsBetter(beside + 1, kind)) return std::nullopt;
    for (const SliceCount& s : cls_.slices) {
      if (!NodeHasProfile(t_.problem, node, s.slice)) return std::nullopt;
    }
    const int64_t slices = t_.problem.shapes[cls_.shape].slice_count;
    allowance_.Spend(slices * t_.problem.nodes[node].gpu_count * kStepsOfPlace);
    std::optional<FuturePlace> place = PlaceOnNode(after_, class_, node);
    if (!place || place->in_the_way.empty()) return std::nullopt;
    if (place->short_of_resources && IsTooSmall(node)) return std::nullopt;
    const std::vector<Holder> holders = HoldersOf(t_, input_.result, *place);
    const bool by_mates = std::ranges::any_of(holders, [&](const Holder& holder) {
      return holder.planned >= 0 && IsMate(t_, after_.pods()[holder.planned].cls, class_);
    });
    if (by_mates || !IsBetter(beside + holders.size(), kind)) return std::nullopt;
    const bool others = LacksBeyondHolders(t_, input_.result, class_, *place, holders);
    const size_t pods = holders.size() + (others ? 1 : 0);
    if (!IsBetter(beside + pods, kind)) return std::nullopt;
    return Wait{pods, *std::move(place)};
  }
  Remedy TextOf(const Wait& wait) const {
    return scheduling::WaitForPods(InTheWayText(t_, input_.result, class_, wait.place),
                                   NameOf(wait.place.node));
  }

  void WaitForInstances(int node) {
    const std::optional<Wait> wait = WaitOn(node, Kind::kWait, 0);
    if (wait) Offer(wait->pods, Kind::kWait, TextOf(*wait));
  }

  // Filters object to the node, and its GPUs have no room.
  void LiftFiltersAndWait(int node) {
    const std::optional<Wait> wait = WaitOn(node, Kind::kLiftAndFree, 1);
    if (wait) LiftFilters(node, {Kind::kLiftAndFree, wait->pods, TextOf(*wait).text});
  }

  // The same where only other resources are missing.
  void LiftFiltersAndFree(int node) {
    const std::vector<int> lacking = LackingDimensions(node);
    if (!IsBetter(1 + lacking.size(), Kind::kLiftAndFree)) return;
    if (IsTooSmall(node)) return;
    LiftFilters(node, {Kind::kLiftAndFree, lacking.size(), Freed(node, lacking).text});
  }

  const RemedyInput& input_;
  Allowance& allowance_;
  const Translation& t_;
  const int class_;
  const PodClass& cls_;
  const scheduling::SliceDemand demand_;
  const Draft& after_;
  std::optional<scheduling::Scene> scene_;
  size_t changes_ = 0;  // number of changes of the best remedy so far; 0: none found
  Kind kind_ = Kind::kWait;
  Remedy remedy_;
};

}  // namespace

Remedy FindRemedy(const RemedyInput& input, int cls, Allowance& allowance) {
  return RemedyFinder(input, cls, allowance).Find();
}

}  // namespace nos::planning
