#include "planning/explanation/remedy.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <set>
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
// Kinds of changes; of equally many changes the first kind is preferred.
enum class Kind { kWait, kFreeResource, kLiftFilter, kOptIn, kBiggerNode };

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
    if (std::optional<Remedy> impossible = Impossible()) return *std::move(impossible);
    for (int n = 0; n < static_cast<int>(t_.nodes.size()) && !NothingSmaller(); ++n) {
      if (!allowance_.Spend(kStepsOfNode)) return {};
      if (NeedsOptIn(t_, cls_, n)) {
        OptIn(n);
      } else if (input_.has_room[n].value_or(false)) {
        SlicesFit(n);
      } else if (input_.obstacles[n].empty()) {
        WaitForInstances(n);
      }
    }
    if (changes_ > 0) return std::move(remedy_);
    // No existing node would do.
    if (!cls_.slices.empty()) return demand_.ForNoNode();
    return {scheduling::remedies::kAddNode,
            "add a node that meets the pod's requests and constraints"};
  }

 private:
  const std::string& NameOf(int node) const { return t_.nodes[node]->node->meta.name; }
  bool NothingSmaller() const { return changes_ == 1 && kind_ == Kind::kWait; }

  bool IsBetter(size_t changes, Kind kind) const {
    return changes_ == 0 || std::tuple(changes, kind) < std::tuple(changes_, kind_);
  }
  void Offer(size_t changes, Kind kind, Remedy remedy) {
    changes_ = changes;
    kind_ = kind;
    remedy_ = std::move(remedy);
  }

  // More than any node has, whatever its hardware.
  std::optional<Remedy> Impossible() const {
    if (std::optional<Remedy> impossible = demand_.Impossible()) return impossible;
    for (size_t r = 0; r < cls_.requests.size(); ++r) {
      auto less =
          scheduling::RequestLess(cluster::ResourceName(t_.dimensions[r]), cls_.requests[r]);
      for (size_t n = 0; n < t_.nodes.size() && less; ++n) {
        if (CapacityOf(static_cast<int>(n), r) >= cls_.requests[r]) less.reset();
      }
      if (less) return less;
    }
    return std::nullopt;
  }
  int64_t CapacityOf(int node, size_t dimension) const {
    return t_.problem.capacity[static_cast<size_t>(node) * t_.problem.dimensions + dimension];
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
    if (!passes) {
      if (LackingDimension(after_, class_, node) < 0) LiftFilters(node);
      return;
    }
    if (LackingDimension(after_, class_, node) < 0) return WaitForReservation(node);
    FreeResources(node);
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
    Offer(1, Kind::kBiggerNode, scheduling::AddLargerNode(too_much, NameOf(node)));
  }

  void FreeOn(int node) {
    std::vector<std::string> missing;
    for (const int r : LackingDimensions(node)) {
      const int64_t free = std::max<int64_t>(0, after_.FreeOf(node)[r]);
      missing.push_back(
          scheduling::AmountText(cluster::ResourceName(t_.dimensions[r]), cls_.requests[r] - free));
    }
    Remedy remedy = scheduling::FreeResources(missing, NameOf(node));
    if (!cls_.slices.empty()) remedy.text += ": its GPUs have room";
    Offer(missing.size(), Kind::kFreeResource, std::move(remedy));
  }

  void LiftFilters(int node) {
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
    const size_t changes = steps.size() + others;
    if (!IsBetter(changes, Kind::kLiftFilter)) return;
    for (const auto& o : input_.obstacles[node]) is_cheap(o) ? (void)0 : add(o);
    Offer(changes, Kind::kLiftFilter,
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

  void WaitForInstances(int node) {
    for (const SliceCount& s : cls_.slices) {
      if (!NodeHasProfile(t_.problem, node, s.slice)) return;
    }
    const int64_t slices = t_.problem.shapes[cls_.shape].slice_count;
    allowance_.Spend(slices * t_.problem.nodes[node].gpu_count * kStepsOfPlace);
    const std::optional<FuturePlace> place = PlaceOnNode(after_, class_, node);
    if (!place || place->in_the_way.empty()) return;
    std::set<std::string> holders;
    size_t changes = place->short_of_resources ? 1 : 0;
    for (const SlotInTheWay& slot : place->in_the_way) {
      const std::string holder = HolderOf(t_, input_.result, slot);
      if (holder.empty() || holders.insert(holder).second) ++changes;
    }
    if (!IsBetter(changes, Kind::kWait)) return;
    Offer(changes, Kind::kWait,
          scheduling::WaitForPods(InTheWayText(t_, input_.result, *place), NameOf(node)));
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
