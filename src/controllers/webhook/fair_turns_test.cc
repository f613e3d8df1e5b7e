#include "controllers/webhook/fair_turns.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace nos::controllers {
namespace {

// Callers in threads, which record the order of their turns.
class FairTurnsTest : public ::testing::Test {
 protected:
  ~FairTurnsTest() override {
    for (std::thread& thread : threads_) thread.join();
  }
  // Returns when it waits.
  void Wait(const std::string& group) {
    const size_t before = turns_.inside();
    threads_.emplace_back([this, group] {
      const auto turn = turns_.Take(group);
      if (turn != nullptr) {
        order_ += group;
      } else {
        ++refused_;
      }
    });
    while (turns_.inside() == before && refused_ == 0) std::this_thread::yield();
  }
  void Join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  FairTurns turns_{5, 3};
  std::string order_;  // written by who has the turn
  std::atomic<int> refused_ = 0;
  std::vector<std::thread> threads_;
};

TEST_F(FairTurnsTest, GroupsTakeTurns) {
  auto first = turns_.Take("a");
  Wait("a");
  Wait("a");
  Wait("b");
  Wait("c");
  first.reset();
  Join();
  EXPECT_EQ(order_, "bcaa") << "a waited first, and does not hold up the others";
  EXPECT_EQ(turns_.inside(), 0U);
}

TEST_F(FairTurnsTest, OneGroupDoesNotHoldAllPlaces) {
  auto first = turns_.Take("a");
  Wait("a");
  Wait("a");
  EXPECT_EQ(turns_.Take("a"), nullptr);
  Wait("b");
  Wait("b");
  EXPECT_EQ(turns_.Take("b"), nullptr) << "five in total, and no group has two more";
  first.reset();
  Join();
  EXPECT_NE(turns_.Take("a"), nullptr);
}

TEST_F(FairTurnsTest, CallerTakesPlaceOfGroupWithMost) {
  auto first = turns_.Take("a");
  Wait("a");
  Wait("a");
  Wait("b");
  Wait("b");
  Wait("c");
  while (refused_ == 0) std::this_thread::yield();
  EXPECT_EQ(turns_.inside(), 5U);
  first.reset();
  Join();
  EXPECT_EQ(order_, "bcab") << "the last one of a gave way";
  EXPECT_EQ(refused_, 1);
  EXPECT_EQ(turns_.inside(), 0U);
}

}  // namespace
}  // namespace nos::controllers
