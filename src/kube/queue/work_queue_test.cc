#include "kube/work_queue.h"

#include <gtest/gtest.h>

namespace nos::kube {
namespace {

using std::chrono::seconds;

constexpr Time kStart{seconds(100)};

TEST(WorkQueue, TakesEachKeyOnceInOrderOfDueTime) {
  WorkQueue queue;
  queue.Add("b", kStart + seconds(1));
  queue.Add("a", kStart);
  queue.Add("c", kStart);
  queue.Add("a", kStart + seconds(9));
  EXPECT_EQ(queue.size(), 3u);
  EXPECT_EQ(queue.Take(kStart), "a");
  EXPECT_EQ(queue.Take(kStart), "c");
  EXPECT_EQ(queue.Take(kStart), std::nullopt);
  EXPECT_EQ(queue.NextDue(), kStart + seconds(1));
  EXPECT_EQ(queue.Take(kStart + seconds(1)), "b");
  EXPECT_EQ(queue.NextDue(), std::nullopt);
}

TEST(WorkQueue, RequeuesKeyAddedDuringProcessing) {
  WorkQueue queue;
  queue.Add("a", kStart);
  ASSERT_EQ(queue.Take(kStart), "a");
  queue.Add("a", kStart);
  EXPECT_EQ(queue.Take(kStart), std::nullopt);
  queue.Done("a");
  EXPECT_EQ(queue.Take(kStart), "a");
  queue.Done("a");
  EXPECT_EQ(queue.Take(kStart), std::nullopt);
}

TEST(WorkQueue, KeepsEarlierDueTime) {
  WorkQueue queue;
  queue.Add("a", kStart + seconds(9));
  queue.Add("a", kStart + seconds(3));
  queue.Add("a", kStart + seconds(5));
  EXPECT_EQ(queue.NextDue(), kStart + seconds(3));
}

TEST(WorkQueue, BacksOffPerKeyUntilSuccess) {
  WorkQueue queue(BackOff{.base = seconds(1), .limit = seconds(5)});
  std::vector<Duration> waits;
  for (int i = 0; i < 5; ++i) {
    queue.Retry("a", kStart);
    waits.push_back(*queue.NextDue() - kStart);
    queue.Take(kStart + seconds(10));
    queue.Done("a");
  }
  EXPECT_EQ(waits,
            (std::vector<Duration>{seconds(1), seconds(2), seconds(4), seconds(5), seconds(5)}));
  EXPECT_TRUE(queue.Failing("a"));
  queue.Forget("a");
  EXPECT_FALSE(queue.Failing("a"));
  queue.Retry("a", kStart);
  EXPECT_EQ(queue.NextDue(), kStart + seconds(1));
}

}  // namespace
}  // namespace nos::kube
