#include "planning/model/gpu_states.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planning/testing/problems.h"

namespace nos::planning {
namespace {

using ::testing::ElementsAre;
using ::testing::Pointee;
using testing::ProblemBuilder;

// One GPU and one slice.
Problem ProblemOf(const std::string& gpu, const std::string& slice) {
  ProblemBuilder builder;
  builder.Node(8, {gpu});
  builder.Pods(9, {slice});
  return builder.Build();
}

TEST(GpuStateTableTest, EqualStatesHaveEqualIds) {
  const Problem problem = ProblemOf("A100-40GB", "1g.5gb");
  GpuStateTable table(problem);
  const GpuStateId start = table.Start(problem.gpus[0], false);
  EXPECT_EQ(table.Start(problem.gpus[0], true), start);
  EXPECT_EQ(table.size(), 1u);
  EXPECT_EQ(table.TakenSlots(start), 0);
}

TEST(GpuStateTableTest, CountsDestroyedFreeInstances) {
  const Problem problem = ProblemOf("A100-40GB 1g.5gb@0", "7g.40gb");
  GpuStates states(problem);
  const GpuStateId start = states.Start(problem.gpus[0], false);
  const Step step = states.Next(start, 0);
  ASSERT_TRUE(step.possible);
  EXPECT_EQ(step.destroyed, 1);
  EXPECT_EQ(states.Destroyed(start, step.next, 1), 1);
}

TEST(CheapestStepsTest, UsesExistingInstanceBeforeNewOne) {
  const Problem problem = ProblemOf("A100-40GB 3g.20gb@0", "3g.20gb");
  GpuStates states(problem);
  const Step first = states.Next(states.Start(problem.gpus[0], false), 0);
  ASSERT_TRUE(first.possible);
  EXPECT_FALSE(first.created);
  const Step second = states.Next(first.next, 0);
  ASSERT_TRUE(second.possible);
  EXPECT_TRUE(second.created);
  EXPECT_FALSE(states.Next(second.next, 0).possible);
}

TEST(MaximalSetsTest, ListsWhatFitsBesideUsedInstances) {
  const Problem problem = ProblemOf("A100-40GB", "3g.20gb");
  GpuStates states(problem);
  const GpuStateId start = states.Start(problem.gpus[0], false);
  EXPECT_THAT(states.sets().Of(start), Pointee(ElementsAre(ElementsAre(2))));
  EXPECT_THAT(states.sets().MostOn(start).each, ElementsAre(2));
  const GpuStateId one = states.Next(start, 0).next;
  EXPECT_THAT(states.sets().Of(one), Pointee(ElementsAre(ElementsAre(1))));
}

TEST(ArrangementsTest, RefusesSetThatDoesNotFit) {
  const Problem problem = ProblemOf("A100-40GB 3g.20gb@4", "3g.20gb");
  GpuStates states(problem);
  const GpuStateId start = states.Start(problem.gpus[0], false);
  EXPECT_FALSE(states.Arrange(start, {3}));
  const std::optional<Arrangement>& both = states.Arrange(start, {2});
  ASSERT_TRUE(both);
  EXPECT_EQ(both->changes, 1);
  EXPECT_EQ(both->takings.size(), 2u);
}

TEST(NodePackingsTest, RemembersWhatFits) {
  const Problem problem = ProblemOf("A100-40GB", "3g.20gb");
  GpuStates states(problem);
  const GpuStateId start = states.Start(problem.gpus[0], false);
  NodePackings& packings = states.packings();
  const int gpus = packings.InternGpus({start, start});
  const int slices = packings.InternSlices({{.slice = 0, .count = 4}});
  EXPECT_EQ(packings.InternGpus({start, start}), gpus);
  EXPECT_EQ(packings.Fits(gpus, slices), nullptr);
  const auto* packed = states.Pack(gpus, slices);
  ASSERT_NE(packed, nullptr);
  ASSERT_TRUE(*packed);
  EXPECT_THAT(**packed, ElementsAre(ElementsAre(2), ElementsAre(2)));
  packings.Remember(gpus, slices, true);
  EXPECT_THAT(packings.Fits(gpus, slices), Pointee(true));
}

}  // namespace
}  // namespace nos::planning
