#include "scheduling/plugins/node_resources_fit/node_resources_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduling/plugins/node_resources_fit/fit.h"
#include "scheduling/testing/build.h"

namespace nos::scheduling {
namespace {

using cluster::ResourceVector;
using testing::NodeOf;
using testing::PodOf;
using testing::Snap;

Verdict Filter(const cluster::Node& node, const cluster::Pod& pod,
               const std::vector<cluster::Pod>& running = {}) {
  return NodeResourcesFit().Filter({}, pod, Snap({node}, running).node(0));
}

TEST(NodeResourcesFitTest, CountsWhatRunsThere) {
  const auto node = NodeOf("a", {{"cpu", "2"}, {"memory", "4Gi"}});
  EXPECT_TRUE(Filter(node, PodOf("p", {{"cpu", "2"}, {"memory", "4Gi"}})).fits());
  const Verdict verdict = Filter(node, PodOf("p", {{"cpu", "2"}, {"memory", "1Gi"}}),
                                 {PodOf("q", {{"cpu", "1m"}}, "a")});
  EXPECT_EQ(verdict.kind, Verdict::Kind::kUnschedulable);
  EXPECT_EQ(verdict.code, "InsufficientResource");
  EXPECT_EQ(verdict.message, "Insufficient cpu");
  EXPECT_TRUE(verdict.more.empty());
}

TEST(NodeResourcesFitTest, NamesEveryResourceThatLacks) {
  const Verdict verdict =
      Filter(NodeOf("a", {{"cpu", "1"}, {"pods", "0"}}),
             PodOf("p", {{"cpu", "2"}, {"ephemeral-storage", "1"}, {"x.com/d", "1"}}));
  EXPECT_EQ(verdict.kind, Verdict::Kind::kUnresolvable);
  EXPECT_EQ(verdict.message, "Insufficient cpu");
  ASSERT_EQ(verdict.more.size(), 3u);
  EXPECT_EQ(verdict.more[0].message, "Insufficient ephemeral-storage");
  EXPECT_EQ(verdict.more[1].message, "Insufficient x.com/d");
  EXPECT_EQ(verdict.more[2].code, "TooManyPods");
  EXPECT_EQ(verdict.more[2].message, "Too many pods");
}

TEST(NodeResourcesFitTest, InitContainersOverheadAndPodCountCount) {
  const auto node = NodeOf("a", {{"cpu", "2"}, {"pods", "1"}});
  auto pod = PodOf("p", {{"cpu", "1"}});
  pod.init_containers.push_back({"init", testing::Resources({{"cpu", "2"}}), {}, false});
  EXPECT_TRUE(Filter(node, pod).fits());
  pod.overhead = testing::Resources({{"cpu", "1m"}});
  EXPECT_FALSE(Filter(node, pod).fits());
  EXPECT_EQ(Filter(node, PodOf("p"), {PodOf("q", {}, "a")}).code, "TooManyPods");
}

TEST(NodeResourcesFitTest, NothingRequestedNeverLacks) {
  const auto overfull = NodeOf("a", {{"cpu", "1"}});
  EXPECT_TRUE(
      Filter(overfull, PodOf("p", {{"x.com/d", "0"}}), {PodOf("q", {{"cpu", "3"}}, "a")}).fits());
}

TEST(NodeResourcesFitTest, MigInstancesCanBeMadeSoTheyAreNeverHopeless) {
  const Verdict verdict = Filter(NodeOf("a"), PodOf("p", {{"nvidia.com/mig-7g.40gb", "1"}}));
  EXPECT_EQ(verdict.kind, Verdict::Kind::kUnschedulable);
  EXPECT_EQ(Filter(NodeOf("a"), PodOf("p", {{"nvidia.com/gpu", "1"}})).kind,
            Verdict::Kind::kUnresolvable);
}

TEST(FitTest, TheYesOrNoAgreesWithTheListAndMigCanBeLeftOut) {
  const auto vec = [](testing::Amounts amounts) {
    return ResourceVector::From(testing::Resources(amounts));
  };
  const ResourceVector requests = vec({{"cpu", "1"}, {"nvidia.com/mig-1g.5gb", "2"}});
  const ResourceVector allocatable = vec({{"cpu", "2"}, {"nvidia.com/mig-1g.5gb", "1"}});
  EXPECT_FALSE(Fits(requests, allocatable, {}));
  EXPECT_EQ(Shortfalls(requests, allocatable, {}).size(), 1u);
  EXPECT_TRUE(Fits(requests, allocatable, {}, Mig::kIgnore));
  EXPECT_TRUE(Shortfalls(requests, allocatable, {}, Mig::kIgnore).empty());
  EXPECT_FALSE(Fits(requests, allocatable, vec({{"cpu", "1500m"}}), Mig::kIgnore));
  const Shortfall lack = Shortfalls(requests, allocatable, vec({{"cpu", "1500m"}})).at(0);
  EXPECT_EQ(lack.requested, 1000);
  EXPECT_EQ(lack.used, 1500);
  EXPECT_EQ(lack.allocatable, 2000);
  EXPECT_FALSE(lack.hopeless);
}

TEST(FitTest, HugeNumbersDoNotWrap) {
  ResourceVector most;
  most.Set(cluster::kMemory, INT64_MAX);
  ResourceVector one;
  one.Set(cluster::kMemory, 1);
  EXPECT_TRUE(Fits(most, most, {}));
  EXPECT_FALSE(Fits(most, most, one));
  EXPECT_FALSE(Fits(most, one, most));
  ResourceVector unknown;
  unknown.Set(cluster::kUnknownResource, 1);
  EXPECT_FALSE(Fits(unknown, unknown, {}));
  EXPECT_EQ(Shortfalls(unknown, unknown, {}).size(), 1u);
}

int64_t Score(const FitOptions& options, const cluster::Node& node) {
  return NodeResourcesFit(options).Score(
      {}, PodOf("p", {{"cpu", "1"}}),
      Snap({node}, {PodOf("q", {{"cpu", "1"}, {"memory", "1Gi"}}, "a")}).node(0));
}

TEST(NodeResourcesFitTest, ScoresFreeOrTakenShares) {
  const auto node = NodeOf("a", {{"cpu", "8"}, {"memory", "4Gi"}, {"x.com/d", "4"}});
  using enum FitOptions::Strategy;
  EXPECT_EQ(Score({}, node), (75 + 75) / 2);
  EXPECT_EQ(Score({kMostAllocated, {{"cpu", 1}, {"memory", 1}}}, node), (25 + 25) / 2);
  EXPECT_EQ(Score({kLeastAllocated, {{"cpu", 1}, {"x.com/d", 3}}}, node), (75 + 300) / 4);
  EXPECT_EQ(Score({kLeastAllocated, {{"cpu", 1}, {"x.com/none", 3}}}, node), 75);
  EXPECT_EQ(Score({}, NodeOf("a", {})), 0);
  EXPECT_EQ(Score({}, NodeOf("a", {{"cpu", "1"}})), 0);
  EXPECT_EQ(Score({kMostAllocated, {{"cpu", 1}}}, NodeOf("a", {{"cpu", "1"}})), 100);
}

}  // namespace
}  // namespace nos::scheduling
