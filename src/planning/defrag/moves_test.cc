#include "planning/moves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "planning/testing/clusters.h"
#include "scheduling/framework.h"

namespace nos::planning {
namespace {

using testing::ClusterBuilder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::SharedPods;
using ::testing::UnorderedElementsAre;

constexpr const char* kA100 = "NVIDIA-A100-SXM4-40GB";

class MovesTest : public ::testing::Test {
 protected:
  cluster::Pod& Pod(const std::string& name, const std::string& node,
                    const std::vector<std::string>& profiles, const std::string& cpu) {
    cluster::Pod& pod = cluster_.Running(name, node, profiles, cpu);
    pod.meta.owners = {{"apps/v1", "ReplicaSet", "set", "uid", true}};
    return pod;
  }
  // A pod that may not be moved.
  cluster::Pod& Bare(const std::string& name, const std::string& node,
                     const std::vector<std::string>& profiles, const std::string& cpu) {
    return cluster_.Running(name, node, profiles, cpu);
  }
  void Quota(const std::string& ns, const std::string& min_cpu) {
    auto quota = std::make_shared<cluster::ElasticQuota>();
    quota->meta.ns = ns;
    quota->meta.name = "quota";
    quota->namespaces = {ns};
    quota->min["cpu"] = Quantity::Parse(min_cpu).value();
    quotas_.push_back(std::move(quota));
  }
  // Sets disruptionsAllowed of a budget for pods with the label app=web.
  void Budget(int allowed) {
    budget_.meta.ns = "x";
    budget_.meta.name = "b";
    budget_.selector.emplace().match_labels = {{"app", "web"}};
    budget_.disruptions_allowed = allowed;
  }

  const MovePlan& Make() {
    before_ = cluster_.Snapshot();
    before_.ChangeContext();
    for (const auto& quota : quotas_) {
      before_.ChangeContext().quotas.Set(quota->Key(), quota);
    }
    if (budget_.selector) {
      before_.ChangeContext().budgets.Set(
          "x/b", std::make_shared<const cluster::PodDisruptionBudget>(budget_));
    }
    return MakeFrom();
  }
  const MovePlan& MakeFrom() {
    unplaced_ = cluster_.Pending();
    plan_ = PlanMoves(before_, unplaced_, framework_, plan_options_, options_);
    Check();
    return plan_;
  }

  // Checks that every move is allowed, that everything fits after all moves, and that each pod has
  // exactly one result.
  void Check() const {
    std::multiset<int> reported;
    for (const PodMoves& pod_moves : plan_.pod_moves) {
      reported.insert(pod_moves.pod);
      EXPECT_FALSE(pod_moves.moves.empty());
      EXPECT_LE(pod_moves.moves.size(), static_cast<size_t>(options_.max_moves));
      for (const Move& move : pod_moves.moves) {
        EXPECT_EQ(move.from, pod_moves.node);
        EXPECT_NE(move.to, pod_moves.node);
        EXPECT_EQ(MobilityOf(*move.pod, options_.rules).kind, Mobility::kMoves);
        CheckFits(*move.pod, move.to);
      }
      CheckFits(*unplaced_[pod_moves.pod], pod_moves.node);
    }
    for (const NoMoveFound& other : plan_.others) {
      reported.insert(other.pod);
      EXPECT_FALSE(other.reason.message.empty());
    }
    EXPECT_EQ(reported.size(), unplaced_.size());
    EXPECT_EQ(std::set<int>(reported.begin(), reported.end()).size(), unplaced_.size());
    CheckOthersStay();
  }
  // Checks that the scheduler's filters admit the pod on its node when it is added last.
  void CheckFits(const cluster::Pod& pod, const std::string& node) const {
    cluster::ClusterSnapshot others = plan_.after;
    ASSERT_TRUE(others.Vacate(pod, node).ok()) << pod.Key() << " is not on " << node;
    cluster::Pod waiting = pod;
    waiting.node_name.clear();
    waiting.phase = "Pending";
    const scheduling::Framework filters =
        scheduling::Framework::Default(scheduling::PartitionedBy::kScheduler);
    const scheduling::Cycle cycle = filters.PreFilter(waiting, others);
    const scheduling::Verdict verdict = filters.Filter(cycle, waiting, *others.Find(node));
    EXPECT_TRUE(verdict.fits()) << pod.Key() << " on " << node << ": " << verdict.message;
  }
  // Checks that used instances of unmoved pods still exist, and that no placements overlap.
  void CheckOthersStay() const {
    std::set<std::string> moved;
    for (const PodMoves& pod_moves : plan_.pod_moves) {
      for (const Move& move : pod_moves.moves) EXPECT_TRUE(moved.insert(move.pod->Key()).second);
    }
    ASSERT_EQ(plan_.after.size(), before_.size());
    for (size_t n = 0; n < before_.size(); ++n) {
      const cluster::NodeInfo& was = before_.node(n);
      const cluster::NodeInfo& is = plan_.after.node(n);
      for (size_t g = 0; g < was.gpus.gpus.size(); ++g) {
        EXPECT_TRUE(is.gpus.gpus[g].Used().has_value());
        for (const cluster::Instance& instance : was.gpus.gpus[g].instances) {
          if (!instance.used || moved.contains(instance.pod)) continue;
          const auto& now = is.gpus.gpus[g].instances;
          const auto there =
              std::ranges::find(now, instance.placement, &cluster::Instance::placement);
          ASSERT_NE(there, now.end());
          EXPECT_EQ(there->pod, instance.pod);
        }
      }
    }
  }

  std::vector<std::string> Moved() const {
    std::vector<std::string> names;
    for (const PodMoves& pod_moves : plan_.pod_moves) {
      for (const Move& move : pod_moves.moves) names.push_back(move.pod->meta.name);
    }
    return names;
  }
  const Reason& Why(const std::string& name) const {
    return std::ranges::find(plan_.others, name,
                             [&](const NoMoveFound& o) { return unplaced_[o.pod]->meta.name; })
        ->reason;
  }

  ClusterBuilder cluster_;
  const scheduling::Framework framework_ = scheduling::Framework::Default();
  PlanOptions plan_options_;
  MoveOptions options_;
  cluster::PodDisruptionBudget budget_;
  std::vector<std::shared_ptr<const cluster::ElasticQuota>> quotas_;
  cluster::ClusterSnapshot before_;
  SharedPods unplaced_;
  MovePlan plan_;
};

TEST_F(MovesTest, MovesFewestPods) {
  for (const char* name : {"a", "b", "c"}) cluster_.PlainNode(name);
  for (const char* name : {"a1", "a2", "a3"}) Pod(name, "a", {}, "20");
  Pod("b1", "b", {}, "30");
  Bare("b2", "b", {}, "20");
  Bare("c1", "c", {}, "30");
  cluster_.Pod("waits", {}, 0, "44");
  Make();
  ASSERT_EQ(plan_.pod_moves.size(), 1U);
  EXPECT_EQ(plan_.pod_moves[0].node, "b");
  EXPECT_THAT(Moved(), ElementsAre("b1"));
  EXPECT_EQ(plan_.pod_moves[0].moves[0].to, "c");
  EXPECT_EQ(plan_.after.Find("c")->requested.Get(cluster::kCpu), 60'000);
}

TEST_F(MovesTest, ChoosesCheapestOfEquallyManyMoves) {
  Quota("owns", "64");
  Quota("borrows", "1");
  const auto moved = [&](int priority, bool over, const std::string& cpu) {
    cluster_ = ClusterBuilder();
    for (const char* name : {"a", "b", "c"}) cluster_.PlainNode(name);
    Pod("on-a", "a", {}, "20");
    cluster::Pod& other = Pod("on-b", "b", {}, cpu);
    other.priority = priority;
    other.meta.ns = over ? "borrows" : "owns";
    other.meta.labels["nos.nebuly.com/capacity"] = over ? "in-quota" : "over-quota";  // a lie
    Bare("c1", "c", {}, "40");
    cluster_.Pod("waits", {}, 0, "60");
    Make();
    return Moved();
  };
  EXPECT_THAT(moved(0, false, "20"), ElementsAre("on-a"));
  EXPECT_THAT(moved(0, false, "10"), ElementsAre("on-b"));
  EXPECT_THAT(moved(0, true, "24"), ElementsAre("on-b"));
  EXPECT_THAT(moved(-1, false, "24"), ElementsAre("on-b"));
  EXPECT_THAT(moved(1, true, "10"), ElementsAre("on-a"));
}

TEST_F(MovesTest, RepartitionsGpusOnTargetNodes) {
  cluster_.Node("a", kA100, {"1g.5gb@0:used"});
  Pod("small", "a", {"1g.5gb"}, "1");
  cluster_.Node("b", kA100, {"2g.10gb@0:used,2g.10gb@2:used"});
  Pod("b1", "b", {"2g.10gb"}, "1");
  Pod("b2", "b", {"2g.10gb"}, "1");
  cluster_.Pod("waits", {"7g.40gb"});
  Make();
  ASSERT_EQ(plan_.pod_moves.size(), 1U);
  const PodMoves& pod_moves = plan_.pod_moves[0];
  EXPECT_EQ(pod_moves.node, "a");
  EXPECT_EQ(pod_moves.devices.at(0).profile, "7g.40gb");
  EXPECT_THAT(Moved(), ElementsAre("small"));
  EXPECT_EQ(pod_moves.moves[0].devices.at(0).profile, "1g.5gb");
  EXPECT_GE(pod_moves.moves[0].devices.at(0).placement.start, 4);
}

TEST_F(MovesTest, LimitsMovesPerPendingPod) {
  cluster_.Node("a", kA100, {"1g.5gb@0:used"});
  Bare("small", "a", {"1g.5gb"}, "1");
  cluster_.Node("b", kA100, {"2g.10gb@0:used,2g.10gb@2:used"});
  Pod("b1", "b", {"2g.10gb"}, "1");
  Pod("b2", "b", {"2g.10gb"}, "1");
  cluster_.Pod("waits", {"7g.40gb"});
  Make();
  EXPECT_THAT(Moved(), UnorderedElementsAre("b1", "b2"));
  options_.max_moves = 1;
  Make();
  EXPECT_THAT(plan_.pod_moves, IsEmpty());
  EXPECT_EQ(Why("waits").code, "TooManyMoves");
  EXPECT_EQ(Why("waits").message,
            "2 pods of node b would have to move, and 1 may for one that waits");
}

TEST_F(MovesTest, KeepsUsedInstanceOfUnknownPod) {
  cluster_.Node("a", kA100, {"1g.5gb@0:used"});
  cluster_.Node("b", kA100, {"1g.5gb@0:used"});
  Bare("small", "b", {"1g.5gb"}, "1");
  cluster_.Pod("waits", {"7g.40gb"});
  Make();
  EXPECT_EQ(Why("waits").code, "NothingMovable");
}

TEST_F(MovesTest, MovesNoneIfOnePodHasNoTarget) {
  for (const char* name : {"a", "b"}) cluster_.PlainNode(name);
  Pod("big", "a", {}, "40");
  Bare("stays", "b", {}, "34");
  cluster_.Pod("waits", {}, 0, "50");
  Make();
  EXPECT_THAT(plan_.pod_moves, IsEmpty());
  EXPECT_EQ(Why("waits").code, "NoRoomElsewhere");
  EXPECT_EQ(Why("waits").message,
            "pod x/big would have to move, and has no other place: Insufficient cpu");
}

TEST_F(MovesTest, MovedPodsMustFitTogether) {
  for (const char* name : {"a", "b", "c"}) cluster_.PlainNode(name);
  Pod("a1", "a", {}, "30");
  Pod("a2", "a", {}, "30");
  Bare("b1", "b", {}, "30");  // with capacity for one of the pods only
  Bare("c1", "c", {}, "50");
  cluster_.Pod("waits", {}, 0, "60");
  Make();
  EXPECT_EQ(Why("waits").code, "NoRoomElsewhere");
}

TEST_F(MovesTest, DisruptionBudgetsApplyAcrossPendingPods) {
  for (const char* name : {"a", "b"}) cluster_.PlainNode(name);
  Pod("a1", "a", {}, "20").meta.labels = {{"app", "web"}};
  Pod("a2", "a", {}, "20").meta.labels = {{"app", "web"}};
  Bare("b1", "b", {}, "20");
  cluster_.Pod("waits", {}, 0, "60");
  Budget(1);
  Make();
  EXPECT_EQ(Why("waits").code, "Budget");
  EXPECT_THAT(Why("waits").message, HasSubstr("PodDisruptionBudget b"));
  Budget(2);
  Make();
  EXPECT_THAT(Moved(), UnorderedElementsAre("a1", "a2"));
}

TEST_F(MovesTest, MovesNothingIfBudgetsAreUnknown) {
  for (const char* name : {"a", "b"}) cluster_.PlainNode(name);
  Pod("a1", "a", {}, "20");
  Bare("b1", "b", {}, "20");
  cluster_.Pod("waits", {}, 0, "60");
  before_ = cluster_.Snapshot();
  MakeFrom();
  EXPECT_EQ(Why("waits").code, "Budget");
}

TEST_F(MovesTest, RespectsLimitsOfCaller) {
  for (const char* name : {"a", "b"}) cluster_.PlainNode(name);
  Pod("a1", "a", {}, "20");
  Pod("a2", "a", {}, "20");
  Bare("b1", "b", {}, "20");
  cluster_.Pod("waits", {}, 0, "60");
  std::vector<std::string> taken;
  options_.take = [&](const cluster::Pod& pod) { taken.push_back(pod.meta.name); };
  options_.may_move = [](const cluster::Pod& pod) { return pod.meta.name != "a2"; };
  Make();
  EXPECT_EQ(Why("waits").code, "Budget");
  options_.may_move = nullptr;
  options_.may_move_together = [](const auto& pods) { return pods.size() < 2; };
  Make();
  EXPECT_EQ(Why("waits").code, "Budget");
  EXPECT_THAT(taken, IsEmpty());
  options_.may_move_together = nullptr;
  Make();
  EXPECT_EQ(taken, Moved());
}

TEST_F(MovesTest, CapacityFreedForOnePodServesAnother) {
  cluster_.PlainNode("a").meta.labels["zone"] = "1";
  cluster_.PlainNode("b");
  Pod("big", "a", {}, "40");
  Bare("stays", "b", {}, "24");
  for (const char* name : {"w1", "w2"}) {
    cluster_.Pod(name, {}, 0, "30").node_selector["zone"] = "1";
  }
  Make();
  EXPECT_THAT(Moved(), ElementsAre("big"));
  EXPECT_EQ(plan_.pod_moves[0].pod, 0);
  EXPECT_EQ(Why("w2").code, "CapacityAvailable");
  EXPECT_EQ(Why("w2").message, "fits on node a once the moves for other pods are made");
  EXPECT_EQ(plan_.after.Find("a")->requested.Get(cluster::kCpu), 60'000);
}

TEST_F(MovesTest, HigherPriorityUsesFreedCapacityFirst) {
  for (const char* name : {"a", "b"}) cluster_.PlainNode(name);
  Pod("big", "a", {}, "40");
  Bare("stays", "b", {}, "24");
  cluster_.Pod("less", {}, 0, "50");
  cluster_.Pod("more", {}, 10, "50");
  Make();
  ASSERT_EQ(plan_.pod_moves.size(), 1U);
  EXPECT_EQ(plan_.pod_moves[0].pod, 1);
  EXPECT_EQ(Why("less").code, "NothingMovable");  // moved pods and served pending pods stay
}

TEST_F(MovesTest, DoesNotMovePlannedPods) {
  for (const char* name : {"a", "b"}) cluster_.PlainNode(name);
  Bare("b1", "b", {}, "20");
  cluster::Pod planned = Pod("planned", "nowhere", {}, "20");
  planned.node_name.clear();
  planned.phase = "Pending";
  cluster_.Pod("waits", {}, 0, "60");
  before_ = cluster_.Snapshot();
  before_.ChangeContext();
  ASSERT_TRUE(before_.Bind(std::make_shared<const cluster::Pod>(planned), "a").ok());
  MakeFrom();
  EXPECT_EQ(Why("waits").code, "NothingMovable");
}

TEST_F(MovesTest, ServesGangAsAWholeOrNotAtAll) {
  for (const char* name : {"a", "b", "c", "d"}) cluster_.PlainNode(name);
  Pod("a1", "a", {}, "40");
  Pod("b1", "b", {}, "40");
  Bare("c1", "c", {}, "24");
  Bare("d1", "d", {}, "24");
  cluster_.Pod("g0", {}, 0, "50");
  cluster_.Pod("g1", {}, 0, "50");
  plan_options_.gangs = {{"pod group x/g", 2, 0, {0, 1}, ""}};
  Make();
  EXPECT_EQ(plan_.pod_moves.size(), 2U);
  EXPECT_THAT(Moved(), UnorderedElementsAre("a1", "b1"));
  options_.max_moves = 1;
  Make();
  EXPECT_THAT(plan_.pod_moves, IsEmpty());
  EXPECT_EQ(Why("g0").code, "GangNotWhole");
  EXPECT_EQ(Why("g1").message,
            "pod group x/g: 1 of its pods find a node together, and 2 must; moves: 1 at most");
  EXPECT_EQ(plan_.after.Find("a")->pods.size(), 1U);
  plan_options_.gangs[0].least = 3;
  Make();
  EXPECT_EQ(Why("g0").code, "GangIncomplete");
}

TEST_F(MovesTest, RespectsFiltersThatDependOnOtherPods) {
  for (const char* name : {"a", "b"}) {
    cluster_.PlainNode(name).meta.labels["kubernetes.io/hostname"] = name;
  }
  Pod("x1", "a", {}, "1").meta.labels["app"] = "x";
  Bare("x2", "b", {}, "1").meta.labels["app"] = "x";
  cluster::PodAffinityTerm apart;
  apart.selector.emplace().match_labels = {{"app", "x"}};
  apart.namespaces = {"x"};
  apart.topology_key = "kubernetes.io/hostname";
  cluster::Pod& waits = cluster_.Pod("waits", {}, 0, "1");
  waits.pod_anti_affinity.required = {apart};
  Make();
  EXPECT_THAT(Moved(), ElementsAre("x1"));
  waits.pod_affinity.required = {apart};  // must also run beside these pods, which is impossible
  Make();
  EXPECT_THAT(plan_.pod_moves, IsEmpty());
}

TEST_F(MovesTest, FindsFewLargePodsAmongManySmallOnes) {
  for (const char* name : {"a", "b"}) cluster_.PlainNode(name);
  for (int i = 0; i < 36; ++i) Pod("small" + std::to_string(i), "a", {}, "1");
  for (int i = 0; i < 3; ++i) Pod("large" + std::to_string(i), "a", {}, "8");
  Bare("b1", "b", {}, "40");
  cluster_.Pod("waits", {}, 0, "28");
  Make();
  EXPECT_THAT(Moved(), UnorderedElementsAre("large0", "large1", "large2"));
}

TEST_F(MovesTest, DoesNotSearchAfterTimeLimit) {
  for (const char* name : {"a", "b"}) cluster_.PlainNode(name);
  Pod("big", "a", {}, "40");
  Bare("stays", "b", {}, "24");
  cluster_.Pod("waits", {}, 0, "50");
  options_.out_of_time = [] { return true; };
  Make();
  EXPECT_EQ(Why("waits").code, "SearchEnded");
}

}  // namespace
}  // namespace nos::planning
