#include "planning/explanation/explain.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "planning/explanation/allowance.h"
#include "planning/explanation/remedy.h"
#include "planning/explanation/wording.h"
#include "planning/optimize/greedy.h"
#include "planning/translation/pod_classes.h"
#include "scheduling/pod_names.h"
#include "scheduling/pod_state.h"
#include "scheduling/several_shares.h"
#include "scheduling/slice_reasons.h"

namespace nos::planning {

namespace codes = scheduling::codes;

namespace {

// About 20 ns each, on the machine of BENCHMARKS.md.
constexpr int64_t kStepsForReasons = 100'000'000, kLateStepsForReasons = 7'000'000;
constexpr int64_t kStepsForRemedies = 20'000'000, kLateStepsForRemedies = 5'000'000;
constexpr int64_t kStepsOfFilters = 100;   // per pod and node
constexpr int64_t kStepsOfPacking = 3000;  // between two calls of `stop`
constexpr int64_t kStepsOfPlacing = 10;    // a pod, per node
// Limit of different reasons per pod. Some reasons contain text that differs per node.
constexpr size_t kMaxReasons = 16;
// Nodes that are checked for every class, even with an exhausted allowance.
constexpr size_t kFewNodes = 16;

// Numbers codes and messages, so that counting over nodes compares no text.
class ReasonBook {
 public:
  int Number(Reason reason) {
    const auto [it, fresh] =
        numbers_.try_emplace({reason.code, reason.message}, static_cast<int>(all_.size()));
    if (fresh) all_.push_back(std::move(reason));
    return it->second;
  }
  // The same for nodes that could never serve the pod, even when empty.
  int NumberOfNever(Reason reason) {
    const int number = Number(std::move(reason));
    never_.insert(number);
    return number;
  }
  const Reason& Get(int number) const { return all_[number]; }
  bool IsNever(int number) const { return never_.contains(number); }

 private:
  std::set<int> never_;
  std::map<std::pair<std::string, std::string>, int> numbers_;
  std::vector<Reason> all_;
};

constexpr int kNothing = -1;

class Explainer {
 public:
  Explainer(const Translation& translation, const StagedResult& result,
            const scheduling::FrameworkChoice& frameworks, GpuStates& states,
            const cluster::ClusterSnapshot& snapshot, const std::function<bool()>& out_of_time)
      : t_(translation),
        snapshot_(snapshot),
        result_(result),
        frameworks_(frameworks),
        states_(states),
        out_of_time_(out_of_time),
        before_(translation.problem, states, Draft::Free::kKeep),
        after_(result.draft),
        rows_(translation.row_pod.size()),
        shapes_(translation.problem.shapes.size()) {
    for (const cluster::ResourceId id : t_.dimensions) {
      insufficient_.push_back(book_.Number(scheduling::Insufficient(id)));
    }
    taken_ = book_.Number(
        {codes::kTakenByPendingPods, "node(s) had room, which goes to other pending pods"});
    kept_ = book_.Number({codes::kSlotsKeptForOthers,
                          "node(s) had room, which is kept for pods that have waited longer"});
    left_ = book_.Number(
        {codes::kSearchEnded, "node(s) have room, but the search ended before it was used"});
    for (const Reservation& r : result.reservations) kept_on_.insert(r.place.node);
    gang_left_ = book_.Number(
        {codes::kNoRoomForGang, "node(s) have room, but not for enough pods of its gang"});
    not_looked_at_ = book_.Number(
        {codes::kNotLookedAt, "node(s) were not evaluated: too many kinds of pods wait"});
  }

  std::vector<Explanation> Run() {
    std::vector<Explanation> all(t_.problem.classes.size());
    const std::vector<int> waiting = Waiting();
    FindReasons(waiting, all);
    FindRemedies(waiting, all);
    return all;
  }

 private:
  // Results for all pods of a row, by node.
  struct Row {
    std::vector<std::vector<scheduling::Verdict>> obstacles;
    std::vector<int> reasons;  // kNothing if the pod fits
  };
  // Results for all pods of a shape, by node.
  struct ShapeFacts {
    int no_room = kNothing, no_room_beside_used = kNothing;
    std::optional<Reason> no_model;  // no known model has the profile of a slice
    std::vector<int> lacks;          // obstacles that repartitioning cannot remove, or kNothing
    std::vector<std::optional<bool>> had_room, has_room;  // nullopt: unknown
  };

  // Classes with pending pods, level by level.
  std::vector<int> Waiting() const {
    std::vector<int> waiting;
    for (size_t c = 0; c < t_.problem.classes.size(); ++c) {
      const int cls = static_cast<int>(c);
      if (after_.PlacedOf(cls) < t_.problem.classes[c].count) waiting.push_back(cls);
    }
    std::stable_sort(waiting.begin(), waiting.end(), [&](int a, int b) {
      return t_.problem.classes[a].level < t_.problem.classes[b].level;
    });
    return waiting;
  }

  void FindReasons(const std::vector<int>& waiting, std::vector<Explanation>& all) {
    Allowance allowance(kStepsForReasons, kLateStepsForReasons, out_of_time_);
    states_.StopWhen([&] { return !allowance.Spend(kStepsOfPacking); });
    for (const int cls : waiting) all[cls].reasons = ReasonsOf(cls, allowance);
    states_.StopWhen([] { return true; });
  }

  void FindRemedies(const std::vector<int>& waiting, std::vector<Explanation>& all) {
    Allowance allowance(kStepsForRemedies, kLateStepsForRemedies, out_of_time_);
    HoldingPods holding(t_);
    for (const int cls : waiting) {
      if (IsOfBrokenGang(cls)) continue;
      const PodClass& pods = t_.problem.classes[cls];
      const Row& row = rows_[pods.allowed];
      const ShapeFacts& facts = shapes_[pods.shape];
      const size_t known = std::min(row.obstacles.size(), facts.has_room.size());
      if (known < t_.nodes.size() || allowance.spent()) continue;
      const RemedyInput input{t_, result_, snapshot_, row.obstacles, facts.has_room, holding};
      all[cls].remedy = FindRemedy(input, cls, allowance);
    }
    FindRemediesOfGangs(waiting, allowance, holding, all);
  }

  // Helping one pod of a gang is not enough: the remedy of all is that of the first pod that finds
  // no place beside the others.
  void FindRemediesOfGangs(const std::vector<int>& waiting, Allowance& allowance,
                           HoldingPods& holding, std::vector<Explanation>& all) {
    std::map<int, std::vector<int>> gangs;  // the classes of each broken gang
    for (const int cls : waiting) {
      if (IsOfBrokenGang(cls)) gangs[t_.problem.classes[cls].gang].push_back(cls);
    }
    if (gangs.empty()) return;
    StagedResult beside = result_;
    states_.StopWhen([&] { return !allowance.Spend(kStepsOfPacking); });
    for (const auto& [gang, classes] : gangs) {
      if (allowance.spent()) break;
      if (const cluster::Pod* pod = MemberOfNoClass(gang)) {
        const scheduling::Remedy remedy = NotPlanned(*pod, t_.gangs[gang]).remedy;
        for (const int cls : classes) all[cls].remedy = For(*pod, remedy);
        continue;
      }
      const size_t mark = beside.draft.Mark(), members = beside.members.size();
      const int refused = PlaceWhatFits(classes, beside, allowance);
      if (refused >= 0) {
        const scheduling::Remedy remedy = RemedyBeside(beside, refused, allowance, holding);
        const cluster::Pod& pod = *t_.pending[t_.members[refused].front()];
        for (const int cls : classes) {
          all[cls].remedy = cls == refused ? remedy : For(pod, remedy);
        }
      }
      beside.draft.Rollback(mark);
      beside.members.resize(members);
    }
    states_.StopWhen([] { return true; });
  }

  // Returns the first class with pods left over; -1: none.
  int PlaceWhatFits(const std::vector<int>& classes, StagedResult& beside,
                    Allowance& allowance) const {
    int refused = kNothing;
    Greedy greedy(beside.draft);
    for (const int cls : classes) {
      const PodClass& pods = t_.problem.classes[cls];
      if (pods.extra) continue;
      allowance.Spend(static_cast<int64_t>(t_.nodes.size()) * kStepsOfPlacing + pods.count);
      const int placed = greedy.Place(cls, pods.count);
      for (int i = 0; i < placed; ++i) beside.members.push_back(i);
      if (placed < pods.count && refused == kNothing) refused = cls;
    }
    return refused;
  }

  scheduling::Remedy RemedyBeside(StagedResult& beside, int cls, Allowance& allowance,
                                  HoldingPods& holding) {
    const PodClass& pods = t_.problem.classes[cls];
    const Row& row = rows_[pods.allowed];
    // Filters that look at the other members have not seen them at these places.
    if (row.obstacles.size() < t_.nodes.size() || t_.live_rows.contains(pods.allowed)) return {};
    std::vector<std::optional<bool>> has_room;
    for (int n = 0; n < static_cast<int>(t_.nodes.size()); ++n) {
      allowance.Spend(kStepsOfPlacing);
      has_room.push_back(beside.draft.HasRoom(pods.shape, n));
    }
    return FindRemedy({t_, beside, snapshot_, row.obstacles, has_room, holding}, cls, allowance);
  }

  // A member that no node can serve, whatever its size.
  const cluster::Pod* MemberOfNoClass(int gang) const {
    for (const int index : t_.gangs[gang]->members) {
      if (t_.class_of[index] < 0) return t_.pending[index].get();
    }
    return nullptr;
  }

  static scheduling::Remedy For(const cluster::Pod& pod, scheduling::Remedy remedy) {
    if (remedy.text.empty()) return remedy;
    return {remedy.code,
            fmt::format("for {}: {}", scheduling::PodText(pod.Key()), std::move(remedy.text))};
  }

  // RowOf and FactsOf know at least the first `end` nodes afterwards or, when the allowance is
  // exhausted, the first few.
  const Row& RowOf(int index, size_t end, Allowance& allowance) {
    Row& row = rows_[index];
    const cluster::Pod& pod = *t_.pending[t_.row_pod[index]];
    for (size_t n = row.obstacles.size(); n < end; ++n) {
      if (t_.problem.allowed[index][n]) {  // no obstacle
        row.obstacles.emplace_back();
        row.reasons.push_back(kNothing);
        continue;
      }
      if (!allowance.Spend(kStepsOfFilters) && n >= kFewNodes) break;
      const auto objection = t_.objections.find({index, static_cast<int>(n)});
      row.obstacles.push_back(
          objection != t_.objections.end()
              ? std::vector{objection->second}
              : ObstaclesNow(frameworks_.For(pod), t_.row_cycle[index], pod, *t_.nodes[n]));
      const auto& all = row.obstacles.back();
      row.reasons.push_back(all.empty() ? kNothing : NumberOf(all[0]));
    }
    return row;
  }

  int NumberOf(const scheduling::Verdict& verdict) {
    return verdict.kind == scheduling::Verdict::Kind::kUnresolvable
               ? book_.NumberOfNever({verdict.code, verdict.message})
               : book_.Number({verdict.code, verdict.message});
  }

  const ShapeFacts& FactsOf(const PodClass& cls, size_t end, Allowance& allowance) {
    ShapeFacts& facts = shapes_[cls.shape];
    if (facts.no_room == kNothing) {
      const scheduling::SliceDemand demand = DemandOf(t_, cls);
      facts.no_room = book_.Number(scheduling::NoRoomForSlices(demand.Text(), false));
      facts.no_room_beside_used = book_.Number(scheduling::NoRoomForSlices(demand.Text(), true));
      facts.no_model = demand.NoModelHasProfile();
    }
    const int slices = t_.problem.shapes[cls.shape].slice_count;
    for (size_t n = facts.lacks.size(); n < end; ++n) {
      const int node = static_cast<int>(n);
      const int64_t tries = int64_t{slices} * t_.problem.nodes[node].gpu_count;
      if (!allowance.Spend(5 + tries / 4) && n >= kFewNodes) break;
      facts.lacks.push_back(LackOfGpus(cls, node));
      facts.had_room.push_back(before_.HasRoom(cls.shape, node));
      facts.has_room.push_back(after_.HasRoom(cls.shape, node));
    }
    return facts;
  }

  std::vector<Reason> ReasonsOf(int cls, Allowance& allowance) {
    const PodClass& c = t_.problem.classes[cls];
    const size_t all = t_.nodes.size();
    const bool afford = allowance.Spend(static_cast<int64_t>(all));
    const size_t end = afford ? all : std::min(all, kFewNodes);
    const Row& row = RowOf(c.allowed, end, allowance);
    const ShapeFacts& facts = FactsOf(c, end, allowance);
    const size_t known = std::min({end, row.reasons.size(), facts.lacks.size()});
    std::map<int, int> nodes;
    for (size_t n = 0; n < known; ++n) {
      const int filter = row.reasons[n];
      ++nodes[filter != kNothing ? filter : AtNode(cls, static_cast<int>(n), facts)];
    }
    if (known < all) nodes[not_looked_at_] += static_cast<int>(all - known);
    std::vector<Reason> reasons = InOrder(nodes);
    if (reasons.size() > kMaxReasons) {
      Reason others{codes::kOtherReasons, "node(s) cannot serve it for other reasons", 0};
      for (size_t i = kMaxReasons; i < reasons.size(); ++i) others.nodes += reasons[i].nodes;
      reasons.resize(kMaxReasons);
      reasons.push_back(std::move(others));
    }
    if (t_.nodes.empty()) reasons.push_back({codes::kNoNodes, "the cluster has no nodes", 0});
    if (facts.no_model) reasons.insert(reasons.begin(), *facts.no_model);
    AddReservation(cls, reasons);
    if (IsOfBrokenGang(cls)) reasons.insert(reasons.begin(), WhyBroken(c.gang));
    return reasons;
  }

  // First nodes that could serve the pod.
  std::vector<Reason> InOrder(const std::map<int, int>& nodes) const {
    std::vector<std::pair<int, Reason>> ranked;
    for (const auto& [number, count] : nodes) {
      const Reason& reason = book_.Get(number);
      ranked.push_back({book_.IsNever(number) ? 1 : 0, reason});
      ranked.back().second.nodes = count;
    }
    const auto key = [](const std::pair<int, Reason>& r) {
      return std::tuple(r.first, -r.second.nodes, r.second.code, r.second.message);
    };
    std::ranges::sort(ranked, {}, key);
    std::vector<Reason> reasons;
    reasons.reserve(ranked.size());
    for (auto& [rank, reason] : ranked) reasons.push_back(std::move(reason));
    return reasons;
  }

  bool IsOfBrokenGang(int cls) const {
    const int gang = t_.problem.classes[cls].gang;
    return gang >= 0 && result_.gangs_found[gang] < t_.problem.gangs[gang].lacking;
  }

  Reason WhyBroken(int number) const {
    const Gang& gang = *t_.gangs[number];
    return scheduling::GangNotWhole(
        gang.name,
        static_cast<size_t>(gang.placed) + static_cast<size_t>(result_.gangs_found[number]),
        static_cast<size_t>(gang.least));
  }

  void AddReservation(int cls, std::vector<Reason>& reasons) const {
    for (const Reservation& r : result_.reservations) {
      if (r.cls != cls) continue;
      const std::string text = fmt::format(
          "has waited long: slots on node {} are kept free for it until the end of {}",
          t_.nodes[r.place.node]->node->meta.name, InTheWayText(t_, result_, cls, r.place));
      reasons.insert(reasons.begin(), {codes::kSlotsKept, text, 1});
      return;
    }
  }

  int AtNode(int cls, int node, const ShapeFacts& facts) const {
    if (facts.lacks[node] != kNothing) return facts.lacks[node];
    if (const int r = LackingDimension(before_, cls, node); r >= 0) return insufficient_[r];
    const std::optional<bool> had = facts.had_room[node], has = facts.has_room[node];
    if (!had || !has) return not_looked_at_;
    if (!*had) return HasUsedGpus(node) ? facts.no_room_beside_used : facts.no_room;
    const bool taken = !*has || LackingDimension(after_, cls, node) >= 0;
    if (taken) return taken_;
    if (kept_on_.contains(node)) return kept_;
    return IsOfBrokenGang(cls) ? gang_left_ : left_;
  }

  bool HasUsedGpus(int node) const {
    const auto& gpus = t_.problem.gpus;
    const auto first = gpus.begin() + t_.problem.nodes[node].first_gpu;
    return std::any_of(first, first + t_.problem.nodes[node].gpu_count,
                       [](const ProblemGpu& gpu) { return gpu.broken || gpu.IsUsed(); });
  }

  int LackOfGpus(const PodClass& cls, int node) {
    const cluster::NodeGpus& gpus = t_.nodes[node]->gpus;
    if (NeedsOptIn(t_, cls, node)) {
      Reason reason = scheduling::NotPartitioned(*t_.nodes[node]->node);
      const bool never = scheduling::UnreportedSharingMode(*t_.nodes[node]->node).empty();
      return never ? book_.NumberOfNever(std::move(reason)) : book_.Number(std::move(reason));
    }
    if (cls.slices.empty() || !gpus.managed || AdvertisesSlices(t_, cls, node)) return kNothing;
    for (const SliceCount& s : cls.slices) {
      if (NodeHasProfile(t_.problem, node, s.slice)) continue;
      if (gpus.gpus.empty() && !gpus.problems.empty()) {
        return book_.Number(scheduling::GpuProblem(gpus.problems[0]));
      }
      return book_.NumberOfNever(scheduling::NoGpuForProfile(gpus, t_.slice_names[s.slice]));
    }
    return kNothing;
  }

  const Translation& t_;
  const cluster::ClusterSnapshot& snapshot_;
  const StagedResult& result_;
  const scheduling::FrameworkChoice& frameworks_;
  GpuStates& states_;
  const std::function<bool()>& out_of_time_;
  Draft before_, after_;
  ReasonBook book_;
  std::vector<int> insufficient_;  // by dimension
  int taken_ = kNothing, kept_ = kNothing, left_ = kNothing, gang_left_ = kNothing,
      not_looked_at_ = kNothing;
  std::set<int> kept_on_;  // nodes with slots kept
  std::vector<Row> rows_;
  std::vector<ShapeFacts> shapes_;
};

}  // namespace

std::vector<Explanation> ExplainWaiting(const Translation& translation, const StagedResult& result,
                                        const scheduling::FrameworkChoice& frameworks,
                                        GpuStates& states, const cluster::ClusterSnapshot& snapshot,
                                        const std::function<bool()>& out_of_time) {
  return Explainer(translation, result, frameworks, states, snapshot, out_of_time).Run();
}

Explanation NotPlanned(const cluster::Pod& pod, const Gang* gang) {
  if (scheduling::IsPending(pod) && scheduling::IsGated(pod)) {
    return {{scheduling::SchedulingGated(pod)}, {}};
  }
  Explanation why;
  if (scheduling::IsSchedulable(pod) && gang != nullptr && IsHopeless(*gang)) {
    Reason reason =
        gang->problem.empty()
            ? scheduling::GangIncomplete(gang->name, gang->placed + gang->members.size(),
                                         static_cast<size_t>(gang->least))
            : Reason{codes::kGangIncomplete, fmt::format("{}: {}", gang->name, gang->problem)};
    why.remedy = scheduling::CompleteGang(reason.message);
    why.reasons.push_back(std::move(reason));
  }
  if (scheduling::IsSchedulable(pod) && scheduling::AsksForSeveralShares(pod)) {
    if (why.reasons.empty()) why.remedy = scheduling::RequestOneShare(pod);
    why.reasons.push_back(scheduling::SeveralShares());
  }
  if (!why.reasons.empty()) return why;
  std::string state = "is in phase " + pod.phase;
  if (pod.meta.deleted) state = "is being deleted";
  if (!pod.node_name.empty()) state = "is bound to node " + pod.node_name;
  return {{{codes::kNotPending, std::move(state)}}, {}};
}

}  // namespace nos::planning
