// Preemption by priority, and the nominations that follow from it.
#include <gmock/gmock.h>

#include <string>

#include "controllers/relocations.h"
#include "controllers/scheduler/fixture_test.h"
#include "kube/testing/refuse.h"

namespace nos::controllers {
namespace {

using ::testing::Contains;

class SchedulerPreemptTest : public SchedulerFixture {
 protected:
  void Pod(const std::string& name, int priority, const std::string& cpu = "1") {
    PutPod(name, "cpu", cpu, priority);
  }
};

// A preemptor of higher priority takes the node. The nomination of the other pod is removed in the
// API server, too: its next update would otherwise restore it.
TEST_F(SchedulerPreemptTest, DropsNominationTakenByHigherPriorityPod) {
  CpuNode("n", "1");
  Pod("low", 1);
  Run();
  LetPodsEndSlowly();
  Pod("mid", 5);
  Run();
  ASSERT_EQ(Nominee("mid"), "n");
  Pod("high", 9);
  Run();
  EXPECT_EQ(Nominee("high"), "n");
  EXPECT_EQ(Nominee("mid"), "");
}

// A victim was evicted already, although the watch does not show it yet.
TEST_F(SchedulerPreemptTest, EvictsNoFurtherPodWhileWatchIsLate) {
  CpuNode("a", "1");
  CpuNode("b", "1");
  Pod("low", 1);
  Run();
  Pod("lesser", 0);
  Run();
  ASSERT_EQ(NodeOf("low") + NodeOf("lesser"), "ab");
  Cordon("b");
  LetPodsEndSlowly();
  Pod("high", 9);
  while (!IsEnding("low")) ASSERT_TRUE(runner_->Step(clock_));
  watches_.pods_silent = true;
  Json open = *api_.Find("nodes", "b");
  MakeObject(open, "spec")["unschedulable"] = false;
  api_.Put(open);
  Run();
  EXPECT_FALSE(IsEnding("lesser"));
  watches_.pods_silent = false;
  Run();
  api_.Remove("pods", "ml/low");
  Run();
  EXPECT_EQ(NodeOf("high"), "a");
}

TEST_F(SchedulerPreemptTest, PlaceholderPreemptsNothing) {
  CpuNode("n", "1");
  Pod("low", 1);
  Run();
  Pod("high", 9);
  ChangePod("high", [](Json& pod) { MakeObject(pod, "metadata", "labels")[kPlaceholder] = "r-1"; });
  Run();
  EXPECT_EQ(NodeOf("low"), "n");
  EXPECT_EQ(NodeOf("high"), "");
}

TEST_F(SchedulerPreemptTest, PreemptedEventNamesPreemptor) {
  CpuNode("n", "1");
  Pod("low", 1);
  Run();
  Pod("high", 9);
  Run();
  EXPECT_THAT(Split(reconcile::testing::EventsOf(api_), '\n'),
              Contains("Preempted: Preempted by pod high-uid (ml/high) on node n"));
}

// The victim may be deleted, and its name reused, before the Event is published.
TEST_F(SchedulerPreemptTest, PublishesPreemptedEventAfterVictimIsDeleted) {
  config_.reports_per_call = config_.reports_beside_bindings = 1;
  Restart();
  CpuNode("n", "1");
  Pod("low", 1);
  Run();
  for (const char* other : {"a", "b", "c"}) Pod(other, 9, "2");
  Pod("high", 9);
  while (api_.Find("pods", "ml/low") != nullptr) ASSERT_TRUE(runner_->Step(clock_));
  PutPod("low", "cpu", "1", 1);
  Json successor = *api_.Find("pods", "ml/low");
  MakeObject(successor, "metadata")["uid"] = "another";
  api_.Put(successor);
  Run();
  EXPECT_THAT(Split(reconcile::testing::EventsOf(api_), '\n'),
              Contains("Preempted: Preempted by pod high-uid (ml/high) on node n"));
}

TEST_F(SchedulerPreemptTest, PreemptedEventHidesNameFromOtherNamespace) {
  CpuNode("n", "1");
  Pod("low", 1);
  Run();
  Pod("high", 9);
  Json other = *api_.Find("pods", "ml/high");
  MakeObject(other, "metadata")["namespace"] = "acme";
  api_.Remove("pods", "ml/high");
  api_.Put(other);
  Run();
  EXPECT_THAT(Split(reconcile::testing::EventsOf(api_), '\n'),
              Contains("Preempted: Preempted by pod high-uid on node n"));
}

// A user deleted the pod with a grace period of hours.
TEST_F(SchedulerPreemptTest, DoesNotWaitForPodDeletedByUser) {
  for (const char* node : {"n1", "n2"}) CpuNode(node, "2");
  Pod("guard", 100);
  BindElsewhere("guard", "n1");
  Pod("ending", 0);
  BindElsewhere("ending", "n1");
  ChangePod("ending", [](Json& pod) {
    MakeObject(pod, "metadata")["deletionTimestamp"] = "2027-01-15T08:00:00Z";
  });
  Pod("low", 0, "2");
  BindElsewhere("low", "n2");
  Pod("high", 9, "2");
  ChangePod("high", [](Json& pod) { MakeObject(pod, "status")["nominatedNodeName"] = "n1"; });
  Run();
  EXPECT_EQ(NodeOf("low"), "gone");
  EXPECT_EQ(NodeOf("high"), "n2");
}

// A terminating pod that is chosen as victim gets the condition, too, so that no other pod is
// evicted meanwhile.
TEST_F(SchedulerPreemptTest, MarksTerminatingPodAsVictim) {
  for (const char* node : {"n1", "n2"}) CpuNode(node, "1");
  Pod("ending", 0);
  BindElsewhere("ending", "n1");
  ChangePod("ending", [](Json& pod) {
    MakeObject(pod, "metadata")["deletionTimestamp"] = "2027-01-15T08:00:00Z";
  });
  Pod("low", 1);
  BindElsewhere("low", "n2");
  LetPodsEndSlowly();
  Pod("high", 9);
  Run();
  ASSERT_EQ(Nominee("high"), "n1") << "its pod is the least important one";
  CpuNode("n3", "1");
  Pod("lesser", -1);
  BindElsewhere("lesser", "n3");
  clock_.Advance(std::chrono::minutes(6));
  Run();
  EXPECT_FALSE(IsEnding("lesser"));
  EXPECT_EQ(Nominee("high"), "n1");
  api_.Remove("pods", "ml/ending");
  Run();
  EXPECT_EQ(NodeOf("high"), "n1");
}

// By the victim's condition other schedulers, and this one after a restart, recognize it. A
// successor that does not see the nomination would give the capacity to another pod.
struct FirstWrite {
  const char* what;
  const char* pod;  // whose status it is
};

class SchedulerWritesFirstTest : public SchedulerPreemptTest,
                                 public ::testing::WithParamInterface<FirstWrite> {};

TEST_P(SchedulerWritesFirstTest, DoesNotEvictBeforeItIsWritten) {
  const std::string status = std::string("/") + GetParam().pod + "/status";
  CpuNode("n", "1");
  Pod("low", 1);
  Run();
  Refuse(api_, "PATCH", status, Status(Code::kConflict, "somebody else is writing"));
  Pod("high", 9);
  Run();
  EXPECT_EQ(NodeOf("low"), "n");
  EXPECT_EQ(GetParam().pod == std::string("high") ? Nominee("high") : "", "");
  api_.intercept = nullptr;
  clock_.Advance(seconds(10));  // no other event: the failure itself requeues the pod
  Run();
  EXPECT_EQ(NodeOf("low"), "gone");
  clock_.Advance(seconds(10));  // the pod's back-off
  Run();
  EXPECT_EQ(NodeOf("high"), "n");
}

INSTANTIATE_TEST_SUITE_P(All, SchedulerWritesFirstTest,
                         ::testing::Values(FirstWrite{"ConditionOfVictim", "low"},
                                           FirstWrite{"NominationOfPreemptor", "high"}),
                         [](const auto& test) { return test.param.what; });

// Victims were evicted for this node.
TEST_F(SchedulerPreemptTest, KeepsNominationAfterLostBinding) {
  CpuNode("n", "1");
  Pod("low", 1);
  Run();
  Refuse(api_, "", "/binding", Status(Code::kUnavailable, "connection refused"));
  Pod("high", 9);
  Run();
  api_.intercept = nullptr;
  Pod("late", 5);
  Run();
  EXPECT_EQ(NodeOf("late"), "");
  clock_.Advance(seconds(10));
  Run();
  EXPECT_EQ(NodeOf("high"), "n");
}

TEST_F(SchedulerPreemptTest, IsNotQuietUntilWatchShowsEviction) {
  CpuNode("n", "1");
  Pod("low", 1);
  Run();
  Pod("high", 9);
  while (NodeOf("low") != "gone") ASSERT_TRUE(runner_->Step(clock_));
  watches_.pods_silent = true;
  scheduler_->Retire();
  EXPECT_FALSE(scheduler_->IsQuiet()) << "it would have another one go";
  watches_.pods_silent = false;
  Run();
  EXPECT_TRUE(scheduler_->IsQuiet());
}

// Terminating pods do not count for topology spread.
TEST_F(SchedulerPreemptTest, RetriesSpreadPodWhenAnotherStartsTerminating) {
  for (const char* name : {"a", "b"}) {
    api_.Put({{"kind", "Node"},
              {"metadata", {{"name", name}, {"labels", {{"zone", name}}}}},
              {"spec", {{"unschedulable", std::string(name) == "b"}}},
              {"status", {{"allocatable", {{"cpu", "8"}, {"pods", "110"}}}}}});
  }
  const auto spread = [&](const std::string& name) {
    PutPod(name, "cpu", "1", 0, {{"app", "web"}});
    ChangePod(name, [](Json& pod) {
      MakeObject(pod, "spec")["topologySpreadConstraints"] =
          JsonArray{{{"maxSkew", 1},
                     {"topologyKey", "zone"},
                     {"whenUnsatisfiable", "DoNotSchedule"},
                     {"labelSelector", {{"matchLabels", {{"app", "web"}}}}}}};
    });
  };
  spread("first");
  BindElsewhere("first", "a");
  spread("second");  // a has one already; b has none, but is cordoned
  Run();
  ASSERT_EQ(NodeOf("second"), "");
  ChangePod("first", [](Json& pod) {
    MakeObject(pod, "metadata")["deletionTimestamp"] = "2027-01-15T08:00:00Z";
  });
  Run();
  EXPECT_EQ(NodeOf("second"), "a");
}

}  // namespace
}  // namespace nos::controllers
