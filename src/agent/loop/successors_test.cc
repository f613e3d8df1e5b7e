// Successive pods with the same name on one node. The kubelet lists holders only by name.
#include "agent/loop/use_fixture_test.h"

namespace nos::agent {
namespace {

class SuccessorTest : public AgentUseTest {
 protected:
  // The pod holds the first slice, and the kubelet has not stopped it.
  void ThePredecessorIsDeletedByForce() {
    api_.Put(BoundPod("db-0", "u1", {}, JsonArray{Asking("main", "1")}));
    kubelet_.Assign({"ml", "db-0", "main", kSlice, first_.uuid});
    Admitted("db-0");
    Run();
    api_.Remove("pods", "ml/db-0");
    Run(milliseconds(300));
  }
};

// A pod is force-deleted. The next pod with its name is admitted while the kubelet still stops the
// first.
TEST_F(SuccessorTest, FreesSliceOfForceDeletedPodOnceItHasEnded) {
  ThePredecessorIsDeletedByForce();
  api_.Put(BoundPod("db-0", "u2", {}, JsonArray{Asking("main", "1")}));
  Run(milliseconds(300));
  kubelet_.Assign({"ml", "db-0", "main", kSlice, second_.uuid});
  Admitted("db-0");
  Run(seconds(20));
  kubelet_.Remove("ml", "db-0");  // the first pod has ended
  kubelet_.Assign({"ml", "db-0", "main", kSlice, second_.uuid});
  Run(seconds(20));
  Apply("7", {{0, "1g.5gb@1"}}, seconds(600));
  EXPECT_EQ(Annotation("status-layout-0"), "1g.5gb@1:used") << "no pod holds the slice at 0";
}

// Two successive pods have the same name. The second starts with an init container, whose slice the
// kubelet does not list: the devices listed under the name belong to the first pod.
class ASuccessorsInitContainerTest : public SuccessorTest {
 protected:
  void Bind() {
    api_.Put(BoundPod("db-0", "u2", JsonArray{Asking("init", "1")},
                      JsonArray{JsonObject{{"name", "main"}}}));
  }
  void Admit() {
    kubelet_.Assign({"ml", "db-0", "init", kSlice, second_.uuid});
    Admitted("db-0");
    Condition("db-0", "Initialized", "False");
    Run(seconds(5));
  }
  void PredecessorEnds() { kubelet_.Remove("ml", "db-0"); }
  void ExpectThatItKeepsItsSlice() {
    Apply("7", {{0, "1g.5gb@0"}});
    EXPECT_EQ(destroyed_, 0);
  }
};

TEST_F(ASuccessorsInitContainerTest, KeepsItsSliceWhenThePredecessorWasDeletedByForce) {
  ThePredecessorIsDeletedByForce();
  Bind();
  Admit();
  PredecessorEnds();
  Admit();
  ExpectThatItKeepsItsSlice();
}

TEST_F(ASuccessorsInitContainerTest, KeepsItsSliceWhenTheAgentStartsBeforeItsAdmission) {
  kubelet_.Assign({"ml", "db-0", "main", kSlice, first_.uuid});
  Bind();
  Restart();
  Run(milliseconds(500));
  PredecessorEnds();
  Run(seconds(1));
  Admit();
  ExpectThatItKeepsItsSlice();
}

TEST_F(ASuccessorsInitContainerTest, KeepsItsSliceWhenTheAgentStartsAfterItsAdmission) {
  kubelet_.Assign({"ml", "db-0", "main", kSlice, first_.uuid});
  Bind();
  Admit();
  Restart();
  Run(seconds(5));
  ExpectThatItKeepsItsSlice();
}

TEST_F(SuccessorTest, FreesSliceOfEarlierPodAfterAgentRestart) {
  kubelet_.Assign({"ml", "db-0", "main", kSlice, first_.uuid});  // of a deleted pod
  api_.Put(BoundPod("db-0", "u2", {}, JsonArray{Asking("main", "1")}));
  Restart();
  Run(milliseconds(500));
  kubelet_.Remove("ml", "db-0");
  Run(seconds(1));
  kubelet_.Assign({"ml", "db-0", "main", kSlice, second_.uuid});
  Admitted("db-0");
  Run();
  EXPECT_EQ(Annotation("status-layout-0"), "1g.5gb@0:free,1g.5gb@1:used");
}

// The agent has attributed both slices to the second pod.
TEST_F(SuccessorTest, FreesSliceOfEarlierPodOnceKubeletDoesNotListIt) {
  kubelet_.Assign({"ml", "db-0", "main", kSlice, first_.uuid});
  kubelet_.Assign({"ml", "db-0", "main", kSlice, second_.uuid});
  api_.Put(BoundPod("db-0", "u2", {}, JsonArray{Asking("main", "1")}));
  Admitted("db-0");
  Restart();
  Run();
  EXPECT_EQ(Annotation("status-layout-0"), "1g.5gb@0:used,1g.5gb@1:used");
  kubelet_.Remove("ml", "db-0");
  kubelet_.Assign({"ml", "db-0", "main", kSlice, second_.uuid});
  Run();
  EXPECT_EQ(Annotation("status-layout-0"), "1g.5gb@0:free,1g.5gb@1:used");
  kubelet_.forgetful = true;  // it restarts
  PlanWithoutTheHeld();
  Run();
  EXPECT_EQ(destroyed_, 0) << "the pod still holds its slice";
}

TEST_F(SuccessorTest, KeepsSliceForSecondPodAfterAgentRestart) {
  ASSERT_TRUE(kubelet_.Admit("ml", "db-0", kSlice).ok());
  api_.Put(BoundPod("db-0", "u1", {}, JsonArray{Asking("main", "1")}));
  Admitted("db-0");
  Run();
  api_.Remove("pods", "ml/db-0");
  Restart();
  Run(milliseconds(10));
  Plan("7", {{0, kubelet_.Holds(first_.uuid) ? "1g.5gb@0" : "1g.5gb@1"}});
  Run(milliseconds(100));
  api_.Put(BoundPod("db-0", "u2", {}, JsonArray{Asking("main", "1")}));
  Run(seconds(1));
  EXPECT_EQ(destroyed_, 0) << "the slice that db-0 (u2) is about to get";
  const auto& free = kubelet_.Holds(first_.uuid) ? second_ : first_;
  EXPECT_TRUE(kubelet_.Offers(free.uuid)) << "otherwise the pod is not admitted";
}

TEST_F(SuccessorTest, KeepsSliceForSecondPodThatExistsWhenAgentStarts) {
  kubelet_.Assign({"ml", "db-0", "main", kSlice, first_.uuid});  // of a deleted pod
  api_.Put(BoundPod("db-0", "u2", {}, JsonArray{Asking("main", "1")}));
  Restart();
  Apply("7", {{0, "1g.5gb@0"}}, seconds(5));
  EXPECT_TRUE(kubelet_.Offers(second_.uuid)) << "otherwise the pod is not admitted";
}

}  // namespace
}  // namespace nos::agent
