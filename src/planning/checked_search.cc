#include "planning/checked_search.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "planning/gang_assembly.h"
#include "planning/gangs.h"

namespace nos::planning {
namespace {

constexpr int kMostAssembled = 16;  // gangs; then the others wait for the next plan

class CheckedSearch {
 public:
  CheckedSearch(PlanChecker& checker, int most_reservations, Translation& translation,
                GpuStates& states, const std::function<bool()>& out_of_time)
      : checker_(checker),
        most_reservations_(most_reservations),
        t_(translation),
        states_(states),
        out_of_time_(out_of_time) {}

  StagedResult Run() {
    StagedResult result = Search();
    int left = kMostAssembled;
    for (size_t gang = 0; gang < t_.problem.gangs.size() && left > 0; ++gang) {
      if (IsWhole(static_cast<int>(gang), result) || !IsLiveGang(static_cast<int>(gang))) continue;
      --left;
      const int level = LevelOf(static_cast<int>(gang));
      if (Assemble(static_cast<int>(gang), std::numeric_limits<int>::max(), result)) continue;
      Assemble(static_cast<int>(gang), level, result);  // at the cost of others
    }
    return result;
  }

 private:
  // Until the live filters agree.
  StagedResult Search() {
    int waiting = 0;
    for (const PodClass& cls : t_.problem.classes) waiting += cls.count;
    for (int round = 1;; ++round) {
      StagedResult result = SearchWithGangs(t_.problem, states_, most_reservations_, out_of_time_);
      const auto objections = checker_.FindObjections(t_, result);
      if (objections.empty()) {
        // What was ruled out on the way might have been possible in another order.
        if (round > 1 && result.draft.placed() < waiting) result.complete = false;
        return result;
      }
      Heed(objections, round, t_);
    }
  }

  // Whether the plan is better with the gang's pods where each finds a place beside the others;
  // then it is the result. `below`: as AssembleGang has it.
  bool Assemble(int gang, int below, StagedResult& result) {
    if (out_of_time_()) return false;
    const std::vector<Seating> seats =
        AssembleGang(checker_, t_, result, below, gang, states_, out_of_time_);
    if (seats.empty()) return false;
    const std::vector<std::vector<bool>> allowed = t_.problem.allowed;
    const auto objections = t_.objections;
    Seat(seats);
    StagedResult other = Search();
    other.complete = false;
    other.upper_bound = std::max(other.upper_bound, result.upper_bound);
    if (other.draft.score() > result.draft.score()) {
      result = std::move(other);
      return true;
    }
    t_.problem.allowed = allowed;
    t_.objections = objections;
    t_.problem.IndexShapes();
    return false;
  }

  // From now on these pods may be on their nodes only.
  void Seat(const std::vector<Seating>& seats) {
    for (const Seating& seat : seats) {  // live pods have a row each
      std::vector<bool>& row = t_.problem.allowed[t_.problem.classes[seat.cls].allowed];
      row.assign(row.size(), false);
      row[seat.node] = true;
    }
    t_.problem.IndexShapes();
  }

  bool IsWhole(int gang, const StagedResult& result) const {
    int placed = 0;
    for (size_t c = 0; c < t_.problem.classes.size(); ++c) {
      const PodClass& cls = t_.problem.classes[c];
      if (cls.gang == gang && !cls.extra) placed += result.draft.PlacedOf(static_cast<int>(c));
    }
    return placed >= t_.problem.gangs[gang].lacking;
  }
  // Whether live filters concern its pods.
  bool IsLiveGang(int gang) const {
    return std::ranges::any_of(t_.problem.classes, [&](const PodClass& cls) {
      return cls.gang == gang && t_.live_rows.contains(cls.allowed);
    });
  }
  int LevelOf(int gang) const {
    const auto cls = std::ranges::find_if(
        t_.problem.classes, [&](const PodClass& c) { return c.gang == gang && !c.extra; });
    return cls == t_.problem.classes.end() ? 0 : cls->level;
  }

  PlanChecker& checker_;
  const int most_reservations_;
  Translation& t_;
  GpuStates& states_;
  const std::function<bool()>& out_of_time_;
};

}  // namespace

StagedResult SearchAndCheck(PlanChecker& checker, int most_reservations, Translation& translation,
                            GpuStates& states, const std::function<bool()>& out_of_time) {
  return CheckedSearch(checker, most_reservations, translation, states, out_of_time).Run();
}

}  // namespace nos::planning
