#include "scheduling/framework.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "scheduling/pod_state.h"
#include "scheduling/testing/build.h"

namespace nos::scheduling {
namespace {

using cluster::NodeInfo;
using cluster::Pod;
using ::testing::ElementsAre;
using testing::NodeOf;
using testing::PodOf;
using testing::Snap;

TEST(FrameworkTest, DiagnosisCountsNodesPerReason) {
  auto cordoned = NodeOf("e", {{"cpu", "8"}});
  cordoned.unschedulable = true;
  auto tainted = NodeOf("d", {{"cpu", "8"}});
  tainted.taints = {{"dedicated", "ml", "NoSchedule"}};
  const auto snapshot =
      Snap({NodeOf("a", {{"cpu", "1"}}), NodeOf("b", {{"cpu", "1"}}),
            NodeOf("c", {{"cpu", "4"}, {"nvidia.com/gpu", "1"}}), tainted, cordoned});
  const Framework framework = Framework::Default();
  const Pod pod = PodOf("p", {{"cpu", "2"}, {"nvidia.com/gpu", "2"}});
  const Diagnosis diagnosis = framework.Diagnose(pod, snapshot);
  EXPECT_EQ(diagnosis.ToString(),
            "0/5 nodes are available: 3 Insufficient nvidia.com/gpu, 2 Insufficient cpu, 1 node(s) "
            "had untolerated taint(s), 1 node(s) were unschedulable.");
  EXPECT_EQ(diagnosis.entries[2].code, "Tainted");
  EXPECT_EQ(framework.Schedule(pod, snapshot).node, nullptr);
  EXPECT_EQ(framework.Schedule(pod, snapshot).diagnosis.ToString(), diagnosis.ToString());
}

TEST(FrameworkTest, DiagnosesClusterWithoutNodes) {
  const Framework framework = Framework::Default();
  EXPECT_EQ(framework.Diagnose(PodOf("p"), Snap({})).ToString(),
            "no nodes available to schedule pods");
  EXPECT_EQ(framework.Schedule(PodOf("p"), Snap({})).node, nullptr);
}

TEST(FrameworkTest, ChoosesEmptiestNodeThenFirstByName) {
  const Framework framework = Framework::Default();
  const auto equal = Snap({NodeOf("b", {{"cpu", "8"}}), NodeOf("a", {{"cpu", "8"}})});
  EXPECT_EQ(framework.Schedule(PodOf("p", {{"cpu", "1"}}), equal).node->node->meta.name, "a");
  const auto uneven = Snap({NodeOf("a", {{"cpu", "8"}}), NodeOf("b", {{"cpu", "8"}})},
                           {PodOf("q", {{"cpu", "1"}}, "a")});
  EXPECT_EQ(framework.Schedule(PodOf("p", {{"cpu", "1"}}), uneven).node->node->meta.name, "b");
}

TEST(FrameworkTest, RefusesPodWithoutFreeMigInstance) {
  const Framework framework = Framework::Default();
  const auto snapshot = Snap({NodeOf("a", {{"nvidia.com/mig-1g.5gb", "1"}})},
                             {PodOf("q", {{"nvidia.com/mig-1g.5gb", "1"}}, "a")});
  const Diagnosis diagnosis =
      framework.Diagnose(PodOf("p", {{"nvidia.com/mig-1g.5gb", "1"}}), snapshot);
  EXPECT_EQ(diagnosis.ToString(), "0/1 nodes are available: 1 Insufficient nvidia.com/mig-1g.5gb.");
  EXPECT_EQ(diagnosis.entries.at(0).kind, Verdict::Kind::kUnschedulable);
}

// Refuses every pod, allows named nodes only, or scores by a table, as configured.
class Scripted final : public PreFilterPlugin, public FilterPlugin, public ScorePlugin {
 public:
  Outcome outcome;
  std::map<std::string, int64_t> scores;
  bool reverse = false;
  bool concerned = true;

  std::string Name() const override { return "Scripted"; }
  DependsOn Dependence() const override { return DependsOn::kCluster; }
  bool Concerns(const Pod&) const override { return concerned; }
  Outcome PreFilter(const Pod&, const cluster::ClusterSnapshot&, CycleState& state) const override {
    state.Set(std::string("here"));
    return outcome;
  }
  Verdict Filter(const CycleState& state, const Pod&, const NodeInfo&) const override {
    const auto* left = state.Get<std::string>();
    return left != nullptr && *left == "here" && state.Get<int>() == nullptr && concerned
               ? Verdict::Fits()
               : Verdict::Unresolvable("Lost", "lost state");
  }
  int64_t Score(const CycleState&, const Pod&, const NodeInfo& node) const override {
    const auto it = scores.find(node.node->meta.name);
    return it == scores.end() ? 0 : it->second;
  }
  int64_t Normalized(int64_t score, int64_t, int64_t highest) const override {
    return ScaledToHighest(score, highest, reverse);
  }
};

Framework Of(std::vector<std::pair<Scripted, int>> scripted) {
  std::vector<Framework::Entry> entries;
  entries.reserve(scripted.size());
  for (auto& [plugin, weight] : scripted) {
    entries.push_back({std::make_unique<Scripted>(std::move(plugin)), weight});
  }
  return Framework(std::move(entries));
}

TEST(FrameworkTest, PreFilterRefusesPodForAllNodes) {
  Scripted plugin;
  plugin.outcome.verdict = Verdict::Unschedulable("OverQuota", "namespace x is over its quota");
  const Framework framework = Of({{plugin, 1}});
  EXPECT_EQ(framework.Diagnose(PodOf("p"), Snap({NodeOf("a"), NodeOf("b")})).ToString(),
            "0/2 nodes are available: namespace x is over its quota.");
}

TEST(FrameworkTest, CountsEqualMessagesOfDifferentKindsTogether) {
  const Framework framework = Framework::Default();
  const Pod pod = PodOf("p", {{"cpu", "2"}});
  const auto snapshot = Snap({NodeOf("full", {{"cpu", "2"}}), NodeOf("small", {{"cpu", "1"}})},
                             {PodOf("q", {{"cpu", "1"}}, "full")});
  const Diagnosis diagnosis = framework.Diagnose(pod, snapshot);
  EXPECT_EQ(diagnosis.entries.size(), 2);  // evictions would help on one of the nodes only
  EXPECT_EQ(diagnosis.ToString(), "0/2 nodes are available: 2 Insufficient cpu.");
}

TEST(FrameworkTest, IntersectsNodesOfPreFilters) {
  Scripted first;
  first.outcome.nodes = {{"a", "b", "gone"}};
  first.outcome.elsewhere = Verdict::Unresolvable("First", "first says no");
  Scripted second;
  second.outcome.nodes = {{"b", "c"}};
  second.outcome.elsewhere = Verdict::Unresolvable("Second", "second says no");
  const Framework framework = Of({{first, 1}, {second, 1}});
  const auto snapshot = Snap({NodeOf("a"), NodeOf("b"), NodeOf("c")});
  EXPECT_EQ(framework.Schedule(PodOf("p"), snapshot).node->node->meta.name, "b");
  const Diagnosis diagnosis = framework.Diagnose(PodOf("p"), snapshot);
  EXPECT_EQ(diagnosis.feasible, 1);
  EXPECT_EQ(diagnosis.ToString(), "1/3 nodes are available: 2 first says no.");
}

TEST(FrameworkTest, NormalizesScoresBeforeWeighting) {
  Scripted up;
  up.scores = {{"a", 5}, {"b", 10}};
  Scripted down = up;
  down.reverse = true;
  const Framework framework = Of({{up, 1}, {down, 3}, {up, 0}});
  const auto snapshot = Snap({NodeOf("a"), NodeOf("b"), NodeOf("c")});
  const std::vector<const NodeInfo*> nodes{&snapshot.node(0), &snapshot.node(1), &snapshot.node(2)};
  const Cycle cycle = framework.PreFilter(PodOf("p"), snapshot);
  EXPECT_THAT(framework.Score(cycle, PodOf("p"), snapshot, nodes), ElementsAre(50 + 150, 100, 300));
}

TEST(FrameworkTest, SkipsFiltersThatDoNotConcernPod) {
  Scripted plugin;
  plugin.concerned = false;
  EXPECT_NE(Of({{plugin, 1}}).Schedule(PodOf("p"), Snap({NodeOf("a")})).node, nullptr);
}

TEST(FrameworkTest, FiltersWorkWithoutTheirPreFilter) {
  const Framework framework = Framework::Default();
  const auto snapshot = Snap({NodeOf("a", {{"cpu", "1"}})});
  const Pod pod = PodOf("p", {{"cpu", "2"}});
  int refusals = 0;
  for (const FilterPlugin* filter : framework.filters()) {
    if (!filter->Filter(CycleState(), pod, snapshot.node(0)).fits()) ++refusals;
  }
  EXPECT_EQ(refusals, 1);
}

TEST(NormalizeTest, ScalesScoresToHighest) {
  const auto scaled = [](std::vector<int64_t> scores, bool reverse) {
    const int64_t highest = *std::ranges::max_element(scores);
    for (int64_t& score : scores) score = ScaledToHighest(score, highest, reverse);
    return scores;
  };
  EXPECT_THAT(scaled({1, 3, 0}, false), ElementsAre(33, 100, 0));
  EXPECT_THAT(scaled({1, 3, 0}, true), ElementsAre(67, 0, 100));
  EXPECT_THAT(scaled({0, 0}, false), ElementsAre(0, 0));
  EXPECT_THAT(scaled({0, 0}, true), ElementsAre(100, 100));
}

TEST(PodStateTest, ClassifiesPendingAndSchedulablePods) {
  Pod pod = PodOf("p");
  EXPECT_TRUE(IsPending(pod));
  EXPECT_TRUE(IsSchedulable(pod));
  pod.scheduling_gates = {"wait"};
  EXPECT_TRUE(IsPending(pod));
  EXPECT_FALSE(IsSchedulable(pod));
  EXPECT_FALSE(IsPending(PodOf("q", {}, "a")));
  pod.meta.deleted = Time{};
  EXPECT_FALSE(IsPending(pod));
  Pod running = PodOf("r");
  running.phase = "Running";
  EXPECT_FALSE(IsPending(running));
}

}  // namespace
}  // namespace nos::scheduling
