#include "planning/translation/gangs.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace nos::planning {
namespace {

// Limit of searches of the whole problem, each up to the time limit; after that all incomplete
// gangs are left out at once.
constexpr int kMaxTrials = 16;

// Position of a gang: before or behind the pods of the same rank, or left out.
enum class Standing { kBefore, kBehind, kOut };
using Standings = std::vector<Standing>;  // by gang

class GangSearcher {
 public:
  GangSearcher(const Problem& problem, GpuStates& states, int max_reservations,
               const std::function<bool()>& out_of_time)
      : problem_(problem),
        states_(states),
        max_reservations_(max_reservations),
        out_of_time_(out_of_time),
        needed_(problem.gangs.size()),
        level_(problem.gangs.size()),
        found_(problem.gangs.size()) {
    for (size_t c = 0; c < problem_.classes.size(); ++c) {
      const PodClass& cls = problem_.classes[c];
      if (cls.gang < 0 || cls.extra) continue;
      needed_[cls.gang].push_back(static_cast<int>(c));
      level_[cls.gang] = cls.level;
    }
  }

  StagedResult Run() {
    // 1. Leave out gangs that do not fit even alone: each would cost one search of everything.
    Standings standings(problem_.gangs.size(), Standing::kBefore);
    if (standings.size() > 1 || HasOthers()) RemoveGangsWithoutCapacity(standings);
    // 2. Gangs before single pods of the same rank.
    const Standings tried = standings;
    StagedResult best = Settle(standings);
    bool complete = best.complete && standings == tried;
    // 3. If single pods of the same rank are left unplaced, try the gang behind them, least
    //    urgent gang first, and keep that order if it serves more.
    for (int gang = static_cast<int>(standings.size()) - 1; gang >= 0; --gang) {
      if (standings[gang] != Standing::kBefore || !EqualsWait(best.draft, gang, standings))
        continue;
      complete = false;  // another order might serve more
      if (MustHurry()) continue;
      Standings behind = standings;
      behind[gang] = Standing::kBehind;
      StagedResult other = Settle(behind);
      if (other.draft.score() <= best.draft.score()) continue;
      best = std::move(other);
      standings = std::move(behind);
    }
    best.complete = complete && proven_;
    best.upper_bound = std::max(bound_.value_or(0) + bound_of_left_out_, best.draft.placed());
    best.gangs_found = FoundOf(standings);
    return best;
  }

 private:
  bool MustHurry() const { return trials_ >= kMaxTrials || out_of_time_(); }
  bool HasOthers() const {
    return std::ranges::any_of(problem_.classes, [](const PodClass& c) { return c.gang < 0; });
  }

  // Many gangs are too big for the free capacity even if no other pod is pending; this is found
  // quickly.
  void RemoveGangsWithoutCapacity(Standings& standings) {
    for (size_t gang = 0; gang < standings.size() && !out_of_time_(); ++gang) {
      Standings alone(standings.size(), Standing::kOut);
      alone[gang] = Standing::kBefore;
      const StagedResult result = Try(alone, false);
      if (Broken(result.draft, alone).empty()) continue;
      LeaveOut(static_cast<int>(gang), result.draft, standings);
      if (result.upper_bound < problem_.gangs[gang].lacking) continue;
      proven_ = false;
      bound_of_left_out_ += result.upper_bound;
    }
  }

  // The best plan with gangs in these positions. Leaves out the incomplete gangs.
  StagedResult Settle(Standings& standings) {
    while (true) {
      StagedResult result = Try(standings, true);
      ++trials_;
      if (!bound_) bound_ = result.upper_bound;
      const std::vector<int> broken = Broken(result.draft, standings);
      if (broken.empty()) return result;
      for (const int gang : broken) {
        LeaveOut(gang, result.draft, standings);
        if (!MustHurry()) break;
      }
    }
  }

  void LeaveOut(int gang, const Draft& draft, Standings& standings) {
    standings[gang] = Standing::kOut;
    found_[gang] = NeededPlaced(draft, gang);
  }

  int NeededPlaced(const Draft& draft, int gang) const {
    int placed = 0;
    for (const int c : needed_[gang]) placed += draft.PlacedOf(c);
    return placed;
  }

  // The incomplete gangs, in the order of their positions.
  std::vector<int> Broken(const Draft& draft, const Standings& standings) const {
    std::vector<int> broken;
    for (size_t g = 0; g < standings.size(); ++g) {
      const int gang = static_cast<int>(g);
      if (standings[g] == Standing::kOut) continue;
      if (NeededPlaced(draft, gang) < problem_.gangs[g].lacking) broken.push_back(gang);
    }
    std::ranges::stable_sort(broken, {},
                             [&](int gang) { return std::pair(level_[gang], standings[gang]); });
    return broken;
  }

  std::vector<int> FoundOf(const Standings& standings) const {
    std::vector<int> found = found_;
    for (size_t g = 0; g < found.size(); ++g) {
      if (standings[g] != Standing::kOut) found[g] = problem_.gangs[g].lacking;
    }
    return found;
  }

  // True if single pods of the same rank as the gang are unplaced.
  bool EqualsWait(const Draft& draft, int gang, const Standings& standings) const {
    for (size_t c = 0; c < problem_.classes.size(); ++c) {
      const PodClass& cls = problem_.classes[c];
      if (cls.level != level_[gang] || (cls.gang >= 0 && !cls.extra)) continue;
      if (cls.gang >= 0 && standings[cls.gang] == Standing::kOut) continue;
      if (draft.PlacedOf(static_cast<int>(c)) < cls.count) return true;
    }
    return false;
  }

  StagedResult Try(const Standings& standings, bool with_others) {
    const Problem arranged = Arrange(standings, with_others);
    StagedResult found = SearchInStages(arranged, states_, max_reservations_, out_of_time_);
    StagedResult result{Draft(problem_, states_, Draft::Free::kKeep),
                        std::move(found.members),
                        std::move(found.reservations),
                        found.upper_bound,
                        found.complete,
                        {}};
    for (const PlacedPod& pod : found.draft.pods()) {
      result.draft.Place(pod.cls, pod.node, found.draft.DevicesOf(pod));
    }
    return result;
  }

  // The problem without the gangs that are left out, with levels in the order of the positions.
  Problem Arrange(const Standings& standings, bool with_others) const {
    const int gangs = static_cast<int>(standings.size());
    Problem arranged = problem_;
    std::map<std::pair<int, int>, int> levels;  // by level and position within it
    std::vector<std::pair<int, int>> of_class;
    for (PodClass& cls : arranged.classes) {
      const bool out = cls.gang < 0 ? !with_others : standings[cls.gang] == Standing::kOut;
      if (out) cls.count = 0;
      int place = gangs;
      if (cls.gang >= 0 && !cls.extra) {
        place = standings[cls.gang] == Standing::kBehind ? gangs + 1 + cls.gang : cls.gang;
      }
      levels[of_class.emplace_back(cls.level, place)] = 0;
    }
    int next = 0;
    for (auto& [at, level] : levels) level = next++;
    for (size_t c = 0; c < of_class.size(); ++c) arranged.classes[c].level = levels[of_class[c]];
    arranged.IndexShapes();
    return arranged;
  }

  const Problem& problem_;
  GpuStates& states_;
  const int max_reservations_;
  const std::function<bool()>& out_of_time_;
  std::vector<std::vector<int>> needed_;  // by gang: its classes without extras
  std::vector<int> level_;                // by gang: level of its needed classes
  std::vector<int> found_;                // by gang: pods placed when it was last left out
  int trials_ = 0;
  std::optional<int> bound_;  // of all pods that were not left out at the start
  int bound_of_left_out_ = 0;
  bool proven_ = true;  // gangs left out at the start are proven not to fit
};

}  // namespace

StagedResult SearchWithGangs(const Problem& problem, GpuStates& states, int max_reservations,
                             const std::function<bool()>& out_of_time) {
  if (problem.gangs.empty()) {
    return SearchInStages(problem, states, max_reservations, out_of_time);
  }
  return GangSearcher(problem, states, max_reservations, out_of_time).Run();
}

}  // namespace nos::planning
