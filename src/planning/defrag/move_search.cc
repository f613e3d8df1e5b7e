#include "planning/defrag/move_search.h"

#include <fmt/core.h>

#include <algorithm>
#include <deque>
#include <tuple>
#include <utility>

#include "planning/defrag/reschedule_targets.h"
#include "planning/planner.h"
#include "scheduling/pod_names.h"
#include "scheduling/reasons.h"

namespace nos::planning {
namespace {

namespace codes = scheduling::codes;

using PodPtr = std::shared_ptr<const cluster::Pod>;

constexpr size_t kMaxSets =
    5000;  // per node and size; above this limit one set is found step by step
constexpr int kMaxTests = 4000;  // trials of the pod on a node without some of its pods
constexpr int kMaxPlaces = 200;  // searches of targets for a set of pods, per pending pod

// Makes the node full. Its pods stay, because filters depend on them.
void Close(const std::string& name, cluster::ClusterSnapshot& snapshot) {
  auto full = std::make_shared<cluster::Node>(*snapshot.Find(name)->node);
  full->allocatable.clear();
  snapshot.SetNode(std::move(full));
}

std::string NamesOf(const std::vector<PodPtr>& pods) {
  std::vector<std::string> names;
  names.reserve(pods.size());
  for (const PodPtr& pod : pods) names.push_back(scheduling::PodText(pod->Key()));
  return scheduling::NamesOf(names, "");
}

// For one pending pod: the candidate nodes, and the obstacles on each.
class MoveSearch {
 public:
  MoveSearch(const MoveWorld& world, const PendingPod& pod, const MoveOptions& options)
      : world_(world), pod_(pod), options_(options) {}

  // Finds the fewest moves, at most `most`, and of these the cheapest; or returns why there are
  // none.
  std::optional<Reason> Find(int most, MoveWorld& to, int number) {
    FindHosts();
    for (size_t count = 1; count <= static_cast<size_t>(std::max(most, 0)) && !best_; ++count) {
      for (Place& place : places_) Try(place, count);
    }
    if (!best_) return WhyNone(most);
    for (const Move& move : best_->pod_moves.moves) {
      best_->world.settled.insert(move.pod->Key());
      best_->world.budgets.Take(*move.pod);
      best_->world.moving.push_back(move.pod);
    }
    best_->world.settled.insert(pod_.pod->Key());
    best_->pod_moves.pod = number;
    best_->world.pod_moves.push_back(std::move(best_->pod_moves));
    to = std::move(best_->world);
    return std::nullopt;
  }

 private:
  struct Place {
    Place(const cluster::ClusterSnapshot& snapshot, const std::string& name,
          const std::vector<EvictionCandidate>& movable, const PendingPod& pod)
        : host(snapshot, name, movable, pod) {}
    CandidateNode host;
    size_t least = 1;
    std::vector<PodSubset> stuck;    // sets without targets on other nodes
    std::optional<PodSubset> found;  // if there are too many sets: the only set to try
  };
  struct Found {
    MoveCost cost;
    PodMoves pod_moves;
    MoveWorld world;
  };
  struct Candidate {
    std::string name;
    std::vector<PodPtr> movable, blocked;  // blocked: budgets forbid to move them
    std::string why;                       // the reason of the first of `blocked`
  };

  bool Stopped() { return stopped_ = stopped_ || pod_.out_of_time(); }

  void FindHosts() {
    std::vector<Candidate> candidates;
    for (size_t n = 0; n < world_.after.size(); ++n) {
      Candidate candidate = CandidateOf(world_.after.node(n));
      if (!candidate.movable.empty() || !candidate.blocked.empty()) {
        candidates.push_back(std::move(candidate));
      }
    }
    // Nodes with few large pods come first, so that few pods move.
    std::ranges::sort(candidates, {}, [](const Candidate& c) {
      return std::tuple(c.movable.empty(), c.movable.size() + c.blocked.size(), c.name);
    });
    int tries = 0;
    for (const Candidate& candidate : candidates) {
      if (Stopped()) return;
      if (!Look(candidate)) continue;
      if (++tries < options_.max_tries) continue;
      truncated_ = &candidate != &candidates.back();
      return;
    }
  }

  Candidate CandidateOf(const cluster::NodeInfo& node) const {
    Candidate candidate{node.node->meta.name, {}, {}, ""};
    for (const PodPtr& pod : node.pods) {
      // Pods without a node of their own are only planned.
      if (pod->node_name.empty() || world_.settled.contains(pod->Key())) continue;
      if (MobilityOf(*pod, options_.rules).kind != Mobility::kMoves) continue;
      std::string why = world_.budgets.WhyNot(*pod);
      if (why.empty() && options_.may_move && !options_.may_move(*pod)) {
        why = "the limit of moved pods is reached";
      }
      if (why.empty()) {
        candidate.movable.push_back(pod);
        continue;
      }
      if (candidate.why.empty()) {
        candidate.why = fmt::format("{}: {}", scheduling::PodText(pod->Key()), why);
      }
      candidate.blocked.push_back(pod);
    }
    return candidate;
  }

  // True if the node was worth a try.
  bool Look(const Candidate& candidate) {
    const cluster::NodeInfo& node = *world_.after.Find(candidate.name);
    std::vector<EvictionCandidate> movable, all;
    const auto add = [&](const PodPtr& pod, std::vector<EvictionCandidate>& to) {
      to.push_back(EvictionCandidateOf(pod, node, world_.quotas->IsOverQuota(*pod)));
    };
    for (const PodPtr& pod : candidate.movable) add(pod, movable);
    all = movable;
    for (const PodPtr& pod : candidate.blocked) add(pod, all);
    const CandidateNode whole(world_.after, candidate.name, std::move(all), pod_);
    if (whole.movable().empty() || whole.Least() > whole.movable().size()) return false;
    if (!whole.Fits(whole.All())) return true;
    places_.emplace_back(world_.after, candidate.name, movable, pod_);
    Place& place = places_.back();
    place.least = place.host.Least();
    const bool fits = candidate.blocked.empty() || (place.least <= place.host.movable().size() &&
                                                    place.host.Fits(place.host.All()));
    if (fits) return true;
    places_.pop_back();
    if (budget_.empty()) budget_ = candidate.why;
    return true;
  }

  void Try(Place& place, size_t count) {
    if (place.least > count || Stopped()) return;
    std::optional<std::vector<PodSubset>> sets = place.host.SetsOf(count, kMaxSets);
    if (!sets) {
      if (!place.found) place.found = place.host.Enough();
      sets.emplace();
      if (place.found->size() == count) sets->push_back(*place.found);
    }
    for (const PodSubset& set : *sets) {
      const MoveCost cost = place.host.CostOf(set);
      if ((best_ && cost >= best_->cost) || Stopped()) return;
      if (IsStuck(place, set)) continue;
      if (++tests_ > kMaxTests) {
        stopped_ = true;
        return;
      }
      if (!place.host.Fits(set) || !MayGoTogether(place.host, set)) continue;
      if (++looked_for_places_ > kMaxPlaces) {
        stopped_ = true;
        return;
      }
      if (std::optional<Found> found = MakeRoom(place.host, set)) {
        found->cost = cost;
        best_ = std::move(found);
        return;
      }
      place.stuck.push_back(set);
    }
  }

  // If a set of pods has no targets, larger sets that contain it have none either.
  static bool IsStuck(const Place& place, const PodSubset& set) {
    return std::ranges::any_of(
        place.stuck, [&](const PodSubset& stuck) { return std::ranges::includes(set, stuck); });
  }

  bool MayGoTogether(const CandidateNode& host, const PodSubset& set) {
    EvictionBudgets budgets = world_.budgets;
    std::vector<PodPtr> pods = world_.moving;
    for (const size_t i : set) {
      const PodPtr& pod = host.movable()[i].pod;
      if (const std::string why = budgets.WhyNot(*pod); !why.empty()) {
        if (budget_.empty()) {
          budget_ = fmt::format("{}: {}", scheduling::PodText(pod->Key()), why);
        }
        return false;
      }
      budgets.Take(*pod);
      pods.push_back(pod);
    }
    if (!options_.may_move_together || options_.may_move_together(pods)) return true;
    if (budget_.empty()) budget_ = NamesOf(pods) + ": not so many pods may be moved now";
    return false;
  }

  // Moves the set to other nodes and puts the pending pod in its place.
  std::optional<Found> MakeRoom(const CandidateNode& host, const PodSubset& gone) {
    const std::optional<std::vector<AssignedDevice>> devices = host.DevicesWithout(gone);
    if (!devices) return std::nullopt;
    // 1. Evict the set.
    Found found{{}, {0, host.name(), *devices, {}}, world_};
    cluster::ClusterSnapshot& after = found.world.after;
    std::vector<PodPtr> waiting;
    for (const size_t i : gone) {
      const PodPtr& pod = host.movable()[i].pod;
      if (!after.Vacate(*pod, host.name()).ok()) return std::nullopt;
      waiting.push_back(AsPending(*pod));
    }
    // 2. Find targets with the pending pod bound and its node closed: filters see the pod, and no
    //    evicted pod returns.
    const PodPtr pending = Placed(*pod_.pod, host.name(), *devices);
    cluster::ClusterSnapshot elsewhere = after;
    if (!elsewhere.Bind(pending, host.name()).ok()) return std::nullopt;
    Close(host.name(), elsewhere);
    PlanOptions options;
    options.out_of_time = pod_.out_of_time;
    const Plan plan =
        MakePlan(TargetsIn(elsewhere, waiting, pod_.frameworks), waiting, pod_.frameworks, options);
    for (size_t i = 0; i < plan.pods.size(); ++i) {
      const PodOutcome& outcome = plan.pods[i];
      const PodPtr& pod = host.movable()[gone[i]].pod;
      if (!outcome.placed || outcome.node == host.name()) {
        NoteNoRoom(*pod, outcome);
        return std::nullopt;
      }
      found.pod_moves.moves.push_back({pod, host.name(), outcome.node, outcome.devices});
      if (!BindMoved(found.pod_moves.moves.back(), after).ok()) return std::nullopt;
    }
    // 3. Bind the pending pod if filters that depend on other pods still admit it after the moves.
    if (IsRefused(after, pod_, host.name())) return std::nullopt;
    if (!after.Bind(pending, host.name()).ok()) return std::nullopt;
    return found;
  }

  void NoteNoRoom(const cluster::Pod& pod, const PodOutcome& outcome) {
    if (!no_room_.empty()) return;
    const std::string why =
        outcome.reasons.empty() ? "no node has room" : outcome.reasons.front().message;
    no_room_ = fmt::format("{} would have to move, and has no other place: {}",
                           scheduling::PodText(pod.Key()), why);
  }

  Reason WhyNone(int most) {
    if (stopped_ || (truncated_ && places_.empty())) {
      return {codes::kSearchEnded, "no moves were found in the time and the tries that there are",
              0};
    }
    if (!no_room_.empty()) return {codes::kNoRoomElsewhere, no_room_, 0};
    if (!budget_.empty()) return {codes::kBudget, budget_, 0};
    if (places_.empty()) {
      return {codes::kNothingMovable,
              "no node would have room for it without the pods that may be moved", 0};
    }
    const Place& nearest = *std::ranges::min_element(places_, {}, [](const Place& place) {
      return std::pair(place.least, place.host.movable().size());
    });
    return {codes::kTooManyMoves,
            fmt::format("{} pods of node {} would have to move, and {} may for one that waits",
                        nearest.host.Enough().size(), nearest.host.name(), most),
            0};
  }

  const MoveWorld& world_;
  const PendingPod& pod_;
  const MoveOptions& options_;
  std::deque<Place> places_;
  std::optional<Found> best_;
  std::string budget_, no_room_;
  int tests_ = 0, looked_for_places_ = 0;
  bool stopped_ = false;    // time or the limit of trials was exhausted
  bool truncated_ = false;  // some nodes were not evaluated
};

}  // namespace

PodPtr Placed(const cluster::Pod& pod, const std::string& node,
              const std::vector<AssignedDevice>& devices) {
  auto placed = std::make_shared<cluster::Pod>(pod);
  placed->node_name = node;
  for (const AssignedDevice& device : devices) {
    placed->promised.push_back({device.gpu, device.placement, device.model});
  }
  return placed;
}

std::optional<Reason> PlanMovesFor(int number, const PendingPod& pod, int most,
                                   const MoveOptions& options, MoveWorld& world) {
  const MoveWorld before = world;
  return MoveSearch(before, pod, options).Find(most, world, number);
}

}  // namespace nos::planning
