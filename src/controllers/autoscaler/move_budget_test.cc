#include "controllers/autoscaler/move_budget.h"

#include <gtest/gtest.h>

namespace nos::controllers {
namespace {

using std::chrono::hours;
using std::chrono::minutes;

constexpr Time kNow{hours(500'000)};

std::shared_ptr<const cluster::Node> NodeWithMoves(const std::string& name, const std::string& id,
                                                   Time at, int pods) {
  auto node = std::make_shared<cluster::Node>();
  node->meta.name = name;
  node->meta.annotations[std::string(kMovedFrom)] = WriteMoved({{id, {at, {{"ml", pods}}}}});
  return node;
}

TEST(MoveBudgetTest, LimitsMovesOfOneNamespace) {
  MoveBudget budget(10, 2);
  budget.Add("r-1", "a", "ml", kNow);
  MoveAllowance allowance = budget.Allowance();
  EXPECT_TRUE(allowance.Allows({{"ml", 1}}));
  EXPECT_FALSE(allowance.Allows({{"ml", 2}}));
  EXPECT_TRUE(allowance.Allows({{"web", 2}}));
  allowance.Take("ml");
  EXPECT_FALSE(allowance.Allows({{"ml", 1}}));
  EXPECT_TRUE(budget.Allowance().Allows({{"ml", 1}})) << "a plan does not use up the budget";
}

TEST(MoveBudgetTest, LimitsTheSumOverNamespaces) {
  MoveBudget budget(3, 2);
  budget.Add("r-1", "a", "ml", kNow);
  EXPECT_TRUE(budget.Allowance().Allows({{"ml", 1}, {"web", 1}}));
  EXPECT_FALSE(budget.Allowance().Allows({{"ml", 1}, {"web", 2}}));
}

TEST(MoveBudgetTest, CountsMovesThatAnotherReplicaWrote) {
  MoveBudget budget(10, 2);
  budget.Observe({NodeWithMoves("a", "r-1", kNow - minutes(10), 2)}, kNow);
  EXPECT_FALSE(budget.Allowance().Allows({{"ml", 1}}));
}

TEST(MoveBudgetTest, CountsAMoveOnceThatIsAlsoOnItsNode) {
  MoveBudget budget(10, 2);
  budget.Add("r-1", "a", "ml", kNow);
  budget.Observe({NodeWithMoves("a", "r-1", kNow, 1)}, kNow);
  EXPECT_EQ(budget.Allowance().total, 1);
}

TEST(MoveBudgetTest, ForgetsMovesAfterAnHour) {
  MoveBudget budget(10, 1);
  budget.Add("r-1", "a", "ml", kNow);
  budget.Observe({}, kNow + minutes(59));
  EXPECT_FALSE(budget.Allowance().Allows({{"ml", 1}}));
  budget.Observe({}, kNow + hours(1));
  EXPECT_TRUE(budget.Allowance().Allows({{"ml", 1}}));
}

}  // namespace
}  // namespace nos::controllers
