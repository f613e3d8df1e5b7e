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

bool NeedsOptIn(const Translation& t, const PodClass& cls, int node) {
  if (cls.slices.empty() || t.nodes[node]->gpus.managed) return false;
  if (!t.problem.nodes[node].slices_as_resources) return true;
  for (size_t r = 0; r < cls.requests.size(); ++r) {
    const bool slice = cls.requests[r] > 0 && cluster::IsSliceResource(t.dimensions[r]);
    const size_t at = static_cast<size_t>(node) * t.problem.dimensions + r;
    if (slice && t.problem.capacity[at] > 0) return false;
  }
  return true;
}

int LackingDimension(const Draft& draft, int cls, int node) {
  const std::vector<int64_t>& requests = draft.problem().classes[cls].requests;
  for (size_t r = 0; r < requests.size(); ++r) {
    if (requests[r] > 0 && requests[r] > draft.FreeOf(node)[r]) return static_cast<int>(r);
  }
  return -1;
}

namespace {

// Steps of the allowance: to check a node; to search a place for a slice on a GPU.
constexpr int64_t kStepsOfNode = 3, kStepsOfPlace = 5;
// Kinds of changes; of equally many changes the first kind is preferred. The last two are worse
// than any number of others: on a node that filters exclude and that is full, and on a node yet to
// come.
enum class Kind { kWait, kFreeResource, kLiftFilter, kOptIn, kLiftAndFree, kBiggerNode };

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
    return NewNode();
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

  // No existing node would do.
  Remedy NewNode() const {
    if (!cls_.slices.empty()) {
      Remedy remedy = demand_.ForNoNode();
      if (remedy.code != scheduling::remedies::kAddNode) return remedy;
      for (const std::string& amount : TooMuchOfAny()) remedy.text += " and " + amount;
      return remedy;
    }
    const cluster::Pod& pod = *t_.pending[t_.members[class_][0]];
    std::vector<std::string> labels;
    for (const auto& [key, value] : pod.node_selector) {
      labels.push_back(fmt::format("label {}={}", key, value));
    }
    std::vector<int> asked;
    for (size_t r = 0; r < cls_.requests.size(); ++r) {
      if (cls_.requests[r] > 0 && t_.dimensions[r] != cluster::kPods) {
        asked.push_back(static_cast<int>(r));
      }
    }
    std::string text = "add a node that the pod may use";
    if (!labels.empty()) text += ", with " + Join(labels, " and ");
    if (!asked.empty()) {
      text += labels.empty() ? ", with at least " : " and at least ";
      text += Join(Amounts(asked), " and ");
    }
    return {scheduling::remedies::kAddNode, std::move(text)};
  }

  // Dimensions beside slices of which the node has too little, even when empty.
  std::vector<int> NeverEnough(int node) const {
    std::vector<int> dimensions;
    for (size_t r = 0; r < cls_.requests.size(); ++r) {
      const int dimension = static_cast<int>(r);
      if (cls_.requests[r] <= 0 || t_.dimensions[r] == cluster::kPods || IsSlice(dimension)) {
        continue;
      }
      if (MostOn(node, dimension) < cls_.requests[r]) {
        dimensions.push_back(dimension);
      }
    }
    return dimensions;
  }
  bool IsSlice(int dimension) const {
    const cluster::ResourceId id = t_.dimensions[dimension];
    return cluster::IsSliceResource(id) ||
           std::ranges::any_of(cls_.slices, [&](const SliceCount& s) {
             return t_.slice_names[s.slice] == cluster::ResourceName(id);
           });
  }
  // Requests of which the most suitable node has never enough.
  std::vector<std::string> TooMuchOfAny() const {
    std::optional<std::tuple<bool, size_t>> best;
    std::vector<int> lacking;
    for (int n = 0; n < static_cast<int>(t_.nodes.size()); ++n) {
      allowance_.Spend(kStepsOfNode);
      const bool suits = std::ranges::all_of(
          cls_.slices, [&](const SliceCount& s) { return NodeHasProfile(t_.problem, n, s.slice); });
      std::vector<int> here = NeverEnough(n);
      const std::tuple<bool, size_t> rank(!suits, here.size());
      if (best && *best <= rank) continue;
      best = rank;
      lacking = std::move(here);
    }
    return Amounts(lacking);
  }
  std::vector<std::string> Amounts(const std::vector<int>& dimensions) const {
    std::vector<std::string> amounts;
    for (const int r : dimensions) {
      amounts.push_back(
          scheduling::AmountText(cluster::ResourceName(t_.dimensions[r]), cls_.requests[r]));
    }
    return amounts;
  }

  void OptIn(int node) {
    if (!input_.obstacles[node].empty() || !IsBetter(1, Kind::kOptIn)) return;
    if (LacksOther(node)) return;
    if (auto remedy = demand_.OptIn(*t_.nodes[node]->node)) {
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
    lacks ? FreeResources(node) : WaitForReservation(node);
  }

  // Counts first: texts are rendered only for a better remedy, because this runs for every node.
  void FreeResources(int node) {
    if (!IsBetter(1, Kind::kFreeResource)) return;
    size_t lacking = 0;
    bool too_small = false;
    for (size_t r = 0; r < cls_.requests.size(); ++r) {
      if (cls_.requests[r] <= 0 || cls_.requests[r] <= after_.FreeOf(node)[r]) continue;
      ++lacking;
      too_small = too_small || MostOn(node, static_cast<int>(r)) < cls_.requests[r];
      if (too_small && !IsBetter(1, Kind::kBiggerNode)) return;
    }
    if (too_small) {
      ReplaceNode(node);
    } else if (IsBetter(lacking, Kind::kFreeResource)) {
      FreeOn(node);
    }
  }

  // The amount that the node has for the pod once all pods that can be evicted have left.
  int64_t MostOn(int node, int dimension) const {
    const int64_t capacity = CapacityOf(node, static_cast<size_t>(dimension));
    if (capacity < cls_.requests[dimension]) return capacity;
    return capacity - scheduling::LastinglyHeld(*t_.nodes[node], t_.dimensions[dimension]);
  }

  void ReplaceNode(int node) {
    std::vector<scheduling::TooMuch> too_much;
    for (const int r : LackingDimensions(node)) {
      const cluster::ResourceId id = t_.dimensions[r];
      const int64_t kept = scheduling::LastinglyHeld(*t_.nodes[node], id);
      const int64_t total = CapacityOf(node, static_cast<size_t>(r)) - kept;
      if (total < cls_.requests[r]) {
        too_much.push_back({cluster::ResourceName(id), cls_.requests[r], total, kept > 0,
                            scheduling::IsKeptForMig(id, *t_.nodes[node])});
      }
    }
    Remedy larger = scheduling::AddLargerNode(too_much, NameOf(node));
    if (!cls_.slices.empty() && larger.code == scheduling::remedies::kAddNode) {
      larger.text += fmt::format("; the new node also needs GPUs for {}", demand_.Text());
    }
    Offer(1, Kind::kBiggerNode, std::move(larger));
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
  void FreeOn(int node) {
    const std::vector<int> lacking = LackingDimensions(node);
    Remedy remedy = Freed(node, lacking);
    if (!cls_.slices.empty()) remedy.text += ": its GPUs have room";
    Offer(lacking.size(), Kind::kFreeResource, std::move(remedy));
  }

  // Changes that a node needs beside those for its filters.
  struct Beside {
    Kind kind = Kind::kLiftFilter;
    size_t changes = 0;
    std::string text = {};
  };
  void LiftFilters(int node, const Beside& beside) {
    if (!scene_) {
      scene_ = scheduling::Scene{input_.snapshot, *t_.pending[t_.members[class_][0]], "",
                                 NamespaceOfAll()};
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

  // Readers of the remedy may see pods of this namespace only.
  std::string NamespaceOfAll() const {
    const std::string& first = t_.pending[t_.members[class_][0]]->meta.ns;
    const bool same = std::ranges::all_of(
        t_.members[class_], [&](int pod) { return t_.pending[pod]->meta.ns == first; });
    return same ? first : "/";  // no namespace
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
    const std::vector<Holder> holders = HoldersOf(t_, input_.result, *place);
    if (!IsBetter(beside + holders.size(), kind)) return std::nullopt;
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
    const bool too_small =
        std::ranges::any_of(lacking, [&](int r) { return MostOn(node, r) < cls_.requests[r]; });
    if (too_small) return;
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
