#include "scheduling/preemption.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduling/framework.h"
#include "scheduling/testing/build.h"

namespace nos::scheduling {
namespace {

using cluster::Node;
using cluster::Pod;
using ::testing::ElementsAre;
using testing::NodeOf;
using testing::PodOf;

Pod Running(const std::string& name, const std::string& node, int32_t priority,
            const std::string& cpu = "1", int64_t started = 0) {
  Pod pod = PodOf(name, {{"cpu", cpu}}, node);
  pod.phase = "Running";
  pod.priority = priority;
  pod.started = Time(std::chrono::seconds(started));
  pod.meta.labels["app"] = name;
  return pod;
}

Pod Waiting(int32_t priority, const std::string& cpu = "1") {
  Pod pod = PodOf("p", {{"cpu", cpu}});
  pod.priority = priority;
  return pod;
}

class PreemptionTest : public ::testing::Test {
 protected:
  // "NODE: victims"; empty if there is no result.
  std::string Find(const std::vector<Node>& nodes, const std::vector<Pod>& pods, const Pod& pod,
                   PreemptionOptions options = {}) {
    cluster::ClusterSnapshot snapshot = testing::Snap(nodes, pods);
    snapshot.ChangeContext() = context_;
    const auto found = FindPreemption(framework_, snapshot, pod, options);
    if (!found) return "";
    std::string text = found->node + ":";
    for (const auto& victim : found->victims) text += " " + victim->meta.name;
    return text + (found->violations > 0 ? " !" + std::to_string(found->violations) : "");
  }
  void Budget(const std::string& app, int32_t allowed, std::vector<std::string> disrupted = {}) {
    auto budget = std::make_shared<cluster::PodDisruptionBudget>();
    budget->meta.ns = "x";
    budget->meta.name = app;
    budget->selector = cluster::LabelSelector{{{"app", app}}, {}};
    budget->disruptions_allowed = allowed;
    budget->disrupted_pods = std::move(disrupted);
    context_.budgets.Set("x/" + app, budget);
  }

  const Framework framework_ = Framework::Default();
  cluster::ClusterContext context_;
};

const Node kA = NodeOf("a", {{"cpu", "2"}}), kB = NodeOf("b", {{"cpu", "2"}});

TEST_F(PreemptionTest, EvictsOnlyLowerPriority) {
  const std::vector<Pod> pods = {Running("low", "a", 1), Running("same", "a", 5)};
  EXPECT_EQ(Find({kA}, pods, Waiting(5)), "a: low");
  EXPECT_EQ(Find({kA}, pods, Waiting(1)), "");
  EXPECT_EQ(Find({kA}, pods, Waiting(5, "2")), "");
}

TEST_F(PreemptionTest, EvictsFewestAndLeastImportantPods) {
  const std::vector<Pod> pods = {Running("one", "a", 1), Running("two", "a", 2)};
  EXPECT_EQ(Find({kA}, pods, Waiting(5)), "a: one");
  EXPECT_EQ(Find({kA}, pods, Waiting(5, "2")), "a: two one");
  const std::vector<Pod> equals = {Running("old", "a", 1, "1", 10),
                                   Running("new", "a", 1, "1", 20)};
  EXPECT_EQ(Find({kA}, equals, Waiting(5)), "a: new");
}

TEST_F(PreemptionTest, SkipsNodesWhereEvictionDoesNotHelp) {
  Node cordoned = kA;
  cordoned.unschedulable = true;
  EXPECT_EQ(Find({cordoned}, {Running("low", "a", 1, "2")}, Waiting(5)), "");
  EXPECT_EQ(Find({kA}, {Running("low", "a", 1, "2")}, Waiting(5, "3")), "");
}

TEST_F(PreemptionTest, PrefersKeepingBudgetsToLowPriority) {
  Budget("guarded", 0);
  const std::vector<Pod> pods = {Running("guarded", "a", 1, "2"), Running("free", "b", 4, "2")};
  EXPECT_EQ(Find({kA, kB}, pods, Waiting(5)), "b: free");
  EXPECT_EQ(Find({kA}, pods, Waiting(5)), "a: guarded !1");
  Budget("guarded", 1);
  EXPECT_EQ(Find({kA, kB}, pods, Waiting(5)), "a: guarded");
  Budget("guarded", 0, {"guarded"});  // its eviction is counted already (disruptedPods)
  EXPECT_EQ(Find({kA, kB}, pods, Waiting(5)), "a: guarded");
}

TEST_F(PreemptionTest, AddsBackPodsWithBudgetFirst) {
  Budget("guarded", 0);
  const std::vector<Pod> pods = {Running("guarded", "a", 1), Running("free", "a", 2)};
  EXPECT_EQ(Find({kA}, pods, Waiting(5)), "a: free");
}

TEST_F(PreemptionTest, ChoosesNodeWithLeastHarm) {
  // The least important first victim wins.
  EXPECT_EQ(
      Find({kA, kB}, {Running("three", "a", 3, "2"), Running("two", "b", 2, "2")}, Waiting(5)),
      "b: two");
  // The lowest sum of priorities; each victim adds to it, so the number counts, too.
  EXPECT_EQ(
      Find({kA, kB}, {Running("a1", "a", 2), Running("a2", "a", 1), Running("b1", "b", 2, "2")},
           Waiting(5, "2")),
      "b: b1");
  // The youngest victim wins.
  EXPECT_EQ(
      Find({kA, kB}, {Running("old", "a", 2, "2", 1), Running("new", "b", 2, "2", 9)}, Waiting(5)),
      "b: new");
  // The first name wins.
  EXPECT_EQ(
      Find({kA, kB}, {Running("x", "b", 2, "2", 1), Running("y", "a", 2, "2", 1)}, Waiting(5)),
      "a: y");
}

TEST_F(PreemptionTest, LimitsNumberOfCandidateNodes) {
  EXPECT_EQ(Find({kA, kB}, {Running("three", "a", 3, "2"), Running("two", "b", 2, "2")}, Waiting(5),
                 {.min_candidate_percentage = 0, .min_candidates = 1}),
            "a: three");
}

TEST_F(PreemptionTest, ReportsWhyPodMayNotPreempt) {
  const auto why = [&](const Pod& pod, const std::vector<Pod>& pods) {
    return WhyNotPreempt(framework_, testing::Snap({kA}, pods), pod);
  };
  Pod pod = Waiting(5);
  EXPECT_EQ(why(pod, {}), "");
  pod.preemption_policy = "Never";
  EXPECT_EQ(why(pod, {}), "not eligible due to preemptionPolicy=Never.");
  pod.preemption_policy = "";
  pod.nominated_node = "a";
  Pod ending = Running("low", "a", 1, "2");
  EXPECT_EQ(why(pod, {ending}), "");
  ending.meta.deleted = Time{};
  EXPECT_EQ(why(pod, {ending}), "") << "terminating for another reason";
  ending.conditions = {{"DisruptionTarget", "True", "EvictionByEvictionAPI", "", {}}};
  EXPECT_EQ(why(pod, {ending}), "");
  ending.conditions[0].reason = "PreemptionByScheduler";
  EXPECT_EQ(why(pod, {ending}), "not eligible due to a terminating pod on the nominated node.");
  ending.priority = 5;
  EXPECT_EQ(why(pod, {ending}), "");
  pod.nominated_node = "gone";
  EXPECT_EQ(why(pod, {ending}), "");
}

// The scheduler partitions GPUs here: victims are the small slices in the place of the large one,
// although other slices belong to less important pods.
TEST(SlicePreemptionTest, EvictsPodsInPlaceOfLargerSlice) {
  const Framework framework = Framework::Default(PartitionedBy::kScheduler);
  cluster::Node node = NodeOf("n", {{"cpu", "96"}, {"nvidia.com/mig-1g.5gb", "5"}},
                              {{"nos.nebuly.com/gpu-partitioning", "mig"},
                               {"nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB"},
                               {"nvidia.com/gpu.count", "1"}});
  node.meta.annotations = {
      {"nos.nebuly.com/status-layout-0",
       "1g.5gb@0:used,1g.5gb@2:used,1g.5gb@4:used,1g.5gb@5:used,1g.5gb@6:used"},
      {"nos.nebuly.com/status-holders-0",
       "1g.5gb@0=x/a,1g.5gb@2=x/b,1g.5gb@4=x/c,1g.5gb@5=x/d,1g.5gb@6=x/e"}};
  std::vector<Pod> pods;
  int32_t priority = 1;
  for (const char* name : {"c", "a", "d", "b", "e"}) {
    Pod pod = PodOf(name, {{"nvidia.com/mig-1g.5gb", "1"}}, "n");
    pod.priority = priority++;
    pods.push_back(pod);
  }
  Pod large = PodOf("p", {{"nvidia.com/mig-4g.20gb", "1"}});
  large.priority = 10;
  const auto found = FindPreemption(framework, testing::Snap({node}, pods), large, {});
  ASSERT_TRUE(found);
  std::string victims;
  for (const auto& victim : found->victims) victims += victim->meta.name;
  EXPECT_EQ(victims, "ba") << "a 4g.20gb can only start at 0";
}

// Like kube-scheduler, searches on until a candidate violates no budget.
TEST_F(PreemptionTest, SearchesOnForNodeThatViolatesNoBudget) {
  Budget("guarded", 0);
  std::vector<Node> nodes;
  std::vector<Pod> pods;
  for (int i = 0; i < 5; ++i) {
    const std::string node = "n" + std::to_string(i);
    nodes.push_back(NodeOf(node, {{"cpu", "1"}}));
    pods.push_back(Running("v" + std::to_string(i), node, 1));
    pods.back().meta.labels["app"] = i < 3 ? "guarded" : "free";
  }
  EXPECT_EQ(Find(nodes, pods, Waiting(5), {.min_candidate_percentage = 0, .min_candidates = 2}),
            "n3: v3");
}

}  // namespace
}  // namespace nos::scheduling
