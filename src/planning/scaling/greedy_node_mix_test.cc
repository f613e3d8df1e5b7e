#include "planning/scaling/greedy_node_mix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "planning/scaling/consolidate_nodes.h"
#include "planning/scaling/exhaustive_node_mix.h"
#include "planning/testing/problems.h"

namespace nos::planning {
namespace {

using ::testing::ElementsAre;
using testing::Fault;
using testing::ProblemBuilder;

class CoverTest : public ::testing::Test {
 protected:
  void Node(int64_t cpu, const std::vector<std::string>& gpus, int64_t price, int room = 20,
            int coming = 0) {
    const int type = builder_.Node(cpu, gpus);
    types_.push_back({.pool = type, .price = price, .coming = coming, .room = room});
  }
  // Covers all pods of the problem.
  Bins Cover() {
    problem_ = builder_.Build();
    states_.emplace(problem_);
    coverer_.emplace(problem_, types_, *states_, never_);
    wanted_.clear();
    for (const PodClass& cls : problem_.classes) wanted_.push_back(cls.count);
    Bins bins = coverer_->Cover(wanted_);
    Check(bins);
    return bins;
  }
  Bins Thinned(Bins bins) {
    bins = ConsolidateNewNodes(problem_, types_, *coverer_, *states_, std::move(bins), never_);
    Check(bins);
    return bins;
  }
  void Check(const Bins& bins) {
    const Problem problem = WithNodes(problem_, TypesOf(bins));
    const Draft draft = Load(problem, *states_, bins);
    EXPECT_EQ(Fault(draft), "");
    Bins again = bins;
    Unload(draft, again);
    EXPECT_EQ(PlacedOf(again, wanted_.size()), PlacedOf(bins, wanted_.size()));
    for (size_t t = 0; t < types_.size(); ++t) {
      EXPECT_LE(std::ranges::count(TypesOf(bins), static_cast<int>(t)),
                types_[t].Free() + types_[t].room);
    }
  }
  std::vector<int> Placed(const Bins& bins) const { return PlacedOf(bins, wanted_.size()); }

  const std::function<bool()> never_ = [] { return false; };
  ProblemBuilder builder_;
  std::vector<NodeType> types_;
  Problem problem_;
  std::optional<GpuStates> states_;
  std::optional<GreedyNodeMix> coverer_;
  std::vector<int> wanted_;
};

TEST_F(CoverTest, AddsAsManyNodesAsNeeded) {
  Node(100, {"A30"}, 1000);
  Node(100, {"A100-40GB"}, 4000);
  builder_.Pods(10, {"1g.6gb"}, 0, 1);
  builder_.Pods(7, {"3g.20gb"}, 0, 1);
  const Bins bins = Cover();
  EXPECT_THAT(Placed(bins), ElementsAre(10, 7));
  EXPECT_EQ(CostOf(bins, types_), (GrowthCost{3 * 1000 + 4 * 4000, 7}));
  EXPECT_EQ(coverer_->Alone(0, 0), 4);
  EXPECT_EQ(coverer_->Alone(0, 1), 0);
  EXPECT_EQ(coverer_->Alone(1, 1), 2);
}

TEST_F(CoverTest, DifferentPodsFillOneNode) {
  Node(10, {}, 1000);
  for (const int64_t cpu : {6, 5, 5, 4, 3, 3, 2, 2}) builder_.Pods(1, {}, 0, cpu);
  EXPECT_EQ(CostOf(Thinned(Cover()), types_).nodes, 3);
}

TEST_F(CoverTest, FillsFreeNodesFirst) {
  Node(10, {}, 1000, 5);
  Node(10, {}, 9000, 0, 2);
  builder_.Pods(5, {}, 0, 5);
  const Bins bins = Cover();
  EXPECT_EQ(CostOf(bins, types_), (GrowthCost{1000, 1}));
  EXPECT_EQ(bins.size(), 3U);
}

TEST_F(CoverTest, ConsolidationRemovesNodesAndUsesCheaperOnes) {
  Node(10, {}, 1000);
  Node(4, {}, 300);
  builder_.Pods(4, {}, 0, 3);
  Cover();
  Bins bins(4, Bin{0, true, {BinAssignment{0, {}}}});  // one pod on each
  bins = Thinned(std::move(bins));
  EXPECT_THAT(Placed(bins), ElementsAre(4));
  EXPECT_EQ(CostOf(bins, types_), (GrowthCost{1300, 2}));
}

TEST_F(CoverTest, ExhaustiveMixFindsCheaperNodes) {
  Node(10, {}, 1000);
  Node(7, {}, 600);
  builder_.Pods(2, {}, 0, 5);
  builder_.Pods(2, {}, 0, 2);
  Cover();
  Bins bins(2, Bin{0, true, {BinAssignment{0, {}}, BinAssignment{1, {}}}});
  ASSERT_TRUE(IsSmall(types_, wanted_));
  EXPECT_TRUE(
      FindCheapestNodeMix(problem_, types_, *coverer_, *states_, wanted_, true, never_, bins));
  EXPECT_THAT(Placed(bins), ElementsAre(2, 2));
  EXPECT_EQ(CostOf(bins, types_), (GrowthCost{1200, 2}));
}

TEST_F(CoverTest, RemovesPodsOfIncompleteGangs) {
  Node(10, {}, 1000);
  const int gang = builder_.Pods(3, {}, 0, 10);
  builder_.Pods(1, {}, 0, 1);
  problem_ = builder_.Build();
  problem_.gangs = {{3}};
  problem_.classes[gang].gang = 0;
  Bins bins = {{0, true, {BinAssignment{0, {}}}},
               {0, true, {BinAssignment{0, {}}}},
               {0, true, {BinAssignment{1, {}}}}};
  EXPECT_TRUE(TakeOutBrokenGangs(problem_, bins));
  DropEmpty(bins);
  EXPECT_EQ(bins.size(), 1U);
  EXPECT_FALSE(TakeOutBrokenGangs(problem_, bins));
}

}  // namespace
}  // namespace nos::planning
