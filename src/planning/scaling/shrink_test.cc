#include "planning/shrink.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/random.h"
#include "planning/testing/clusters.h"
#include "planning/testing/pools.h"
#include "scheduling/framework.h"

namespace nos::planning {
namespace {

using testing::ClusterBuilder;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::Now;
using testing::PoolOf;

constexpr const char* kA100 = "NVIDIA-A100-SXM4-40GB";

class ShrinkTest : public ::testing::Test {
 protected:
  ShrinkTest() { options_.utilization_threshold = 1; }

  // The label `pool` assigns nodes to NodePools.
  cluster::Node& Node(const std::string& pool, const std::string& name,
                      const std::vector<std::string>& layouts = {}) {
    cluster::Node& node =
        layouts.empty() ? cluster_.PlainNode(name) : cluster_.Node(name, kA100, layouts);
    node.meta.labels["pool"] = pool;
    return node;
  }
  cluster::Pod& Pod(const std::string& name, const std::string& node,
                    const std::vector<std::string>& profiles, const std::string& cpu) {
    cluster::Pod& pod = cluster_.Running(name, node, profiles, cpu);
    pod.meta.owners = {{"apps/v1", "ReplicaSet", "set", "uid", true}};
    return pod;
  }
  void Pool(const std::string& name, int min, const std::string& price = "1") {
    cluster::NodePool pool = PoolOf(name, "", 0, 64, 100, price);
    pool.min = min;
    pools_.push_back(Now(pool));
  }

  const ShrinkPlan& Make() {
    before_ = cluster_.Snapshot();
    before_.ChangeContext();
    if (budget_.selector) {
      before_.ChangeContext().budgets.Set(
          "x/b", std::make_shared<const cluster::PodDisruptionBudget>(budget_));
    }
    plan_ = PlanShrink(before_, pools_, framework_, options_);
    Check();
    return plan_;
  }

  // Checks that every move is allowed, and that everything fits after all moves.
  void Check() const {
    std::set<std::string> gone;
    for (const EmptiedNode& node : plan_.nodes) gone.insert(node.name);
    EXPECT_EQ(gone.size(), plan_.nodes.size());
    for (const EmptiedNode& node : plan_.nodes) {
      std::set<std::string> moved;
      for (const Move& move : node.moves) {
        EXPECT_EQ(move.from, node.name);
        EXPECT_FALSE(gone.contains(move.to)) << move.to;
        EXPECT_EQ(MobilityOf(*move.pod, options_.rules).kind, Mobility::kMoves);
        EXPECT_TRUE(moved.insert(move.pod->Key()).second);
        CheckFits(move);
      }
      for (const auto& pod : before_.Find(node.name)->pods) {
        const bool moves = MobilityOf(*pod, options_.rules).kind == Mobility::kMoves;
        EXPECT_EQ(moves, moved.contains(pod->Key())) << pod->Key();
      }
      EXPECT_EQ(plan_.after.Find(node.name), nullptr);
    }
    EXPECT_EQ(plan_.after.size() + gone.size(), before_.size());
    CheckUsedStays();
    CheckMinima();
  }
  // Checks that the scheduler's filters admit the pod on its node when it is added last.
  void CheckFits(const Move& move) const {
    cluster::ClusterSnapshot others = plan_.after;
    ASSERT_TRUE(others.Vacate(*move.pod, move.to).ok()) << move.pod->Key();
    cluster::Pod waiting = *move.pod;
    waiting.node_name.clear();
    waiting.phase = "Pending";
    const scheduling::Framework filters =
        scheduling::Framework::Default(scheduling::PartitionedBy::kScheduler);
    const scheduling::Cycle cycle = filters.PreFilter(waiting, others);
    const scheduling::Verdict verdict = filters.Filter(cycle, waiting, *others.Find(move.to));
    EXPECT_TRUE(verdict.fits()) << move.pod->Key() << " on " << move.to << ": " << verdict.message;
  }
  // Checks that used instances of the remaining nodes still exist, and that no placements overlap.
  void CheckUsedStays() const {
    for (size_t n = 0; n < plan_.after.size(); ++n) {
      const cluster::NodeInfo& node = plan_.after.node(n);
      const cluster::NodeInfo& was = *before_.Find(node.node->meta.name);
      for (size_t g = 0; g < node.gpus.gpus.size(); ++g) {
        EXPECT_TRUE(node.gpus.gpus[g].Used().has_value());
        for (const cluster::Instance& instance : was.gpus.gpus[g].instances) {
          if (!instance.used) continue;
          const auto& now = node.gpus.gpus[g].instances;
          const auto there =
              std::ranges::find(now, instance.placement, &cluster::Instance::placement);
          ASSERT_NE(there, now.end());
          EXPECT_EQ(there->pod, instance.pod);
        }
      }
    }
  }
  void CheckMinima() const {
    for (const NodePoolState& now : pools_) {
      int left = 0, had = 0;
      for (size_t n = 0; n < plan_.after.size(); ++n) {
        left += cluster::IsOf(*now.pool, *plan_.after.node(n).node) ? 1 : 0;
      }
      for (size_t n = 0; n < before_.size(); ++n) {
        had += cluster::IsOf(*now.pool, *before_.node(n).node) ? 1 : 0;
      }
      EXPECT_GE(left, std::min(had, now.pool->min));
    }
  }

  std::vector<std::string> Gone() const {
    std::vector<std::string> names;
    for (const EmptiedNode& node : plan_.nodes) names.push_back(node.name);
    return names;
  }
  const Reason& Kept(const std::string& name) const {
    return std::ranges::find(plan_.kept, name, &KeptNode::name)->reason;
  }

  ClusterBuilder cluster_;
  std::vector<NodePoolState> pools_;
  const scheduling::Framework framework_ = scheduling::Framework::Default();
  ShrinkOptions options_;
  cluster::PodDisruptionBudget budget_;
  cluster::ClusterSnapshot before_;
  ShrinkPlan plan_;
};

TEST_F(ShrinkTest, PacksPodsOnFewerNodes) {
  Pool("p", 0);
  for (const char* name : {"a", "b", "c"}) {
    Node("p", name);
    Pod(std::string("pod-") + name, name, {}, "20");
  }
  Make();
  ASSERT_EQ(plan_.nodes.size(), 2U);
  EXPECT_EQ(plan_.nodes[0].name, "a");
  EXPECT_EQ(plan_.milli_price, 2000);
  ASSERT_EQ(plan_.kept.size(), 1U);
  EXPECT_EQ(plan_.kept[0].reason.code, "TakesMovedPods");
  ASSERT_EQ(plan_.after.size(), 1U);
  EXPECT_EQ(plan_.after.node(0).pods.size(), 3U);
}

TEST_F(ShrinkTest, RepartitionsGpusOnTargetNodes) {
  Pool("p", 1);
  Node("p", "a", {"1g.5gb@0:used"});
  Pod("small", "a", {"1g.5gb"}, "1");
  Node("p", "b", {"3g.20gb@4:used,3g.20gb@0:free"});
  Pod("large", "b", {"3g.20gb"}, "1");
  Pod("second", "b", {}, "1");
  Make();
  EXPECT_THAT(Gone(), ElementsAre("a"));
  ASSERT_EQ(plan_.nodes[0].moves.size(), 1U);
  EXPECT_EQ(plan_.nodes[0].moves[0].devices.at(0).profile, "1g.5gb");
  EXPECT_EQ(Kept("b").code, "AtMinimum");
}

TEST_F(ShrinkTest, UsedSlicesStayInPlace) {
  Pool("p", 0);
  Node("p", "a", {"4g.20gb@0:used"});
  Pod("four", "a", {"4g.20gb"}, "1");
  Node("p", "b", {"2g.10gb@0:used"});
  Pod("two", "b", {"2g.10gb"}, "1");
  Make();
  EXPECT_THAT(Gone(), ElementsAre("b"));  // beside the used 4g there is capacity for two
  EXPECT_EQ(plan_.nodes[0].moves[0].devices.at(0).placement.start, 4);
}

TEST_F(ShrinkTest, RemovesMostExpensiveEmptyNodesFirst) {
  Pool("cheap", 0, "1");
  Pool("dear", 0, "5");
  Node("cheap", "a");
  Node("dear", "b");
  Node("dear", "c");
  Pod("p", "c", {}, "1").meta.owners[0].kind = "DaemonSet";
  options_.max_nodes = 2;
  Make();
  EXPECT_THAT(Gone(), ElementsAre("b", "c"));
  EXPECT_EQ(Kept("a").code, "NotLookedAt");
  EXPECT_THAT(plan_.nodes[1].moves, IsEmpty());
}

TEST_F(ShrinkTest, KeepsNodeWithImmovablePod) {
  Pool("p", 0);
  for (const char* name : {"a", "b", "c", "d", "e"}) Node("p", name);
  Pod("bare", "a", {}, "1").meta.owners.clear();
  Pod("said", "b", {}, "1").meta.annotations = {{"nos.nebuly.com/movable", "false"}};
  Pod("guarded", "c", {}, "1").meta.labels = {{"app", "web"}};
  budget_.meta.ns = "x";
  budget_.meta.name = "b";
  budget_.selector.emplace().match_labels = {{"app", "web"}};
  Pod("busy", "d", {}, "60");
  options_.utilization_threshold = 0.5;
  options_.may_go = [](const cluster::NodeInfo& node) { return node.node->meta.name != "e"; };
  Make();
  EXPECT_THAT(Gone(), IsEmpty());
  EXPECT_EQ(Kept("a").code, "PodStays");
  EXPECT_EQ(Kept("b").code, "PodStays");
  EXPECT_EQ(Kept("c").code, "Budget");
  EXPECT_EQ(Kept("d").code, "InUse");
  EXPECT_EQ(Kept("e").code, "NotNow");
}

TEST_F(ShrinkTest, KeepsAnnotatedNodes) {
  Pool("p", 0);
  Node("p", "a").meta.annotations = {{std::string(kScaleDownDisabled), "true"}};
  Node("p", "b").meta.annotations = {{std::string(kDoNotDisrupt), "true"}};
  Node("other", "c");
  Make();
  EXPECT_THAT(Gone(), IsEmpty());
  EXPECT_EQ(Kept("a").code, "NodeStays");
  EXPECT_EQ(Kept("b").code, "NodeStays");
  EXPECT_EQ(plan_.kept.size(), 2U);  // c belongs to no NodePool
}

TEST_F(ShrinkTest, KeepsNodeWithUsedInstanceOfUnknownPod) {
  Pool("p", 0);
  Node("p", "a", {"1g.5gb@0:used"});
  Make();
  EXPECT_THAT(Gone(), IsEmpty());
  EXPECT_EQ(Kept("a").code, "InUse");
  EXPECT_EQ(Kept("a").message, "1g.5gb@0 of GPU 0 is in use by an unknown pod");
}

TEST_F(ShrinkTest, DisruptionBudgetsApplyAcrossNodes) {
  Pool("p", 0);
  for (const char* name : {"a", "b", "c"}) {
    Node("p", name);
    Pod(std::string("pod-") + name, name, {}, "1").meta.labels = {{"app", "web"}};
  }
  budget_.meta.ns = "x";
  budget_.meta.name = "b";
  budget_.selector.emplace().match_labels = {{"app", "web"}};
  budget_.disruptions_allowed = 1;
  Make();
  EXPECT_EQ(plan_.nodes.size(), 1U);
}

TEST_F(ShrinkTest, MovesNothingIfBudgetsAreUnknown) {
  Pool("p", 0);
  for (const char* name : {"a", "b"}) {
    Node("p", name);
    Pod(std::string("pod-") + name, name, {}, "1");
  }
  EXPECT_THAT(PlanShrink(cluster_.Snapshot(), pools_, framework_, options_).nodes, IsEmpty());
}

TEST_F(ShrinkTest, MovesNoneIfOnePodHasNoTarget) {
  Pool("p", 0);
  Node("p", "a");
  Pod("one", "a", {}, "4");
  Pod("two", "a", {}, "30");
  Node("p", "b");
  Pod("large", "b", {}, "40");
  Make();
  EXPECT_THAT(Gone(), IsEmpty());
  EXPECT_EQ(Kept("a").code, "NoRoom");
  EXPECT_EQ(Kept("a").message, "pod x/two has no other place: Insufficient cpu");
}

TEST_F(ShrinkTest, PlansOfRandomClustersAreValid) {
  int moved = 0;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    Random random(seed);
    cluster_ = ClusterBuilder();
    pools_.clear();
    Pool("p", static_cast<int>(random.Below(3)), "2");
    Pool("q", static_cast<int>(random.Below(2)), "3");
    options_.utilization_threshold = random.Chance(0.5) ? 1 : 0.6;
    options_.rules.local_storage = random.Chance(0.5);
    const int nodes = 2 + static_cast<int>(random.Below(6));
    const std::string layouts[] = {"", "1g.5gb@0:used,2g.10gb@2:free", "3g.20gb@0:used",
                                   "1g.5gb@6:used,1g.5gb@5:used"};
    const std::vector<std::string> profiles[] = {{}, {"1g.5gb"}, {"3g.20gb"}, {"1g.5gb"}};
    for (int n = 0; n < nodes; ++n) {
      const std::string name = "n" + std::to_string(n);
      const auto kind = random.Below(5);
      Node(random.Chance(0.8) ? (random.Chance(0.5) ? "p" : "q") : "none", name,
           kind == 4 ? std::vector<std::string>() : std::vector{layouts[kind]});
      const int pods = static_cast<int>(random.Below(4));
      for (int i = 0; i < pods; ++i) {
        const bool sliced = i == 0 && kind < 4;
        cluster::Pod& pod = Pod(name + "-" + std::to_string(i), name,
                                sliced ? profiles[kind] : std::vector<std::string>(),
                                std::to_string(1 + random.Below(24)));
        if (random.Chance(0.1)) pod.meta.owners[0].kind = "DaemonSet";
        if (random.Chance(0.1)) pod.meta.owners.clear();
        if (random.Chance(0.1)) pod.meta.labels["app"] = "web";
        if (random.Chance(0.1)) pod.volumes.resize(1);
        if (!pod.volumes.empty()) pod.volumes[0].local = true;
        if (random.Chance(0.05)) pod.meta.annotations["nos.nebuly.com/movable"] = "false";
      }
    }
    budget_.meta.ns = "x";
    budget_.meta.name = "b";
    budget_.selector.emplace().match_labels = {{"app", "web"}};
    budget_.disruptions_allowed = static_cast<int>(random.Below(3));
    SCOPED_TRACE(seed);
    Make();
    int guarded = 0;
    for (const EmptiedNode& node : plan_.nodes) {
      moved += static_cast<int>(node.moves.size());
      guarded += static_cast<int>(std::ranges::count_if(
          node.moves, [](const Move& move) { return move.pod->meta.labels.contains("app"); }));
    }
    EXPECT_LE(guarded, budget_.disruptions_allowed);
  }
  EXPECT_GT(moved, 50);
}

}  // namespace
}  // namespace nos::planning
