#include "planning/growth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "planning/planner.h"
#include "planning/pool_nodes.h"
#include "planning/testing/clusters.h"
#include "planning/testing/pools.h"
#include "scheduling/framework.h"

namespace nos::planning {
namespace {

using testing::ClusterBuilder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Now;
using testing::PoolOf;
using testing::SharedPods;

constexpr const char* kA100 = "A100-40GB";

class GrowthTest : public ::testing::Test {
 protected:
  void Pods(const std::string& prefix, int count, const std::vector<std::string>& profiles,
            const std::string& cpu, int priority = 0) {
    for (int i = 0; i < count; ++i) {
      cluster_.Pod(prefix + std::to_string(i), profiles, priority, cpu);
      ++pods_;
    }
  }
  void Gang(const std::string& name, int count, const std::vector<std::string>& profiles,
            const std::string& cpu) {
    planning::Gang gang{name, count, 0, {}, ""};
    for (int i = 0; i < count; ++i) gang.members.push_back(pods_ + i);
    Pods(name, count, profiles, cpu);
    options_.gangs.push_back(std::move(gang));
  }

  // Pods p0, p1, ... that must be together in, or apart from each other in, domains of `key`.
  void Tied(int count, const std::string& cpu, const std::string& key, bool together) {
    cluster::PodAffinityTerm term;
    term.selector.emplace().match_labels = {{"app", "db"}};
    term.topology_key = key;
    for (int i = 0; i < count; ++i) {
      cluster::Pod& pod = cluster_.Pod("p" + std::to_string(i), {}, 0, cpu);
      pod.meta.labels = {{"app", "db"}};
      (together ? pod.pod_affinity : pod.pod_anti_affinity).required = {term};
    }
  }

  const GrowthPlan& Make() {
    pending_ = cluster_.Pending();
    snapshot_ = cluster_.Snapshot();
    plan_ = PlanGrowth(snapshot_, pending_, pools_, framework_, options_);
    Check();
    return plan_;
  }
  // Checks that every pod is either served once or left out once, that nodes can hold their pods,
  // and that no group exceeds its maximum.
  void Check() const {
    std::multiset<int> seen;
    std::vector<int> asked(pools_.size());
    for (const NewNode& node : plan_.nodes) {
      EXPECT_FALSE(node.pods.empty());
      if (!node.coming && !node.IsThere()) ++asked[node.pool];
      SharedPods pods;
      for (const int pod : node.pods) {
        seen.insert(pod);
        pods.push_back(pending_[pod]);
      }
      cluster::ClusterSnapshot alone = snapshot_;
      alone.KeepNodes([&](const auto& info) { return info.node->meta.name == node.name; });
      EXPECT_EQ(alone.size(), node.IsThere() ? 1U : 0U) << node.name;
      if (!node.IsThere()) alone.AddNodes({*NewNodeOf(*pools_[node.pool].pool, 0, catalogue_)});
      EXPECT_EQ(MakePlan(alone, pods, framework_, {}).placed, static_cast<int>(pods.size()))
          << node.name;
    }
    EXPECT_EQ(static_cast<int>(seen.size()), plan_.served);
    for (const LeftOut& left : plan_.left_out) {
      seen.insert(left.pod);
      EXPECT_FALSE(left.reason.message.empty());
    }
    EXPECT_EQ(seen.size(), pending_.size());
    EXPECT_EQ(std::set<int>(seen.begin(), seen.end()).size(), pending_.size());
    for (size_t p = 0; p < pools_.size(); ++p) {
      const NodePoolState& now = pools_[p];
      EXPECT_LE(now.nodes + now.coming + plan_.pools[p].count,
                std::max(now.pool->max, now.nodes + now.coming));
      EXPECT_LE(asked[p], plan_.pools[p].count);
    }
  }
  std::vector<int> Counts() const {
    std::vector<int> counts;
    for (const PoolGrowth& pool : plan_.pools) counts.push_back(pool.count);
    return counts;
  }
  const LeftOut& Left(const std::string& name) const {
    return *std::ranges::find(plan_.left_out, name,
                              [&](const LeftOut& l) { return pending_[l.pod]->meta.name; });
  }
  int Served(const std::string& prefix) const {
    int served = 0;
    for (const NewNode& node : plan_.nodes) {
      served += static_cast<int>(std::ranges::count_if(
          node.pods, [&](int pod) { return pending_[pod]->meta.name.starts_with(prefix); }));
    }
    return served;
  }

  const gpu::Catalogue& catalogue_ = gpu::Catalogue::Builtin();
  const scheduling::Framework framework_ = scheduling::Framework::Default();
  ClusterBuilder cluster_;
  cluster::ClusterSnapshot snapshot_;
  int pods_ = 0;
  SharedPods pending_;
  std::vector<NodePoolState> pools_;
  PlanOptions options_;
  GrowthPlan plan_;
};

TEST_F(GrowthTest, ChoosesCheapestMix) {
  pools_ = {Now(PoolOf("big", "", 0, 32, 10, "3")), Now(PoolOf("small", "", 0, 8, 10, "1"))};
  Pods("p", 5, {}, "8");
  Make();
  EXPECT_THAT(Counts(), ElementsAre(1, 1));
  EXPECT_EQ(plan_.milli_price, 4000);
  EXPECT_EQ(plan_.served, 5);
  EXPECT_TRUE(plan_.proven);
  Pods("q", 2, {}, "8");
  Make();
  EXPECT_EQ(plan_.milli_price, 6000);  // two big nodes, or one big and three small ones
  EXPECT_EQ(plan_.nodes.size(), 2U);   // at equal price, fewer nodes
}

TEST_F(GrowthTest, PlacesSlicesOnNewNodes) {
  pools_ = {Now(PoolOf("a100", kA100, 2, 32, 10, "4")), Now(PoolOf("a30", "A30", 2, 32, 10, "1"))};
  Pods("mig", 14, {"1g.5gb"}, "1");
  Pods("six", 8, {"1g.6gb"}, "1");
  Make();
  EXPECT_THAT(Counts(), ElementsAre(1, 1));
  EXPECT_EQ(plan_.served, 22);
  Pods("large", 1, {"3g.20gb"}, "1");
  Make();
  EXPECT_THAT(Counts(), ElementsAre(2, 1));
}

TEST_F(GrowthTest, HybridNodeServesAllSharingModes) {
  cluster::NodePool pool = PoolOf("h100", "H100-80GB", 3, 64, 4, "10");
  pool.gpu.partitioning = cluster::SharingMode::kHybrid;
  pools_ = {Now(pool)};
  Pods("mig", 7, {"1g.10gb"}, "1");
  Pods("share", 7, {"11gb"}, "1");
  Pods("whole", 1, {"gpu"}, "1");
  Make();
  EXPECT_THAT(Counts(), ElementsAre(1));
  EXPECT_EQ(plan_.served, 15);
}

// Placed one after the other, three of the pods use the capacity of four.
TEST_F(GrowthTest, FindsMixThatNeedsTightPacking) {
  pools_ = {Now(PoolOf("three", kA100, 3, 64, 3, "2")), Now(PoolOf("four", kA100, 4, 64, 3, "3"))};
  Pods("p", 4, {"2g.10gb", "3g.20gb"}, "1");
  Make();
  EXPECT_EQ(plan_.served, 4);
  EXPECT_THAT(Counts(), ElementsAre(1, 0));
  EXPECT_TRUE(plan_.proven);
}

TEST_F(GrowthTest, FillsRequestedAndDueNodesFirst) {
  cluster::NodePool due = PoolOf("due", "", 0, 8, 10, "9");
  due.min = 1;
  pools_ = {Now(PoolOf("cheap", "", 0, 8, 10, "1")), Now(PoolOf("coming", "", 0, 8, 10, "5"), 2, 1),
            Now(due)};
  Pods("p", 3, {}, "8");
  Make();
  EXPECT_THAT(Counts(), ElementsAre(1, 0, 1));
  EXPECT_EQ(plan_.milli_price, 1000);
  const auto coming = std::ranges::find(plan_.nodes, 1, &NewNode::pool);
  ASSERT_NE(coming, plan_.nodes.end());
  EXPECT_TRUE(coming->coming);
  EXPECT_EQ(coming->name, "coming/new-0");
}

TEST_F(GrowthTest, FillsPoolToMinimumWithoutPendingPods) {
  cluster::NodePool pool = PoolOf("a", "", 0, 8, 10, "9");
  pool.min = 3;
  pools_ = {Now(pool, 1, 1)};
  Make();
  EXPECT_THAT(Counts(), ElementsAre(1));
  EXPECT_THAT(plan_.nodes, IsEmpty());
  EXPECT_EQ(plan_.milli_price, 0);
  EXPECT_TRUE(plan_.proven);
}

TEST_F(GrowthTest, FillsPoolWithoutTemplateToMinimumOnly) {
  cluster::NodePool pool = PoolOf("a", "", 0, 8, 10, "9");
  pool.min = 2;
  pool.learns = true;
  pool.resources.clear();
  pools_ = {Now(pool, 0, 1), Now(pool, 0, 0, "did not deliver")};
  Pods("p", 6, {}, "4");
  Make();
  EXPECT_THAT(Counts(), ElementsAre(1, 0));
  EXPECT_EQ(plan_.served, 0);
  EXPECT_EQ(Left("p0").reason.code, "NoPools");
  EXPECT_EQ(plan_.pools[0].problem,
            "NodePool a: has no node yet to learn from: give spec.cpu and spec.memory (and "
            "spec.gpu), or one node");
}

TEST_F(GrowthTest, ServesHigherPriorityFirstAtPoolMaximum) {
  pools_ = {Now(PoolOf("a", "", 0, 8, 5, "1"), 3)};
  Pods("low", 6, {}, "2");
  Pods("high", 3, {}, "4", 100);
  Make();
  EXPECT_THAT(Counts(), ElementsAre(2));
  EXPECT_EQ(Served("high"), 3);
  EXPECT_EQ(Served("low"), 2);
  EXPECT_EQ(Left("low5").reason.code, "PoolsAtMaximum");
  EXPECT_EQ(Left("low5").nearest, 0);
}

TEST_F(GrowthTest, ServesGangAsAWholeOrNotAtAll) {
  pools_ = {Now(PoolOf("a100", kA100, 1, 32, 2, "4"))};
  Gang("gang", 3, {"7g.40gb"}, "1");
  Pods("single", 1, {"3g.20gb"}, "1");
  Make();
  EXPECT_EQ(Served("gang"), 0);
  EXPECT_EQ(Served("single"), 1);
  EXPECT_THAT(Counts(), ElementsAre(1));
  EXPECT_THAT(Left("gang0").reason.message, HasSubstr("gang"));
  pools_ = {Now(PoolOf("a100", kA100, 1, 32, 4, "4"))};
  Make();
  EXPECT_EQ(plan_.served, 4);
  EXPECT_THAT(Counts(), ElementsAre(4));
}

TEST_F(GrowthTest, AddsNoNodesForGangWithImpossibleMember) {
  pools_ = {Now(PoolOf("a", "", 0, 8, 9, "1"))};
  planning::Gang gang{"pod group x/g", 2, 0, {0, 1}, ""};
  Pods("fits", 1, {}, "4");
  Pods("huge", 1, {}, "40");
  options_.gangs.push_back(gang);
  Make();
  EXPECT_THAT(plan_.nodes, IsEmpty());
  EXPECT_EQ(Left("huge0").reason.code, "NoPoolFits");
  EXPECT_EQ(Left("fits0").reason.code, "GangNotWhole");
  EXPECT_EQ(Left("fits0").reason.message,
            "pod group x/g: 0 of its pods find a node together, and 2 must");
}

TEST_F(GrowthTest, AddsNodesOnlyForGangMembersWithoutCapacity) {
  cluster_.PlainNode("n1");
  pools_ = {Now(PoolOf("a", "", 0, 32, 9, "1"))};
  Gang("gang", 3, {}, "32");
  Make();
  EXPECT_EQ(plan_.served, 3);
  EXPECT_THAT(Counts(), ElementsAre(1));
  EXPECT_EQ(plan_.milli_price, 1000);
  ASSERT_EQ(plan_.nodes.size(), 2U);
  EXPECT_EQ(plan_.nodes[0].name, "n1");
  EXPECT_TRUE(plan_.nodes[0].IsThere());
  EXPECT_FALSE(plan_.nodes[0].coming);
  EXPECT_EQ(plan_.nodes[0].pods.size(), 2U);
  EXPECT_EQ(plan_.nodes[1].name, "a/new-0");
  EXPECT_TRUE(plan_.proven);
}

TEST_F(GrowthTest, RepartitionsExistingGpusForGang) {
  cluster_.Node("n1", "NVIDIA-A100-SXM4-40GB", {"1g.5gb@0:free,1g.5gb@1:free", "7g.40gb@0:used"});
  pools_ = {Now(PoolOf("a100", kA100, 1, 32, 9, "4"))};
  Gang("gang", 3, {"3g.20gb"}, "1");
  Make();
  EXPECT_EQ(plan_.served, 3);
  EXPECT_THAT(Counts(), ElementsAre(1));
  ASSERT_EQ(plan_.nodes.size(), 2U);
  EXPECT_EQ(plan_.nodes[0].name, "n1");
  EXPECT_EQ(plan_.nodes[0].pods.size(), 2U);
}

TEST_F(GrowthTest, IncompleteGangUsesNoExistingCapacity) {
  cluster_.PlainNode("n1");
  pools_ = {Now(PoolOf("a", "", 0, 32, 1, "1"))};
  Gang("gang", 4, {}, "32");
  Make();
  EXPECT_EQ(plan_.served, 0);
  EXPECT_THAT(plan_.nodes, IsEmpty());
  EXPECT_THAT(Counts(), ElementsAre(0));
  EXPECT_EQ(Left("gang0").reason.code, "GangNotWhole");
}

TEST_F(GrowthTest, PlacesGangMemberThatFitsOnlyOnExistingNode) {
  cluster_.PlainNode("n1");
  pools_ = {Now(PoolOf("a", "", 0, 32, 9, "1"))};
  planning::Gang gang{"gang", 3, 0, {0, 1, 2}, ""};
  Pods("small", 2, {}, "32");
  Pods("large", 1, {}, "64");
  options_.gangs.push_back(gang);
  Make();
  EXPECT_EQ(plan_.served, 3);
  EXPECT_THAT(Counts(), ElementsAre(2));
  ASSERT_EQ(plan_.nodes.size(), 3U);
  EXPECT_EQ(plan_.nodes[0].name, "n1");
  EXPECT_THAT(plan_.nodes[0].pods, ElementsAre(2));
}

TEST_F(GrowthTest, PlacesNoGangMemberOnCordonedNode) {
  cluster_.PlainNode("n1").unschedulable = true;
  pools_ = {Now(PoolOf("a", "", 0, 32, 9, "1"))};
  Gang("gang", 2, {}, "32");
  Make();
  EXPECT_EQ(plan_.served, 2);
  EXPECT_THAT(Counts(), ElementsAre(2));
}

TEST_F(GrowthTest, FiltersSeePodsOnExistingNodes) {
  for (const char* name : {"n1", "n2"}) {
    cluster_.PlainNode(name).meta.labels = {{"kubernetes.io/hostname", name}};
  }
  cluster_.Running("r", "n1", {}, "1").meta.labels = {{"app", "db"}};
  pools_ = {Now(PoolOf("a", "", 0, 64, 9, "1"))};
  Tied(3, "1", "kubernetes.io/hostname", false);
  options_.gangs.push_back({"gang", 3, 0, {0, 1, 2}, ""});
  Make();
  EXPECT_EQ(plan_.served, 3);
  EXPECT_EQ(plan_.nodes.size(), 3U);
  for (const NewNode& node : plan_.nodes) EXPECT_NE(node.name, "n1");
}

TEST_F(GrowthTest, GangWithAffinityGetsNewNodesInOneZone) {
  cluster_.PlainNode("n1").meta.labels = {{"zone", "b"}};
  cluster::NodePool pool = PoolOf("a", "", 0, 96, 9, "1");
  pool.labels["zone"] = "a";
  pools_ = {Now(pool)};
  Tied(3, "32", "zone", true);
  options_.gangs.push_back({"gang", 3, 0, {0, 1, 2}, ""});
  Make();
  EXPECT_EQ(plan_.served, 3);
  EXPECT_THAT(Counts(), ElementsAre(1));
}

TEST_F(GrowthTest, GangWithAffinityDoesNotWaitForTaintedIdleNode) {
  cluster_.PlainNode("n1").meta.labels = {{"zone", "b"}};
  cluster::Node& idle = cluster_.PlainNode("idle");
  idle.meta.labels = {{"zone", "a"}, {"pool", "a"}};
  idle.allocatable["memory"] = Quantity::FromValue(int64_t{1} << 40);
  idle.taints = {{"maintenance", "", "NoSchedule"}};
  cluster::NodePool pool = PoolOf("a", "", 0, 64, 9, "1");
  pool.labels["zone"] = "a";
  pools_ = {Now(pool, 1)};
  Tied(3, "21", "zone", true);
  cluster_.Running("r", "n1", {}, "22");
  options_.gangs.push_back({"gang", 3, 0, {0, 1, 2}, ""});
  Make();
  EXPECT_EQ(plan_.served, 3);
  EXPECT_THAT(Counts(), ElementsAre(1));
}

TEST_F(GrowthTest, RespectsFiltersOnNewNodes) {
  cluster::NodePool tainted = PoolOf("tainted", "", 0, 8, 9, "1");
  tainted.taints = {{"team", "a", "NoSchedule"}};
  cluster::NodePool labelled = PoolOf("zone-b", "", 0, 8, 9, "3");
  labelled.labels["zone"] = "b";
  pools_ = {Now(labelled), Now(tainted)};
  Pods("plain", 1, {}, "1");
  cluster_.Pod("tolerant", {}, 0, "8").tolerations = {{"team", "Exists", "", ""}};
  cluster_.Pod("elsewhere", {}, 0, "1").node_selector = {{"zone", "c"}};
  Make();
  EXPECT_THAT(Counts(), ElementsAre(1, 1));
  EXPECT_EQ(Left("elsewhere").reason.code, "NoPoolFits");
  EXPECT_GE(Left("elsewhere").nearest, 0);
}

TEST_F(GrowthTest, PodsWithAntiAffinityGetSeparateNodes) {
  pools_ = {Now(PoolOf("a", "", 0, 64, 9, "1"))};
  Tied(3, "1", "kubernetes.io/hostname", false);
  Make();
  EXPECT_THAT(Counts(), ElementsAre(3));
  EXPECT_EQ(plan_.served, 3);
}

TEST_F(GrowthTest, ReasonNamesClosestPool) {
  pools_ = {Now(PoolOf("a30", "A30", 1, 8, 2, "1"), 0, 0, "did not deliver, next try in 4m"),
            Now(PoolOf("a100", kA100, 1, 8, 2, "1"), 2)};
  Pods("closed", 1, {"1g.6gb"}, "1");
  Pods("full", 1, {"3g.20gb"}, "1");
  Pods("wide", 1, {"3g.20gb"}, "9");
  Pods("other", 1, {"1g.10gb.me"}, "1");
  Make();
  EXPECT_EQ(plan_.served, 0);
  EXPECT_EQ(Left("closed0").reason.code, "PoolClosed");
  EXPECT_EQ(Left("closed0").nearest, 0);
  EXPECT_EQ(Left("full0").reason.code, "PoolsAtMaximum");
  EXPECT_EQ(Left("full0").nearest, 1);
  EXPECT_EQ(Left("wide0").reason.code, "NoPoolFits");
  EXPECT_EQ(Left("wide0").nearest, 1);
  EXPECT_EQ(Left("wide0").reason.message,
            "no pool has nodes for it; the nearest is a100: Insufficient cpu: it requests 9 cpu, "
            "and a node has 8 cpu");
  EXPECT_EQ(Left("other0").reason.code, "NoPoolFits");
  pools_.clear();
  Make();
  EXPECT_EQ(Left("full0").reason.code, "NoPools");
}

TEST_F(GrowthTest, PoolWithMaximumZeroIsReportedAsNotFitting) {
  pools_ = {Now(PoolOf("off", "", 0, 8, 0, "1"))};
  Pods("p", 1, {}, "1");
  Make();
  EXPECT_EQ(Left("p0").reason.code, "NoPoolFits");
  EXPECT_EQ(Left("p0").nearest, 0);
  pools_ = {Now(PoolOf("off", "", 0, 8, 0, "1")), Now(PoolOf("full", "", 0, 8, 1, "9"), 1)};
  Make();
  EXPECT_EQ(Left("p0").reason.code, "PoolsAtMaximum");
}

TEST_F(GrowthTest, InvalidPoolDoesNotAffectOthers) {
  pools_ = {Now(PoolOf("bad", "Z1000", 1, 8, 2, "1")), Now(PoolOf("good", "", 0, 8, 2, "1")),
            Now(PoolOf("good", "", 0, 8, 2, "1"))};
  Pods("p", 1, {}, "1");
  Make();
  EXPECT_THAT(Counts(), ElementsAre(0, 1, 0));
  EXPECT_EQ(plan_.pools[0].problem,
            "NodePool bad: spec.gpu.model: 'Z1000' is not in the catalogue: add it to the "
            "catalogue file (docs/catalogue.md)");
  EXPECT_EQ(plan_.pools[1].problem, "");
  EXPECT_EQ(plan_.pools[2].problem, "there is another pool of this name");
}

TEST_F(GrowthTest, ReportsPodsThatAreNotPlanned) {
  pools_ = {Now(PoolOf("a", "", 0, 8, 2, "1"))};
  cluster_.Pod("gated", {}, 0, "1").scheduling_gates = {"gate"};
  cluster_.Pod("bound", {}, 0, "1").node_name = "n";
  Make();
  EXPECT_EQ(Left("gated").reason.code, "SchedulingGated");
  EXPECT_EQ(Left("bound").reason.code, "NotPending");
  EXPECT_THAT(Counts(), ElementsAre(0));
}

TEST_F(GrowthTest, StopsAtTimeLimit) {
  pools_ = {Now(PoolOf("a", kA100, 8, 64, 50, "3")), Now(PoolOf("b", "A30", 4, 64, 50, "1"))};
  for (int i = 0; i < 300; ++i) {
    cluster_.Pod("p" + std::to_string(i), {i % 2 == 0 ? "1g.5gb" : "2g.12gb"}, i % 3,
                 std::to_string(100 + i) + "m");
  }
  options_.out_of_time = [] { return true; };
  Make();
  EXPECT_FALSE(plan_.proven);
  for (const LeftOut& left : plan_.left_out) EXPECT_EQ(left.reason.code, "SearchEnded");
}

TEST_F(GrowthTest, ServesManyPodsDeterministically) {
  pools_ = {Now(PoolOf("a", kA100, 8, 64, 50, "30")), Now(PoolOf("b", "A30", 4, 64, 50, "6"))};
  for (int i = 0; i < 300; ++i) {
    const std::vector<std::string> profiles[] = {{"1g.5gb"}, {"2g.12gb"}, {"3g.20gb"}, {}};
    cluster_.Pod("p" + std::to_string(i), profiles[i % 4], i % 3, std::to_string(100 + i) + "m");
  }
  Make();
  EXPECT_EQ(plan_.served, 300);
  // 75 of 1g and 3g each need at least 75/7 + 75/2 GPUs, 75 of 2g.12gb as many halves.
  EXPECT_LE(plan_.milli_price, 7 * 30'000 + 11 * 6'000);
  const std::vector<int> counts = Counts();
  Make();
  EXPECT_EQ(Counts(), counts);
}

}  // namespace
}  // namespace nos::planning
