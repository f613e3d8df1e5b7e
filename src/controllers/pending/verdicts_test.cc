#include "controllers/verdicts.h"

#include <gtest/gtest.h>

#include "kube/testing/fake_api.h"
#include "kube/testing/refuse.h"
#include "reconcile/testing/scene.h"

namespace nos::controllers {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

class VerdictsTest : public ::testing::Test {
 protected:
  VerdictsTest() {
    api_.Put({{"kind", "Pod"}, {"metadata", {{"namespace", "ml"}, {"name", "p"}}}});
  }
  // A plan that leaves the pod pending.
  void Plan(const std::string& code, const std::string& message) {
    pods_.Pump(client_, now_);
    planning::PodOutcome outcome;
    outcome.pod = pods_.Get("ml/p");
    outcome.reasons.push_back({code, message, 1});
    outcome.remedy = "do this";
    verdicts_.Add(std::move(outcome), now_);
    Publish();
  }
  void Publish() {
    pods_.Pump(client_, now_);
    verdicts_.PublishPortion(reconcile::Listers{pods_, nodes_}, client_, events_, now_);
    EXPECT_GT(verdicts_.NextChange().value_or(Time::max()), now_);
  }
  std::string Events() { return reconcile::testing::EventsOf(api_); }
  size_t Writes() { return api_.writes.size(); }

  kube::FakeApi api_;
  kube::Client client_{api_};
  kube::Cache<cluster::Pod> pods_{kube::kPods, cluster::ReadPod};
  kube::Cache<cluster::Node> nodes_{kube::kNodes, cluster::ReadNode};
  kube::EventRecorder events_{"test"};
  Verdicts verdicts_{100};
  Time now_{std::chrono::hours(1)};
};

TEST_F(VerdictsTest, PublishesReasonAndRemedyInConditionAndEvent) {
  Plan("NoRoom", "2 nodes are full");
  EXPECT_EQ(Events(),
            "SliceNotPlanned: Failed to plan slices for Pod: 2 nodes are full. Remedy: do this.\n");
  EXPECT_EQ(Writes(), 2U);
  Plan("NoRoom", "2 nodes are full");
  EXPECT_EQ(Writes(), 2U) << "nothing is new";
}

TEST_F(VerdictsTest, HidesPodsOfOtherNamespaces) {
  Plan("NoRoom", "it is kept until the end of pod acme/merger (1g.5gb@0 of GPU 0), pod ml/q");
  EXPECT_EQ(Events(),
            "SliceNotPlanned: Failed to plan slices for Pod: it is kept until the end of 1 pod of "
            "another namespace (1g.5gb@0 of GPU 0), pod ml/q. Remedy: do this.\n");
}

TEST_F(VerdictsTest, RepeatsNoEventForSameReason) {
  Plan("NoRoom", "2 nodes are full");
  now_ += minutes(1);
  Plan("NoRoom", "3 nodes are full");
  EXPECT_EQ(Writes(), 3U) << "the condition follows";
  EXPECT_EQ(verdicts_.NextChange(), std::nullopt);
  EXPECT_EQ(api_.All("events").size(), 1U);
  now_ += minutes(5);
  Plan("NoRoom", "4 nodes are full");
  EXPECT_EQ(api_.All("events").size(), 2U);
  Plan("TooBig", "no GPU has so much");
  EXPECT_EQ(api_.All("events").size(), 3U) << "another reason is";
}

// Other pods may leave within seconds. The condition has the reason at once.
TEST_F(VerdictsTest, WarnsOfPodThatWaitsForHalfAMinute) {
  api_.Put({{"kind", "Pod"},
            {"metadata",
             {{"namespace", "ml"}, {"name", "p"}, {"creationTimestamp", FormatTime(now_)}}}});
  Plan("NoRoom", "2 nodes are full");
  EXPECT_EQ(Writes(), 1U);
  EXPECT_EQ(Events(), "");
  ASSERT_EQ(verdicts_.NextChange(), now_ + seconds(30));
  now_ += seconds(30);
  Publish();
  EXPECT_EQ(Writes(), 2U);
  EXPECT_EQ(Events(),
            "SliceNotPlanned: Failed to plan slices for Pod: 2 nodes are full. Remedy: do this.\n");
  EXPECT_EQ(verdicts_.NextChange(), std::nullopt);
}

TEST_F(VerdictsTest, DelaysFrequentMessageChanges) {
  Plan("NoRoom", "2 nodes are full");
  now_ += seconds(10);
  Plan("NoRoom", "3 nodes are full");
  EXPECT_EQ(Writes(), 2U);
  ASSERT_EQ(verdicts_.NextChange(), now_ + seconds(20));
  now_ += seconds(20);
  Publish();
  EXPECT_EQ(Writes(), 3U);
  EXPECT_EQ(verdicts_.NextChange(), std::nullopt);
}

TEST_F(VerdictsTest, RetriesFailedWriteWithGrowingBackOff) {
  Refuse(api_, "PATCH", "", Status(Code::kUnavailable, "busy"), 2);
  Plan("NoRoom", "2 nodes are full");
  EXPECT_EQ(verdicts_.NextChange(), now_ + seconds(1));
  now_ += seconds(1);
  Publish();
  EXPECT_EQ(verdicts_.NextChange(), now_ + seconds(2));
  now_ += seconds(2);
  Publish();
  EXPECT_EQ(verdicts_.NextChange(), std::nullopt);
  pods_.Pump(client_, now_);
  EXPECT_NE(pods_.Get("ml/p")->FindCondition(kPartitionedCondition), nullptr);
  EXPECT_EQ(api_.All("events").size(), 1U) << "said once";
}

TEST_F(VerdictsTest, NewPlanKeepsBackOffOfFailedWrite) {
  const auto attempts = Refuse(api_, "PATCH", "/ml/pods", Status(Code::kInvalid, "denied"));
  for (int second = 0; second < 3600; ++second) {
    Plan("NoRoom", "2 nodes are full");
    now_ += seconds(1);
  }
  EXPECT_LT(*attempts, 30) << "in an hour, for one pod";
  const int before = *attempts;
  Plan("TooBig", "no GPU has so much");
  EXPECT_EQ(*attempts, before + 1) << "this is news";
  Plan("TooBig", "no GPU has so much");
  EXPECT_EQ(*attempts, before + 1);
}

TEST_F(VerdictsTest, EndsBackOffWhenConditionIsAlreadyThere) {
  Refuse(api_, "PATCH", "", Status(Code::kUnavailable, "timeout, yet written"));
  Plan("NoRoom", "2 nodes are full");
  api_.intercept = nullptr;
  api_.Put({{"kind", "Pod"},
            {"metadata", {{"namespace", "ml"}, {"name", "p"}}},
            {"status",
             {{"conditions",
               {{{"type", kPartitionedCondition},
                 {"status", "False"},
                 {"reason", "NoRoom"},
                 {"message", "2 nodes are full. Remedy: do this."}}}}}}});
  now_ += seconds(1);
  Publish();
  EXPECT_EQ(verdicts_.NextChange(), std::nullopt);
  Plan("NoRoom", "3 nodes are full");
  EXPECT_EQ(verdicts_.NextChange(), std::nullopt);
  pods_.Pump(client_, now_);
  EXPECT_EQ(pods_.Get("ml/p")->FindCondition(kPartitionedCondition)->message,
            "3 nodes are full. Remedy: do this.")
      << "written at once";
}

TEST_F(VerdictsTest, RetriesFailedEvent) {
  for (const std::string reason : {"NoRoom", "TooBig"}) {  // with its condition, and without
    api_.intercept =
        [&](const kube::ApiRequest& request) -> std::optional<Result<kube::ApiResponse>> {
      const bool away = request.method == "POST" || (reason == "TooBig" && request.method != "GET");
      if (!away) return std::nullopt;
      return Result<kube::ApiResponse>(Status(Code::kUnavailable, "away"));
    };
    Plan(reason, "2 nodes are full");
    EXPECT_EQ(verdicts_.NextChange(), now_ + seconds(1));
    api_.intercept = nullptr;
    now_ += seconds(1);
    Publish();
    EXPECT_EQ(verdicts_.NextChange(), std::nullopt);
  }
  EXPECT_EQ(api_.All("events").size(), 2U);
}

TEST_F(VerdictsTest, SkipsEventsAfterConditionTimedOut) {
  Refuse(api_, "PATCH", "", Status(Code::kDeadline, "no answer"));
  Plan("NoRoom", "2 nodes are full");
  EXPECT_EQ(api_.All("events").size(), 0U);
  api_.intercept = nullptr;
  now_ += seconds(1);
  Publish();
  EXPECT_EQ(api_.All("events").size(), 1U);
}

TEST_F(VerdictsTest, DropsVerdictOfReplacedPod) {
  pods_.Pump(client_, now_);
  planning::PodOutcome outcome;
  outcome.pod = pods_.Get("ml/p");
  outcome.reasons.push_back({"NoRoom", "2 nodes are full", 1});
  verdicts_.Add(std::move(outcome), now_);
  api_.Put(
      {{"kind", "Pod"}, {"metadata", {{"namespace", "ml"}, {"name", "p"}, {"uid", "another"}}}});
  Publish();
  EXPECT_EQ(Writes(), 0U);
}

TEST_F(VerdictsTest, PublishesVerdictAgainForReplacedPod) {
  Plan("NoRoom", "2 nodes are full");
  api_.Put(
      {{"kind", "Pod"}, {"metadata", {{"namespace", "ml"}, {"name", "p"}, {"uid", "another"}}}});
  Plan("NoRoom", "2 nodes are full");
  EXPECT_EQ(api_.All("events").size(), 2U);
}

}  // namespace
}  // namespace nos::controllers
