#include "scheduling/queue.h"

#include <gtest/gtest.h>

#include "scheduling/testing/build.h"

namespace nos::scheduling {
namespace {

using cluster::Pod;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::PodOf;

// Only added nodes help.
class Picky final : public Plugin {
 public:
  std::string Name() const override { return "Picky"; }
  bool MayHelp(const ClusterEvent& event, const Pod&) const override {
    ++asked;
    return event.kind == ClusterEvent::Kind::kNodeAdded;
  }
  mutable int asked = 0;
};

class QueueTest : public ::testing::Test {
 protected:
  std::shared_ptr<const Pod> Waiting(const std::string& name, int32_t priority = 0,
                                     int64_t created = 0) {
    Pod pod = PodOf(name, {{"cpu", "1"}});
    pod.meta.uid = name;
    pod.priority = priority;
    pod.meta.created = Time(seconds(created));
    return std::make_shared<const Pod>(pod);
  }
  std::shared_ptr<const Pod> Put(const std::string& name, int32_t priority = 0,
                                 int64_t created = 0) {
    const auto pod = Waiting(name, priority, created);
    queue_.Set(pod, Verdict::Fits(), now_);
    return pod;
  }
  std::string Take() {
    const auto pod = queue_.Take(now_);
    return pod ? (*pod)->meta.name : "";
  }
  void OnClusterEvent(ClusterEvent::Kind kind) {
    queue_.OnClusterEvent({kind, {}, {}, {}, {}}, now_);
  }

  SchedulingQueue queue_;
  Picky picky_;
  Time now_{seconds(1000)};
};

TEST_F(QueueTest, OrdersByPriorityThenAgeThenName) {
  Put("young", 0, 20);
  Put("old", 0, 10);
  Put("high", 5, 30);
  Put("b", 0, 15);
  Put("a", 0, 15);
  for (const char* name : {"high", "old", "a", "b", "young", ""}) EXPECT_EQ(Take(), name);
}

TEST_F(QueueTest, RefusedPodSleepsUntilPluginReportsHelpfulEvent) {
  const auto pod = Put("p");
  EXPECT_EQ(Take(), "p");
  queue_.Refused(pod, {&picky_}, now_);
  EXPECT_EQ(queue_.asleep(), 1U);
  now_ += seconds(2);
  OnClusterEvent(ClusterEvent::Kind::kPodLeft);
  EXPECT_EQ(Take(), "");
  OnClusterEvent(ClusterEvent::Kind::kNodeAdded);
  EXPECT_EQ(Take(), "p");
}

TEST_F(QueueTest, PodWokenDuringBackoffWaitsForItsEnd) {
  const auto pod = Put("p");
  Take();
  queue_.Refused(pod, {&picky_}, now_);
  OnClusterEvent(ClusterEvent::Kind::kNodeAdded);
  EXPECT_EQ(queue_.paused(), 1U);
  EXPECT_EQ(Take(), "");
  EXPECT_EQ(queue_.NextDue(), now_ + seconds(1));
  now_ += seconds(1);
  EXPECT_EQ(Take(), "p");
}

TEST_F(QueueTest, BackoffDoublesUpToMaximum) {
  const auto pod = Put("p");
  for (const int pause : {1, 2, 4, 8, 10, 10}) {
    EXPECT_EQ(Take(), "p");
    queue_.Failed(pod, now_);
    EXPECT_EQ(queue_.NextDue(), now_ + seconds(pause));
    now_ += seconds(pause);
  }
}

TEST_F(QueueTest, AsksPluginOncePerKindOfPod) {
  for (int i = 0; i < 100; ++i) {
    const auto pod = Put("p" + std::to_string(i));
    Take();
    queue_.Refused(pod, {&picky_}, now_);
  }
  now_ += seconds(5);
  OnClusterEvent(ClusterEvent::Kind::kNodeAdded);
  EXPECT_EQ(picky_.asked, 1);
  EXPECT_EQ(queue_.ready(), 100U);
}

// An event that helps one gang need not help another gang of equal pods.
TEST_F(QueueTest, AsksPluginSeparatelyForEachWorkload) {
  for (const char* workload : {"v", "v", "w"}) {
    Pod pod = *Waiting("p" + std::to_string(queue_.asleep()));
    pod.workload = {workload, "workers", ""};
    const auto shared = std::make_shared<const Pod>(pod);
    queue_.Set(shared, Verdict::Fits(), now_);
    Take();
    queue_.Refused(shared, {&picky_}, now_);
  }
  OnClusterEvent(ClusterEvent::Kind::kPodBound);
  EXPECT_EQ(picky_.asked, 2);
}

TEST_F(QueueTest, RetriesSleepingPodAfterTimeout) {
  const auto pod = Put("p");
  Take();
  queue_.Refused(pod, {&picky_}, now_);
  EXPECT_EQ(queue_.NextDue(), now_ + minutes(5));
  now_ += minutes(5);
  EXPECT_EQ(Take(), "p");
}

TEST_F(QueueTest, PodRefusedWithoutPluginIsWokenByAnyEvent) {
  const auto pod = Put("p");
  Take();
  queue_.Refused(pod, {}, now_);
  now_ += seconds(1);
  OnClusterEvent(ClusterEvent::Kind::kPodLeft);
  EXPECT_EQ(Take(), "p");
  queue_.Refused(pod, {&picky_}, now_);
  now_ += seconds(5);
  queue_.WakeAll(now_);
  EXPECT_EQ(Take(), "p");
}

TEST_F(QueueTest, OnlyChangesVisibleToPluginsWakePod) {
  const auto pod = Put("p");
  Take();
  queue_.Refused(pod, {&picky_}, now_);
  now_ += seconds(5);
  Pod changed = *pod;
  changed.meta.resource_version = "7";
  queue_.Set(std::make_shared<const Pod>(changed), Verdict::Fits(), now_);
  EXPECT_EQ(Take(), "");
  changed.tolerations.push_back({"", "Exists", "", ""});
  queue_.Set(std::make_shared<const Pod>(changed), Verdict::Fits(), now_);
  const auto taken = queue_.Take(now_);
  ASSERT_TRUE(taken.has_value());
  EXPECT_EQ((*taken)->meta.resource_version, "7");
}

TEST_F(QueueTest, UpdateOfTakenPodDoesNotReturnItTwice) {
  const auto pod = Put("p");
  Take();
  Pod changed = *pod;
  changed.meta.labels["a"] = "b";
  queue_.Set(std::make_shared<const Pod>(changed), Verdict::Fits(), now_);
  EXPECT_EQ(Take(), "");
  queue_.Failed(pod, now_);
  now_ += seconds(1);
  EXPECT_EQ((*queue_.Take(now_))->meta.labels.count("a"), 1U);
  queue_.Return(pod, now_);
  EXPECT_EQ(Take(), "p");
}

TEST_F(QueueTest, GatedPodIsNotReturned) {
  const auto pod = Waiting("p");
  queue_.Set(pod, Verdict::Unresolvable(codes::kSchedulingGated, "gated"), now_);
  EXPECT_EQ(queue_.gated(), 1U);
  EXPECT_EQ(Take(), "");
  queue_.WakeAll(now_);
  EXPECT_EQ(Take(), "");
  queue_.Set(pod, Verdict::Fits(), now_);
  EXPECT_EQ(queue_.gated(), 0U);
  EXPECT_EQ(Take(), "p");
}

TEST_F(QueueTest, RemoveClearsPodFromAllStates) {
  const auto ready = Put("ready"), asleep = Put("asleep", 1), paused = Put("paused", 2),
             taken = Put("taken", 3);
  Take();
  Take();
  queue_.Failed(paused, now_);
  Take();
  queue_.Refused(asleep, {&picky_}, now_);
  queue_.Set(Waiting("gated"), Verdict::Unresolvable(codes::kSchedulingGated, "gated"), now_);
  EXPECT_EQ(queue_.All().size(), 5U);
  for (const char* name : {"ready", "asleep", "paused", "taken", "gated", "unknown"}) {
    queue_.Remove(std::string("x/") + name);
  }
  EXPECT_EQ(queue_.ready() + queue_.asleep() + queue_.paused() + queue_.gated(), 0U);
  EXPECT_TRUE(queue_.All().empty());
  EXPECT_FALSE(queue_.NextDue().has_value());
  queue_.Refused(taken, {}, now_);
  queue_.Failed(taken, now_);
  queue_.Return(taken, now_);
  EXPECT_EQ(Take(), "");
}

TEST_F(QueueTest, RecreatedPodStartsWithoutBackoff) {
  const auto pod = Put("p");
  Take();
  queue_.Refused(pod, {&picky_}, now_);
  Pod successor = *pod;
  successor.meta.uid = "other";
  queue_.Set(std::make_shared<const Pod>(successor), Verdict::Fits(), now_);
  EXPECT_EQ(Take(), "p");
}

// The API server forbids both changes. A queue with a stale order would return no more pods.
TEST_F(QueueTest, ReordersPodWhosePriorityOrAgeChanges) {
  Put("a", 0, 10);
  Put("b", 0, 20);
  Put("a", 0, 30);
  EXPECT_EQ(Take(), "b");
  EXPECT_EQ(Take(), "a");
  EXPECT_EQ(Take(), "");
}

}  // namespace
}  // namespace nos::scheduling
