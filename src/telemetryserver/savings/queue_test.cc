#include "telemetryserver/savings/queue.h"

#include <gtest/gtest.h>

namespace nos::telemetryserver {
namespace {

constexpr auto kInTime = [] { return false; };

// Class 0 takes device 0, or else two of device 1; class 1 takes device 1.
const std::vector<PodClass> kClasses = {{{{{0, 1}, {1, 2}}}}, {{{{1, 1}}}}};

TEST(QueueTest, PodsWaitForDevices) {
  const std::vector<QueuedPod> pods = {{0, 0, 10, 50}, {0, 0, 20, 50}};
  const QueueResult result = RunQueue(pods, kClasses, {{0, 0, 1}}, {0, 1000}, kInTime);
  EXPECT_EQ(result.started, 2U);
  EXPECT_EQ(result.waited, 40);  // the second one, until 60
}

TEST(QueueTest, PodTakesAnotherOptionThatIsFree) {
  const std::vector<QueuedPod> pods = {{0, 0, 10, 50}, {0, 0, 20, 50}, {1, 0, 30, 5}};
  const QueueResult result = RunQueue(pods, kClasses, {{0, 0, 1}, {0, 1, 2}}, {0, 1000}, kInTime);
  EXPECT_EQ(result.started, 3U);
  EXPECT_EQ(result.waited, 40);  // the third one, until the second one ends at 70
}

TEST(QueueTest, HigherPriorityFirstAndLaterPodsMayPass) {
  const std::vector<QueuedPod> pods = {
      {1, 0, 0, 100}, {1, 0, 10, 100}, {1, 5, 20, 100}, {0, 0, 30, 100}};
  // Pod 3 passes the two that wait for device 1.
  const QueueResult result = RunQueue(pods, kClasses, {{0, 0, 1}, {0, 1, 1}}, {0, 1000}, kInTime);
  EXPECT_EQ(result.started, 4U);
  EXPECT_EQ(result.waited, (100 - 20) + (200 - 10));
}

TEST(QueueTest, WaitingCountsUntilTheEndOfTheTime) {
  const std::vector<QueuedPod> pods = {{1, 0, 0, kEndless}, {1, 0, 100, 1}};
  const QueueResult result = RunQueue(pods, kClasses, {{0, 1, 1}}, {0, 1000}, kInTime);
  EXPECT_EQ(result.started, 1U);
  EXPECT_EQ(result.waited, 900);
}

TEST(QueueTest, DeviceTakenAwayInUseIsGoneAfterItsPod) {
  const std::vector<QueuedPod> pods = {{1, 0, 0, 100}, {1, 0, 10, 100}};
  const std::vector<CapacityChange> changes = {{0, 1, 1}, {50, 1, -1}, {400, 1, 1}};
  const QueueResult result = RunQueue(pods, kClasses, changes, {0, 1000}, kInTime);
  EXPECT_EQ(result.started, 2U);
  EXPECT_EQ(result.waited, 390);
}

TEST(QueueTest, PodWithSeveralNeedsTakesAllOrNothing) {
  const std::vector<PodClass> classes = {{{{{0, 1}}, {{1, 1}}}}, {{{{0, 1}}}}};
  // Device 1 comes at 100: until then pod 0 leaves device 0 to pod 1.
  const std::vector<QueuedPod> pods = {{0, 0, 0, 10}, {1, 0, 5, 50}};
  const QueueResult result = RunQueue(pods, classes, {{0, 0, 1}, {100, 1, 1}}, {0, 1000}, kInTime);
  EXPECT_EQ(result.started, 2U);
  EXPECT_EQ(result.waited, 100);
}

TEST(QueueTest, StopsOnceMoreWaitedThanAsked) {
  const std::vector<QueuedPod> pods = {{1, 0, 0, 1}, {1, 0, 500, 1}, {1, 0, 600, 1}};
  const QueueResult result = RunQueue(pods, kClasses, {}, {0, 1'000'000, 100}, kInTime);
  EXPECT_GT(result.waited, 100);
  EXPECT_LT(result.waited, 1'000'000);
}

}  // namespace
}  // namespace nos::telemetryserver
