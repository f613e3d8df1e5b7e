#include "controllers/pending/event_queue.h"

#include <gtest/gtest.h>

#include "kube/testing/fake_api.h"
#include "reconcile/testing/scene.h"

namespace nos::controllers {
namespace {

using std::chrono::seconds;

class EventQueueTest : public ::testing::Test {
 protected:
  EventQueueTest() {
    for (const char* name : {"p", "q"}) {
      api_.Put({{"kind", "Pod"}, {"metadata", {{"namespace", "ml"}, {"name", name}}}});
    }
    pods_.Pump(client_, clock_.Now());
  }
  void Record(const std::string& message) {
    queue_.Add({{"Node", "", "n", "n"}, kube::EventType::kNormal, "Because", message});
  }
  void Verdict(const std::string& pod) {
    planning::PodOutcome outcome;
    outcome.pod = pods_.Get("ml/" + pod);
    outcome.reasons.push_back({"NoRoom", "all is full", 1});
    queue_.verdicts().Add(std::move(outcome), clock_.Now());
  }
  void Publish() { queue_.Publish(reconcile::Listers{pods_, nodes_}, client_, clock_); }
  // Runs until all is published, or the API server gives up. Returns the number of portions.
  int PublishAll() {
    int portions = 0;
    while (queue_.Due() != Time::max() && portions < 1000) {
      clock_.AdvanceTo(std::max(clock_.Now(), queue_.Due()));
      Publish();
      ++portions;
    }
    return portions;
  }

  ManualClock clock_{Time(std::chrono::hours(1))};
  kube::FakeApi api_;
  kube::Client client_{api_};
  kube::Cache<cluster::Pod> pods_{kube::kPods, cluster::ReadPod};
  kube::Cache<cluster::Node> nodes_{kube::kNodes, cluster::ReadNode};
  EventQueue queue_{"test", 2};
};

TEST_F(EventQueueTest, PublishesInPortions) {
  EXPECT_EQ(queue_.Due(), Time::max());
  for (const char* message : {"one", "two", "three"}) Record(message);
  Publish();
  EXPECT_EQ(api_.All("events").size(), 2U);
  EXPECT_EQ(PublishAll(), 1);
  EXPECT_EQ(api_.All("events").size(), 3U);
}

TEST_F(EventQueueTest, AlternatesEventsAndVerdicts) {
  for (const char* message : {"one", "two", "three", "four", "five"}) Record(message);
  for (const char* pod : {"p", "q"}) Verdict(pod);
  Publish();
  Publish();
  EXPECT_NE(reconcile::testing::EventsOf(api_).find("Because: two"), std::string::npos);
  EXPECT_NE(reconcile::testing::EventsOf(api_).find("SliceNotPlanned"), std::string::npos);
}

TEST_F(EventQueueTest, RetriesUnansweredEventWithLongerTimeout) {
  std::vector<Duration> patience;
  Duration takes = seconds(10);
  api_.intercept = [&](const kube::ApiRequest& request) {
    std::optional<Result<kube::ApiResponse>> answer;
    if (request.method != "POST") return answer;
    patience.push_back(request.patience);
    clock_.Advance(std::min(takes, request.patience));
    if (takes > request.patience) answer = Status(Code::kDeadline, "no answer");
    return answer;
  };
  Record("one");
  PublishAll();
  EXPECT_EQ(reconcile::testing::EventsOf(api_), "Because: one\n");
  EXPECT_GT(patience.size(), 1U);
  EXPECT_LT(patience.front(), patience.back());
  takes = std::chrono::hours(1);
  Record("two");
  EXPECT_LT(PublishAll(), 10) << "not for ever";
}

TEST_F(EventQueueTest, DropsOldestEventsBeyondLimit) {
  for (int i = 0; i < 12'000; ++i) Record(std::to_string(i));
  Publish();
  EXPECT_NE(reconcile::testing::EventsOf(api_).find("Because: 2000\n"), std::string::npos);
}

}  // namespace
}  // namespace nos::controllers
