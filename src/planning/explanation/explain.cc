#include "planning/explanation/explain.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "planning/explanation/allowance.h"
#include "planning/explanation/shortfalls.h"
#include "planning/explanation/wording.h"
#include "planning/translation/pod_classes.h"
#include "scheduling/pod_state.h"
#include "scheduling/several_shares.h"
#include "scheduling/slice_reasons.h"

namespace nos::planning {

namespace codes = scheduling::codes;

namespace {

// About 20 ns each, on the machine of BENCHMARKS.md.
constexpr int64_t kStepsForReasons = 100'000'000, kLateStepsForReasons = 7'000'000;
constexpr int64_t kStepsOfFilters = 100;   // per pod and node
constexpr int64_t kStepsOfPacking = 3000;  // between two calls of `stop`
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
  Explainer(const Translation& translation, const StagedResult& result, GpuStates& states,
            const std::function<bool()>& out_of_time)
      : t_(translation),
        result_(result),
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

  std::vector<std::vector<Reason>> Run() {
    std::vector<std::vector<Reason>> all(t_.problem.classes.size());
    Allowance allowance(kStepsForReasons, kLateStepsForReasons, out_of_time_);
    states_.StopWhen([&] { return !allowance.Spend(kStepsOfPacking); });
    for (const int cls : Waiting()) all[cls] = ReasonsOf(cls, allowance);
    states_.StopWhen([] { return true; });
    return all;
  }

 private:
  using Row = std::vector<int>;  // reasons by node, for all pods of a row; kNothing: the pod fits
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

  // RowOf and FactsOf know at least the first `end` nodes afterwards or, when the allowance is
  // exhausted, the first few.
  const Row& RowOf(int index, size_t end, Allowance& allowance) {
    Row& row = rows_[index];
    const cluster::Pod& pod = *t_.pending[t_.row_pod[index]];
    for (size_t n = row.size(); n < end; ++n) {
      if (t_.problem.allowed[index][n]) {
        row.push_back(kNothing);
        continue;
      }
      if (!allowance.Spend(kStepsOfFilters) && n >= kFewNodes) break;
      const auto objection = t_.objections.find({index, static_cast<int>(n)});
      const scheduling::Verdict verdict = objection != t_.objections.end()
                                              ? objection->second
                                              : VerdictNow(t_.row_cycle[index], pod, *t_.nodes[n]);
      row.push_back(verdict.fits() ? kNothing : NumberOf(verdict));
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
    const size_t known = std::min({end, row.size(), facts.lacks.size()});
    std::map<int, int> nodes;
    for (size_t n = 0; n < known; ++n) {
      const int filter = row[n];
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
  const StagedResult& result_;
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

std::vector<std::vector<Reason>> ExplainWaiting(const Translation& translation,
                                                const StagedResult& result, GpuStates& states,
                                                const std::function<bool()>& out_of_time) {
  return Explainer(translation, result, states, out_of_time).Run();
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
