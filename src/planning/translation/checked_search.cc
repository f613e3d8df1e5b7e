#include "planning/translation/checked_search.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "planning/translation/gang_assembly.h"
#include "planning/translation/gangs.h"

namespace nos::planning {
namespace {

// Limit of searches with gangs assembled pod by pod, and of pairs of pod and node that are checked
// for it, at some microseconds each. Further gangs wait for the next plan.
constexpr int kMaxAssembled = 16;
constexpr int64_t kMaxLooks = 500'000;
// Limit per gang, so that an unsuccessful gang leaves some for the others.
constexpr int64_t kMaxLooksForOne = kMaxLooks / 4;

class CheckedSearch {
 public:
  CheckedSearch(PlanChecker& checker, int max_reservations, Translation& translation,
                GpuStates& states, const std::function<bool()>& out_of_time)
      : checker_(checker),
        max_reservations_(max_reservations),
        t_(translation),
        states_(states),
        out_of_time_(out_of_time) {}

  StagedResult Run() {
    // 1. The plan of the search, repeated until all filters accept it.
    StagedResult result = Search();
    // 2. Incomplete gangs whose pods depend on each other are placed pod by pod, most urgent first:
    //    beside all placed pods if possible, else displacing less urgent ones.
    const int gangs = static_cast<int>(t_.problem.gangs.size());
    for (int gang = 0; gang < gangs && assembled_ < kMaxAssembled && looks_ > 0; ++gang) {
      if (IsWhole(gang, result) || !IsLiveGang(gang)) continue;
      const int level = LevelOf(gang);
      if (Assemble(gang, std::numeric_limits<int>::max(), result)) continue;
      if (HasPlacedFrom(level, result)) Assemble(gang, level, result);  // displaces other pods
    }
    return result;
  }

 private:
  // Repeats until the live filters accept the plan.
  StagedResult Search() {
    int waiting = 0;
    for (const PodClass& cls : t_.problem.classes) waiting += cls.count;
    for (int round = 1;; ++round) {
      StagedResult result = SearchWithGangs(t_.problem, states_, max_reservations_, out_of_time_);
      const auto objections = checker_.FindObjections(t_, result);
      if (objections.empty()) {
        // Rejected pairs might have been possible in another order.
        if (round > 1 && result.draft.placed() < waiting) result.complete = false;
        return result;
      }
      ApplyObjections(objections, round, t_);
    }
  }

  // True if the plan improves when the gang's pods are assigned one by one; then it becomes the
  // result. `below`: as in AssembleGang.
  bool Assemble(int gang, int below, StagedResult& result) {
    if (out_of_time_()) return false;
    const int64_t most = std::min(looks_, kMaxLooksForOne);
    int64_t looks = most;
    const std::vector<GangAssignment> assignments =
        AssembleGang(checker_, t_, result, below, gang, states_, out_of_time_, looks);
    looks_ -= most - looks;
    if (assignments.empty()) return false;
    ++assembled_;
    const std::vector<std::vector<bool>> allowed = t_.problem.allowed;
    auto objections = std::exchange(t_.objections, {});  // may be very large, so it is not copied
    RestrictTo(assignments);
    StagedResult other = Search();
    other.complete = false;
    other.upper_bound = std::max(other.upper_bound, result.upper_bound);
    if (other.draft.score() > result.draft.score()) {
      result = std::move(other);
      t_.objections.merge(objections);
      return true;
    }
    t_.problem.allowed = allowed;
    t_.objections = std::move(objections);
    t_.problem.IndexShapes();
    return false;
  }

  // Restricts these pods to their assigned nodes.
  void RestrictTo(const std::vector<GangAssignment>& assignments) {
    for (const GangAssignment& assignment : assignments) {
      const int index = t_.problem.classes[assignment.cls].allowed;
      if (!t_.live_rows.contains(index)) continue;         // no filter depends on its node
      std::vector<bool>& row = t_.problem.allowed[index];  // only this pod has this row
      row.assign(row.size(), false);
      row[assignment.node] = true;
    }
    t_.problem.IndexShapes();
  }

  bool IsWhole(int gang, const StagedResult& result) const {
    return result.gangs_found[gang] >= t_.problem.gangs[gang].lacking;
  }
  // True if live filters apply to its pods.
  bool IsLiveGang(int gang) const {
    return std::ranges::any_of(t_.problem.classes, [&](const PodClass& cls) {
      return cls.gang == gang && t_.live_rows.contains(cls.allowed);
    });
  }
  // True if a pod of this or a less urgent level is placed.
  bool HasPlacedFrom(int level, const StagedResult& result) const {
    return std::ranges::any_of(result.draft.pods(), [&](const PlacedPod& pod) {
      return pod.alive && t_.problem.classes[pod.cls].level >= level;
    });
  }
  int LevelOf(int gang) const {
    const auto cls = std::ranges::find_if(
        t_.problem.classes, [&](const PodClass& c) { return c.gang == gang && !c.extra; });
    return cls == t_.problem.classes.end() ? 0 : cls->level;
  }

  PlanChecker& checker_;
  const int max_reservations_;
  Translation& t_;
  GpuStates& states_;
  const std::function<bool()>& out_of_time_;
  int assembled_ = 0;
  int64_t looks_ = kMaxLooks;
};

}  // namespace

StagedResult SearchAndCheck(PlanChecker& checker, int max_reservations, Translation& translation,
                            GpuStates& states, const std::function<bool()>& out_of_time) {
  return CheckedSearch(checker, max_reservations, translation, states, out_of_time).Run();
}

}  // namespace nos::planning
