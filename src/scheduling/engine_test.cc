#include "scheduling/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/random.h"
#include "scheduling/engine/kind_table.h"
#include "scheduling/engine/score_tree.h"
#include "scheduling/framework.h"
#include "scheduling/testing/build.h"

namespace nos::scheduling {
namespace {

using cluster::Node;
using cluster::Pod;
using testing::NodeOf;
using testing::PodOf;
using ::testing::UnorderedElementsAre;

// Applies random changes of a cluster to an engine.
class EngineTest : public ::testing::TestWithParam<uint64_t> {
 protected:
  Node RandomNode() {
    Node node = NodeOf("n" + std::to_string(random_.Below(40)),
                       {{"cpu", std::to_string(2 + random_.Below(6))},
                        {"memory", "8Gi"},
                        {"pods", "6"},
                        {"x.com/d", std::to_string(random_.Below(3))}},
                       {{"zone", "z" + std::to_string(random_.Below(3))}});
    node.meta.labels["kubernetes.io/hostname"] = node.meta.name;
    if (random_.Below(6) == 0) node.taints.push_back({"slow", "", "PreferNoSchedule"});
    if (random_.Below(6) == 0) node.taints.push_back({"kept", "", "NoSchedule"});
    node.unschedulable = random_.Below(15) == 0;
    if (random_.Below(4) == 0)
      node.images.push_back({cluster::ImageId("web:latest"), int64_t{500} << 20});
    return node;
  }

  Pod RandomPod() {
    const std::string app = "app" + std::to_string(random_.Below(3));
    Pod pod =
        PodOf("p" + std::to_string(++made_), {{"cpu", std::to_string(1 + random_.Below(2))},
                                              {"memory", random_.Below(2) == 0 ? "1Gi" : "0"}});
    pod.meta.uid = pod.meta.name;
    pod.meta.labels["app"] = app;
    pod.priority = static_cast<int32_t>(random_.Below(3));
    pod.containers[0].image = "web";
    if (random_.Below(5) == 0) pod.tolerations.push_back({"", "Exists", "", ""});
    if (random_.Below(5) == 0) pod.node_selector["zone"] = "z1";
    if (random_.Below(5) == 0) {
      pod.node_affinity.emplace().preferred.push_back({10, {{{"zone", "In", {"z2"}}}, {}}});
    }
    if (random_.Below(8) == 0) pod.containers[0].host_ports.push_back({8080, "", "TCP"});
    const cluster::LabelSelector own{{{"app", app}}, {}};
    const std::string key = random_.Below(2) == 0 ? "zone" : "kubernetes.io/hostname";
    if (random_.Below(6) == 0) pod.pod_anti_affinity.required.push_back({own, {}, {}, key});
    if (random_.Below(8) == 0) pod.pod_affinity.required.push_back({own, {}, {}, key});
    if (random_.Below(6) == 0) pod.pod_anti_affinity.preferred.push_back({7, {own, {}, {}, key}});
    if (random_.Below(6) == 0) {
      pod.spread.push_back({1,
                            key,
                            random_.Below(2) == 0 ? "DoNotSchedule" : "ScheduleAnyway",
                            own,
                            {},
                            "Honor",
                            "Ignore",
                            {}});
    }
    return pod;
  }

  void ChangeSomething() {
    const uint64_t what = random_.Below(12);
    if (what == 0 || engine_.snapshot().size() < 3) {
      engine_.SetNode(std::make_shared<const Node>(RandomNode()));
    } else if (what == 1 && random_.Below(4) == 0) {
      const size_t i = random_.Below(engine_.snapshot().size());
      engine_.RemoveNode(std::string(engine_.snapshot().node(i).node->meta.name));
    } else if (what < 6 && !running_.empty()) {
      const auto at =
          std::next(running_.begin(), static_cast<ptrdiff_t>(random_.Below(running_.size())));
      if (what == 2) {
        auto changed = std::make_shared<Pod>(*at->second);
        changed->meta.labels["app"] = "app" + std::to_string(random_.Below(3));
        at->second = changed;
        engine_.SetPod(changed);
      } else {
        engine_.RemovePod(at->first);
        running_.erase(at);
      }
    } else if (what == 6) {
      engine_.ChangeContext([&](cluster::ClusterContext& context) {
        auto service = std::make_shared<cluster::PodOwner>();
        service->meta.ns = "x";
        service->meta.name = "s";
        service->selector =
            cluster::LabelSelector{{{"app", "app" + std::to_string(random_.Below(3))}}, {}};
        context.services.Set("x/s", random_.Below(2) == 0 ? nullptr : service);
      });
    }
  }

  void Place(const Pod& pod, const std::string& node) {
    auto bound = std::make_shared<Pod>(pod);
    if (random_.Below(2) == 0) {
      engine_.Assume(bound, node);
      bound = std::make_shared<Pod>(pod);
    }
    if (random_.Below(8) == 0) return engine_.Forget(pod.Key());
    bound->node_name = node;
    bound->phase = "Running";
    running_[pod.Key()] = bound;
    engine_.SetPod(bound);
  }

  const Framework framework_ = Framework::Default();
  Engine engine_{gpu::Catalogue::Builtin()};
  Random random_{GetParam()};
  std::map<std::string, std::shared_ptr<const Pod>> running_;
  int made_ = 0;
};

TEST_P(EngineTest, DecidesLikeFramework) {
  std::vector<Pod> kinds;
  for (int i = 0; i < 12; ++i) kinds.push_back(RandomPod());
  for (int step = 0; step < 400; ++step) {
    for (uint64_t n = random_.Below(4); n > 0; --n) ChangeSomething();
    Pod pod = kinds[random_.Below(kinds.size())];
    pod.meta.name = "p" + std::to_string(++made_);
    pod.meta.uid = pod.meta.name;
    const Decision fast = engine_.Schedule(framework_, std::make_shared<const Pod>(pod));
    const Decision slow = framework_.Schedule(pod, engine_.snapshot(), CycleState());
    ASSERT_EQ(fast.node, slow.node)
        << step << " " << (fast.node ? fast.node->node->meta.name : "") << " "
        << (slow.node ? slow.node->node->meta.name : "") << " " << fast.score << " " << slow.score;
    if (fast.node == nullptr) {
      ASSERT_EQ(fast.diagnosis.ToString(), slow.diagnosis.ToString()) << step;
      continue;
    }
    ASSERT_EQ(fast.score, slow.score) << step;
    Place(pod, fast.node->node->meta.name);
  }
  EXPECT_LT(engine_.tables_made(), 400U);
}

INSTANTIATE_TEST_SUITE_P(Seeds, EngineTest, ::testing::Range<uint64_t>(1, 21));

class EngineBasicsTest : public ::testing::Test {
 protected:
  static std::shared_ptr<const Pod> Waiting(const std::string& name, int32_t priority = 0) {
    Pod pod = PodOf(name, {{"cpu", "1"}});
    pod.meta.uid = name + "-uid";
    pod.priority = priority;
    return std::make_shared<const Pod>(pod);
  }
  static std::shared_ptr<const Pod> Bound(const std::string& name, const std::string& node) {
    Pod pod = *Waiting(name);
    pod.node_name = node;
    return std::make_shared<const Pod>(pod);
  }
  void AddNode(const std::string& name) {
    engine_.SetNode(std::make_shared<const Node>(NodeOf(name, {{"cpu", "1"}})));
  }
  std::string NodeFor(const std::shared_ptr<const Pod>& pod) {
    const Decision decision = engine_.Schedule(framework_, pod);
    return decision.node == nullptr ? "" : decision.node->node->meta.name;
  }

  const Framework framework_ = Framework::Default();
  Engine engine_{gpu::Catalogue::Builtin()};
};

TEST_F(EngineBasicsTest, AssumedPodHoldsNodeUntilForgottenOrBound) {
  AddNode("a");
  engine_.Assume(Waiting("p"), "a");
  EXPECT_EQ(NodeFor(Waiting("q")), "");
  engine_.SetPod(Waiting("p"));  // an outdated state of it
  EXPECT_TRUE(engine_.IsAssumed("x/p"));
  engine_.Forget("x/p");
  EXPECT_EQ(NodeFor(Waiting("q")), "a");
  engine_.Assume(Waiting("p"), "a");
  engine_.SetPod(Bound("p", "a"));
  engine_.Forget("x/p");  // no effect: the pod is bound now
  EXPECT_EQ(NodeFor(Waiting("q")), "");
  engine_.RemovePod("x/p");
  EXPECT_EQ(NodeFor(Waiting("q")), "a");
}

TEST_F(EngineBasicsTest, MovesAssumedPodBoundElsewhereByOtherScheduler) {
  AddNode("a");
  AddNode("b");
  engine_.Assume(Waiting("p"), "a");
  engine_.SetPod(Bound("p", "b"));
  EXPECT_EQ(NodeFor(Waiting("q")), "a");
  EXPECT_TRUE(engine_.snapshot().Find("a")->pods.empty());
  EXPECT_EQ(engine_.snapshot().Find("b")->pods.size(), 1U);
}

TEST_F(EngineBasicsTest, RecreatedPodReplacesItsPredecessor) {
  AddNode("a");
  engine_.SetPod(Bound("p", "a"));
  Pod successor = *Waiting("p");
  successor.meta.uid = "other";
  engine_.SetPod(std::make_shared<const Pod>(successor));
  EXPECT_EQ(NodeFor(Waiting("q")), "a");
}

TEST_F(EngineBasicsTest, KeepsPodsOfMissingNodes) {
  engine_.SetPod(Bound("p", "a"));
  EXPECT_EQ(NodeFor(Waiting("q")), "");
  AddNode("a");
  EXPECT_EQ(engine_.snapshot().Find("a")->pods.size(), 1U);
  engine_.RemoveNode("a");
  engine_.RemovePod("x/p");
  AddNode("a");
  EXPECT_EQ(NodeFor(Waiting("q")), "a");
}

TEST_F(EngineBasicsTest, CountsPodOnceWhenItsNodeReturns) {
  AddNode("a");
  engine_.Assume(Waiting("p"), "a");
  engine_.RemoveNode("a");
  engine_.Forget("x/p");
  engine_.SetPod(Bound("p", "a"));
  AddNode("a");
  EXPECT_EQ(engine_.snapshot().Find("a")->pods.size(), 1U);
}

TEST_F(EngineBasicsTest, NominationHoldsNodeAgainstLowerPriority) {
  AddNode("a");
  const auto first = Waiting("first", 5);
  engine_.Nominate(first, "a");
  EXPECT_EQ(NodeFor(Waiting("q", 4)), "");
  EXPECT_EQ(NodeFor(Waiting("q", 5)), "");
  EXPECT_EQ(NodeFor(Waiting("q", 6)), "a");
  EXPECT_EQ(NodeFor(first), "a");
  AddNode("b");
  EXPECT_EQ(NodeFor(Waiting("q", 4)), "b");
  engine_.Nominate(first, "b");
  EXPECT_EQ(NodeFor(first), "b");  // "a" would be first without the nomination
  EXPECT_EQ(NodeFor(Waiting("q", 4)), "a");
  engine_.Nominate(first, "");
  EXPECT_EQ(NodeFor(first), "a");
}

TEST_F(EngineBasicsTest, DiagnosisCountsNodesHeldByNominations) {
  AddNode("a");
  engine_.Nominate(Waiting("first", 5), "a");
  Pod picky = *Waiting("q");
  picky.node_selector["zone"] = "z1";
  Node other = NodeOf("b", {{"cpu", "8"}});
  engine_.SetNode(std::make_shared<const Node>(other));
  other.meta.name = "a";
  other.allocatable["cpu"] = *Quantity::Parse("1");
  other.meta.labels["zone"] = "z1";
  engine_.SetNode(std::make_shared<const Node>(other));
  const Diagnosis diagnosis =
      engine_.Schedule(framework_, std::make_shared<const Pod>(picky)).diagnosis;
  EXPECT_EQ(diagnosis.nodes, 2);
  std::vector<std::string> reasons, plugins;
  for (const auto& entry : diagnosis.entries) {
    reasons.push_back(entry.code + " " + std::to_string(entry.nodes));
  }
  for (const Plugin* plugin : diagnosis.by) plugins.push_back(plugin->Name());
  EXPECT_THAT(reasons, UnorderedElementsAre("InsufficientResource 1", "NodeAffinityMismatch 1"));
  EXPECT_THAT(plugins, UnorderedElementsAre("NodeResourcesFit", "NodeAffinity"));
  engine_.Nominate(Waiting("first", 5), "b");
  EXPECT_EQ(NodeFor(std::make_shared<const Pod>(picky)), "a");
}

// Decisions beside nominated pods equal those of the framework on a snapshot in which the pods
// nominated for a node run there, node by node.
TEST_P(EngineTest, DecidesLikeFrameworkBesideNominatedPods) {
  std::vector<Pod> kinds;
  for (int i = 0; i < 8; ++i) kinds.push_back(RandomPod());
  std::map<std::string, Pod> nominated;  // by pod key
  for (int step = 0; step < 150; ++step) {
    for (uint64_t n = random_.Below(4); n > 0; --n) ChangeSomething();
    const auto& snapshot = engine_.snapshot();
    Pod other = kinds[random_.Below(kinds.size())];
    other.meta.name = "nominee" + std::to_string(random_.Below(15));
    other.meta.uid = other.meta.name;
    other.node_name = random_.Below(4) == 0 || snapshot.size() == 0
                          ? ""
                          : snapshot.node(random_.Below(snapshot.size())).node->meta.name;
    engine_.Nominate(std::make_shared<const Pod>(other), other.node_name);
    nominated[other.Key()] = other;
    Pod pod = kinds[random_.Below(kinds.size())];
    pod.meta.name = "p" + std::to_string(++made_);
    const auto bars = [&](const std::string& node) {
      auto with = snapshot;
      for (const auto& [key, nominee] : nominated) {
        if (nominee.node_name != node || nominee.priority < pod.priority) continue;
        (void)with.Bind(std::make_shared<const Pod>(nominee), node);
      }
      return !framework_.Filter(framework_.PreFilter(pod, with), pod, *with.Find(node)).fits();
    };
    const Cycle cycle = framework_.PreFilter(pod, snapshot);
    std::set<std::string> free;
    for (size_t i = 0; i < snapshot.size(); ++i) {
      const std::string& node = snapshot.node(i).node->meta.name;
      if (framework_.Filter(cycle, pod, snapshot.node(i)).fits() && !bars(node)) free.insert(node);
    }
    const Decision decision = engine_.Schedule(framework_, std::make_shared<const Pod>(pod));
    ASSERT_EQ(decision.node != nullptr, !free.empty()) << step;
    if (decision.node == nullptr) {
      ASSERT_EQ(decision.diagnosis.feasible, 0) << step;
      continue;
    }
    ASSERT_TRUE(free.contains(decision.node->node->meta.name)) << step;
    Place(pod, decision.node->node->meta.name);
  }
}

TEST(AmongTest, ScheduleChoosesOnlyGivenNodes) {
  const Framework framework = Framework::Default();
  Engine engine(gpu::Catalogue::Builtin());
  for (const auto& [name, cpu] : {std::pair("a", "9"), {"b", "9"}, {"c", "2"}}) {
    engine.SetNode(std::make_shared<const Node>(NodeOf(name, {{"cpu", cpu}, {"pods", "9"}})));
  }
  const std::vector<size_t> only_c{2};
  const auto small = std::make_shared<const Pod>(PodOf("small", {{"cpu", "1"}}));
  engine.Nominate(small, "a");
  Decision decision = engine.Schedule(framework, small);
  ASSERT_NE(decision.node, nullptr);
  EXPECT_EQ(decision.node->node->meta.name, "a");
  decision = engine.Schedule(framework, small, only_c);
  ASSERT_NE(decision.node, nullptr);
  EXPECT_EQ(decision.node->node->meta.name, "c");
  const auto large = std::make_shared<const Pod>(PodOf("large", {{"cpu", "3"}}));
  decision = engine.Schedule(framework, large, only_c);
  EXPECT_EQ(decision.node, nullptr);
  EXPECT_EQ(decision.diagnosis.feasible, 2);
  ASSERT_EQ(decision.diagnosis.by.size(), 1U);
  EXPECT_EQ(decision.diagnosis.by.front()->Name(), "NodeResourcesFit");
  ASSERT_NE(engine.Schedule(framework, large).node, nullptr) << "the restriction is not cached";
}

TEST(ScoreTreeTest, BestEqualsLinearSearchAfterRandomChanges) {
  Random random(3);
  for (const size_t size : {size_t{0}, size_t{1}, size_t{2}, size_t{5}, size_t{64}, size_t{100}}) {
    ScoreTree tree(size);
    EXPECT_FALSE(tree.Best().has_value());
    std::vector<ScoreTree::Entry> entries(size);
    for (int step = 0; step < 500 && size > 0; ++step) {
      const size_t i = random.Below(size);
      entries[i] = {
          random.Below(4) == 0 ? ScoreTree::kNever : static_cast<int64_t>(random.Below(5)),
          random.Below(3)};
      if (random.Below(10) == 0) {
        tree.SetLater(i, entries[i]);
        tree.Rebuild();
      } else {
        tree.Set(i, entries[i]);
      }
      std::optional<size_t> best;
      for (size_t n = 0; n < size; ++n) {
        if (entries[n].score == ScoreTree::kNever) continue;
        const auto better = [&](const ScoreTree::Entry& a, const ScoreTree::Entry& b) {
          return a.score != b.score ? a.score > b.score : a.order < b.order;
        };
        if (!best || better(entries[n], entries[*best])) best = n;
      }
      ASSERT_EQ(tree.Best(), best) << size << " " << step;
    }
  }
}

TEST(ScoreTreeTest, PrefersZeroScoreToExcludedNode) {
  ScoreTree tree(2);
  tree.Set(0, {ScoreTree::kNever, 0});
  tree.Set(1, {0, 9});
  EXPECT_EQ(tree.Best(), 1U);
}

}  // namespace
}  // namespace nos::scheduling
