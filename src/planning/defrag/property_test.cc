// Compares plans of moves in random small clusters with an exhaustive search over all sets of
// moves, and replays them move by move.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <set>

#include "base/random.h"
#include "planning/defrag/reschedule_targets.h"
#include "planning/model/draft.h"
#include "planning/model/problem.h"
#include "planning/moves.h"
#include "planning/testing/clusters.h"
#include "planning/testing/problems.h"
#include "planning/translation/translate.h"
#include "scheduling/framework.h"

namespace nos::planning {
namespace {

using testing::ClusterBuilder;
using testing::SharedPods;

struct Case {
  cluster::ClusterSnapshot snapshot;
  SharedPods unplaced;
};

// Only pods that do not fit on any node are pending; there may be none.
Case Draw(Random& random, int most_waiting, const scheduling::FrameworkChoice& frameworks) {
  struct UsedLayout {
    const char* layout;
    std::vector<std::string> profiles;  // of the pods that hold them
  };
  const UsedLayout layouts[] = {
      {"", {}},
      {"1g.5gb@0:used,2g.10gb@2:free", {"1g.5gb"}},
      {"3g.20gb@0:used", {"3g.20gb"}},
      {"1g.5gb@6:used,1g.5gb@5:used", {"1g.5gb", "1g.5gb"}},
      {"2g.10gb@0:used,1g.5gb@2:used,3g.20gb@4:used", {"2g.10gb", "1g.5gb", "3g.20gb"}},
      {"4g.20gb@0:used,2g.10gb@4:used", {"4g.20gb", "2g.10gb"}}};
  ClusterBuilder cluster;
  const int nodes = 2 + static_cast<int>(random.Below(3));
  for (int n = 0; n < nodes; ++n) {
    const std::string name = "n" + std::to_string(n);
    const UsedLayout& used = layouts[random.Below(std::size(layouts))];
    const bool gpus = random.Chance(0.6);
    if (gpus) {
      cluster.Node(name, "NVIDIA-A100-SXM4-40GB", {used.layout});
    } else {
      cluster.PlainNode(name);
    }
    const size_t sliced = gpus ? used.profiles.size() : 0;
    const size_t pods = sliced + random.Below(3);
    for (size_t i = 0; i < pods; ++i) {
      cluster::Pod& pod =
          cluster.Running(name + "-" + std::to_string(i), name,
                          i < sliced ? std::vector{used.profiles[i]} : std::vector<std::string>(),
                          std::to_string(4 + random.Below(17)));
      if (random.Chance(0.75)) pod.meta.owners = {{"apps/v1", "ReplicaSet", "set", "uid", true}};
      if (random.Chance(0.2)) pod.meta.labels["app"] = "web";
      pod.priority = static_cast<int32_t>(random.Below(2)) * 10;
    }
  }
  const std::vector<std::string> wants[] = {{}, {"7g.40gb"}, {"4g.20gb"}, {"3g.20gb"}, {"2g.10gb"}};
  const int waiting = 1 + static_cast<int>(random.Below(most_waiting));
  for (int i = 0; i < waiting; ++i) {
    const auto& slices = wants[random.Below(std::size(wants))];
    cluster.Pod("w" + std::to_string(i), slices, random.Chance(0.3) ? 10 : 0,
                std::to_string(slices.empty() ? 30 + random.Below(30) : 1 + random.Below(24)));
  }
  Case drawn{cluster.Snapshot(), {}};
  drawn.snapshot.ChangeContext();
  for (const auto& pod : cluster.Pending()) {
    const std::shared_ptr<const cluster::Pod> alone[] = {pod};
    if (MakePlan(drawn.snapshot, alone, frameworks, {}).placed == 0) drawn.unplaced.push_back(pod);
  }
  return drawn;
}

// True if an exhaustive search places all pods. REQUIRES: pods of one priority.
bool HaveRoom(const cluster::ClusterSnapshot& snapshot, const SharedPods& pods,
              const scheduling::FrameworkChoice& frameworks) {
  const PlanOptions options;
  const Translation translation = Translate(snapshot, pods, frameworks, options);
  return testing::SolveByForce(translation.problem).most_pods == static_cast<int>(pods.size());
}

// The fewest moves off one node that make capacity for the pod; nullopt if more than `most`.
std::optional<int> FewestByForce(const Case& drawn, int most,
                                 const scheduling::FrameworkChoice& frameworks) {
  std::optional<int> fewest;
  for (size_t n = 0; n < drawn.snapshot.size(); ++n) {
    const cluster::NodeInfo& node = drawn.snapshot.node(n);
    const std::string& name = node.node->meta.name;
    SharedPods movable;
    for (const auto& pod : node.pods) {
      if (MobilityOf(*pod, {}).kind == Mobility::kMoves) movable.push_back(pod);
    }
    for (uint32_t set = 1; set < 1U << movable.size(); ++set) {
      const int count = std::popcount(set);
      if (count > most || (fewest && count >= *fewest)) continue;
      cluster::ClusterSnapshot here = drawn.snapshot, elsewhere = drawn.snapshot;
      here.KeepNodes([&](const cluster::NodeInfo& info) { return info.node->meta.name == name; });
      elsewhere.RemoveNode(name);
      SharedPods gone;
      for (size_t i = 0; i < movable.size(); ++i) {
        if ((set >> i & 1U) == 0) continue;
        EXPECT_TRUE(here.Vacate(*movable[i], name).ok());
        auto anew = std::make_shared<cluster::Pod>(*AsPending(*movable[i]));
        anew->priority = 0;
        gone.push_back(std::move(anew));
      }
      if (HaveRoom(here, {drawn.unplaced[0]}, frameworks) &&
          HaveRoom(elsewhere, gone, frameworks)) {
        fewest = count;
      }
    }
  }
  return fewest;
}

// Checks that the scheduler's filters admit the pod now and that its slices are unused.
void ExpectEnters(cluster::ClusterSnapshot& world, const cluster::Pod& pod, const std::string& node,
                  const std::vector<AssignedDevice>& devices) {
  const scheduling::Framework filters =
      scheduling::Framework::Default(scheduling::PartitionedBy::kScheduler);
  const auto waiting = AsPending(pod);
  const scheduling::Cycle cycle = filters.PreFilter(*waiting, world);
  const scheduling::Verdict verdict = filters.Filter(cycle, *waiting, *world.Find(node));
  EXPECT_TRUE(verdict.fits()) << pod.Key() << " on " << node << ": " << verdict.message;
  const auto held = [&] {
    std::map<std::pair<int, gpu::Placement>, std::string> used;
    const cluster::NodeInfo& info = *world.Find(node);
    for (const cluster::Gpu& gpu : info.gpus.gpus) {
      EXPECT_TRUE(gpu.Used().has_value());
      for (const cluster::Instance& instance : gpu.instances) {
        if (instance.used) used[{gpu.index, instance.placement}] = instance.pod;
      }
    }
    return used;
  };
  auto expected = held();
  for (const AssignedDevice& device : devices) {
    EXPECT_TRUE(expected.try_emplace({device.gpu, device.placement}, pod.Key()).second);
  }
  ASSERT_TRUE(BindMoved({waiting, "", node, devices}, world).ok());
  EXPECT_EQ(held(), expected) << pod.Key() << " on " << node;
}

// Replays the plan: each pod's new place is taken before its old one is released.
void Replay(const Case& drawn, const MovePlan& plan, int max_moves) {
  cluster::ClusterSnapshot world = drawn.snapshot;
  std::set<std::string> moved;
  for (const PodMoves& pod_moves : plan.pod_moves) {
    EXPECT_LE(pod_moves.moves.size(), static_cast<size_t>(max_moves));
    EXPECT_FALSE(pod_moves.moves.empty());
    for (const Move& move : pod_moves.moves) {
      EXPECT_EQ(MobilityOf(*move.pod, {}).kind, Mobility::kMoves);
      EXPECT_TRUE(moved.insert(move.pod->Key()).second) << move.pod->Key() << " moves twice";
      EXPECT_EQ(move.from, pod_moves.node);
      ExpectEnters(world, *move.pod, move.to, move.devices);
      ASSERT_TRUE(world.Vacate(*move.pod, move.from).ok());
    }
    ExpectEnters(world, *drawn.unplaced[pod_moves.pod], pod_moves.node, pod_moves.devices);
  }
}

TEST(MovesPropertyTest, UsesFewestMoves) {
  constexpr int kCases = 400, kMaxMoves = 3;
  const scheduling::Framework framework = scheduling::Framework::Default();
  const scheduling::FrameworkChoice choice(framework);
  MoveOptions options;
  options.max_moves = kMaxMoves;
  int served_pods = 0, several = 0, left = 0;
  for (uint64_t seed = 1; seed <= kCases; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Case drawn = Draw(random, 1, choice);
    if (drawn.unplaced.empty()) continue;
    const MovePlan plan = PlanMoves(drawn.snapshot, drawn.unplaced, choice, {}, options);
    const std::optional<int> fewest = FewestByForce(drawn, kMaxMoves, choice);
    ASSERT_EQ(plan.pod_moves.size() + plan.others.size(), 1U);
    if (!fewest) {
      EXPECT_TRUE(plan.pod_moves.empty());
      ++left;
      continue;
    }
    ASSERT_FALSE(plan.pod_moves.empty())
        << *fewest << " moves would do: " << plan.others[0].reason.message;
    EXPECT_EQ(plan.pod_moves[0].moves.size(), static_cast<size_t>(*fewest));
    Replay(drawn, plan, kMaxMoves);
    ++served_pods;
    several += *fewest > 1 ? 1 : 0;
  }
  RecordProperty("served_pods", served_pods);
  EXPECT_GE(served_pods, 20);
  EXPECT_GE(several, 3);
  EXPECT_GE(left, 20);
}

TEST(MovesPropertyTest, PlansForManyPodsCanBeExecuted) {
  constexpr int kCases = 200, kMaxMoves = 2;
  const scheduling::Framework framework = scheduling::Framework::Default();
  const scheduling::FrameworkChoice choice(framework);
  int pods_served = 0;
  for (uint64_t seed = 1; seed <= kCases; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    Case drawn = Draw(random, 5, choice);
    cluster::PodDisruptionBudget budget;
    budget.meta.ns = "x";
    budget.meta.name = "web";
    budget.selector.emplace().match_labels = {{"app", "web"}};
    budget.disruptions_allowed = static_cast<int>(random.Below(2));
    drawn.snapshot.ChangeContext().budgets.Set(
        "x/web", std::make_shared<const cluster::PodDisruptionBudget>(budget));
    MoveOptions options;
    options.max_moves = kMaxMoves;
    int taken = 0;
    options.may_move = [&](const cluster::Pod&) { return taken < 3; };
    options.may_move_together = [&](const auto& pods) {
      return taken + static_cast<int>(pods.size()) <= 3;
    };
    options.take = [&](const cluster::Pod&) { ++taken; };
    const MovePlan plan = PlanMoves(drawn.snapshot, drawn.unplaced, choice, {}, options);
    Replay(drawn, plan, kMaxMoves);
    int moves = 0, guarded = 0;
    for (const PodMoves& pod_moves : plan.pod_moves) {
      moves += static_cast<int>(pod_moves.moves.size());
      guarded += static_cast<int>(std::ranges::count_if(
          pod_moves.moves, [](const Move& move) { return move.pod->meta.labels.contains("app"); }));
    }
    EXPECT_EQ(moves, taken);
    EXPECT_LE(moves, 3);
    EXPECT_LE(guarded, budget.disruptions_allowed);
    EXPECT_EQ(plan.pod_moves.size() + plan.others.size(), drawn.unplaced.size());
    pods_served += static_cast<int>(plan.pod_moves.size());
  }
  EXPECT_GE(pods_served, 20);
}

}  // namespace
}  // namespace nos::planning
