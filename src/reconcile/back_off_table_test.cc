#include "reconcile/back_off_table.h"

#include <gtest/gtest.h>

namespace nos::reconcile {
namespace {

using std::chrono::seconds;

class BackOffTableTest : public testing::Test {
 protected:
  static Time At(int second) { return Time(seconds(1'000'000 + second)); }

  BackOffTable<> table_{BackOff{seconds(1), seconds(5)}};
};

TEST_F(BackOffTableTest, RestsLongerWithEachFailure) {
  EXPECT_FALSE(table_.Resting("a", At(0)));
  table_.Failed("a", At(0));
  EXPECT_TRUE(table_.Resting("a", At(0)));
  EXPECT_FALSE(table_.Resting("a", At(1)));
  table_.Failed("a", At(1));
  EXPECT_TRUE(table_.Resting("a", At(2)));
  EXPECT_FALSE(table_.Resting("a", At(3)));
  EXPECT_FALSE(table_.Resting("b", At(2)));
}

TEST_F(BackOffTableTest, StartsAfreshAfterForget) {
  table_.Failed("a", At(0));
  table_.Failed("a", At(1));
  table_.Forget("a");
  EXPECT_FALSE(table_.Resting("a", At(1)));
  EXPECT_EQ(table_.Failed("a", At(2)).until, At(3));
}

TEST_F(BackOffTableTest, TakesOtherPausesForOneFailure) {
  table_.Failed("a", At(0));
  EXPECT_EQ(table_.Failed("a", At(1), {seconds(10), seconds(60)}).until, At(21));
}

TEST_F(BackOffTableTest, FailureLongAfterLastOneStartsNewSeries) {
  table_.FailedWithReset("a", At(0));                            // until 1
  EXPECT_EQ(table_.FailedWithReset("a", At(2)).until, At(4));    // the second in a row
  EXPECT_EQ(table_.FailedWithReset("a", At(8)).until, At(12));   // the third
  EXPECT_EQ(table_.FailedWithReset("a", At(17)).until, At(18));  // a new series
}

TEST_F(BackOffTableTest, LongestRestCountsNoFailure) {
  EXPECT_EQ(table_.RestLongest("a", At(0)).until, At(5));
  EXPECT_EQ(table_.Find("a")->failures, 0);
  EXPECT_EQ(table_.Failed("a", At(5)).until, At(6));
}

TEST_F(BackOffTableTest, NextEndIsThatOfTheShortestRest) {
  EXPECT_EQ(table_.NextEnd(At(0)), std::nullopt);
  table_.RestLongest("a", At(0));
  table_.Failed("b", At(0));
  EXPECT_EQ(table_.NextEnd(At(0)), At(1));
  EXPECT_EQ(table_.NextEnd(At(1)), At(5));
  EXPECT_EQ(table_.NextEnd(At(5)), std::nullopt);
}

TEST_F(BackOffTableTest, ForgetsByPredicate) {
  table_.Failed("a", At(0));
  table_.Failed("b", At(0));
  table_.ForgetIf([](const std::string& key, const auto&) { return key == "a"; });
  EXPECT_EQ(table_.Find("a"), nullptr);
  EXPECT_NE(table_.Find("b"), nullptr);
}

TEST_F(BackOffTableTest, TakesEachEndOnce) {
  table_.Failed("a", At(0));
  EXPECT_TRUE(table_.TakeEnded(At(0)).empty());
  EXPECT_EQ(table_.TakeEnded(At(1)), std::vector<std::string>{"a"});
  EXPECT_TRUE(table_.TakeEnded(At(1)).empty());
  table_.Failed("a", At(2));
  EXPECT_EQ(table_.TakeEnded(At(4)), std::vector<std::string>{"a"});
  EXPECT_NE(table_.Find("a"), nullptr);
  EXPECT_TRUE(table_.TakeEnded(At(10)).empty());
  EXPECT_TRUE(table_.empty());  // it has not failed for the longest pause
}

TEST(BackOffNoteTest, KeepsNoteOfLastFailure) {
  BackOffTable<int, std::string> gpus{BackOff{seconds(1), seconds(5)}};
  gpus.Failed(3, Time{}).note = "device is busy";
  EXPECT_EQ(gpus.Find(3)->note, "device is busy");
}

}  // namespace
}  // namespace nos::reconcile
