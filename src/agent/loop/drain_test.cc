// What is in use or about to be: how the agent takes slices away, and what it leaves alone.
#include "agent/loop/fixture_test.h"
#include "reconcile/testing/slow_watches.h"

namespace nos::agent {
namespace {

// The Go agent acknowledged a plan when it had read it (defect A12).
// Defects A12 and C3: a failed apply looked acknowledged and was never tried again.
// Defect C2: the Go agent destroyed devices that the kubelet could hand out at that very moment.
// It answers before it has read its pods.
// The kubelet refuses a pod for good when a device is missing at its arrival.
// Defect C1: at start the Go agent destroyed devices under their pods.
// Defect A2: taking the label off a node was never noticed.
TEST_F(AgentTest, SeesSoonThatAPodHasEnded) {
  ASSERT_TRUE(gpus_.Place(0, "1g.5gb", 0).ok());
  Run();
  ASSERT_TRUE(kubelet_.Admit("ml", "a", "nvidia.com/mig-1g.5gb").ok());
  Bind("a", "1g.5gb");
  Run();
  EXPECT_EQ(Annotation("status-layout-0"), "1g.5gb@0:used");
  api_.Remove("pods", "ml/a");  // the kubelet gives its devices free a little later
  Run(milliseconds(500));
  kubelet_.Remove("ml", "a");
  Run(seconds(2));
  EXPECT_EQ(Annotation("status-layout-0"), "1g.5gb@0:free");
}

TEST_F(AgentTest, WithdrawsBeforeItDestroys) {
  ASSERT_TRUE(gpus_.Place(0, "1g.5gb", 0).ok());
  Run();
  // The kubelet hands the device out while it takes over the new offer.
  kubelet_.on_offer = [&] { kubelet_.on_offer = [this] { ReportAllocatable(); }; };
  ASSERT_TRUE(kubelet_.Admit("ml", "a", "nvidia.com/mig-1g.5gb").ok());
  Plan("7", {{0, "7g.40gb@0"}});
  Run();
  EXPECT_EQ(destroyed_, 0);
  EXPECT_EQ(Annotation("status-layout-0"), "1g.5gb@0:used");
}

TEST_F(AgentTest, APodBoundDuringTheWithdrawalGetsItsDeviceBack) {
  const auto instance = gpus_.Place(0, "1g.5gb", 0).value();
  Run();
  Plan("7", {{0, "7g.40gb@0"}});
  kubelet_.on_offer = [&] {
    kubelet_.on_offer = nullptr;
    ReportAllocatable();
    Bind("a", "1g.5gb");  // by a scheduler that still saw the device
  };
  Run();
  EXPECT_EQ(destroyed_, 0);
  EXPECT_TRUE(kubelet_.Offers(instance.uuid)) << "offered again for the pod";
  EXPECT_EQ(reconcile::ReadPlanResult(Annotation("partitioning-result"))->obstacles.at(0).code, "InUse");
  ASSERT_TRUE(kubelet_.Admit("ml", "a", "nvidia.com/mig-1g.5gb").ok());
  api_.Remove("pods", "ml/a");
  kubelet_.Remove("ml", "a");
  Run();
  EXPECT_EQ(Annotation("status-layout-0"), "7g.40gb@0:free");
}

TEST_F(AgentTest, TheLastLookGoesPastTheCaches) {
  ASSERT_TRUE(gpus_.Place(0, "1g.5gb", 0).ok());
  Run();
  Plan("7", {{0, "7g.40gb@0"}});
  api_.intercept = [&](const kube::ApiRequest& request) {
    // The pod is bound just before the agent asks; its watch has not said so yet.
    const bool last_look = request.method == "GET" && !request.Query("fieldSelector").empty() &&
                           request.path == "/api/v1/pods";
    if (last_look) {
      api_.intercept = nullptr;
      Bind("a", "1g.5gb");
    }
    return std::optional<Result<kube::ApiResponse>>();
  };
  Run();
  EXPECT_EQ(destroyed_, 0);
}

TEST_F(AgentTest, TheNodeStopsCountingAnInstanceBeforeTheKubeletLosesIt) {
  const auto instance = gpus_.Place(0, "1g.5gb", 0).value();
  kubelet_reports_ = false;  // its next sync is far
  Run();
  EXPECT_EQ(Allocatable("1g.5gb"), 1);
  Plan("7", {{0, "7g.40gb@0"}});
  Run(milliseconds(100));
  EXPECT_EQ(Allocatable("1g.5gb"), 0);
  EXPECT_TRUE(kubelet_.Offers(instance.uuid));
  EXPECT_EQ(destroyed_, 0);
  Run(milliseconds(150));
  EXPECT_EQ(destroyed_, 1);
  EXPECT_EQ(Allocatable("7g.40gb"), 1);
}

TEST_F(AgentTest, KnowsTheFigureItHasWrittenBeforeItsWatchSaysSo) {
  ASSERT_TRUE(gpus_.Place(0, "1g.5gb", 0).ok());
  kubelet_reports_ = false;
  reconcile::testing::SlowWatches slow(api_);
  runner_ = std::make_unique<reconcile::Runner>(*agent_, slow, reconcile::ForNode(kNode));
  Run();
  Plan("7", {{0, "7g.40gb@0"}});
  runner_->Step(clock_);
  ASSERT_EQ(Allocatable("1g.5gb"), 0);
  slow.nodes_silent = true;
  const size_t writes = api_.writes.size();
  Run(milliseconds(150));
  EXPECT_EQ(api_.writes.size(), writes);
  Run(milliseconds(100));
  EXPECT_EQ(destroyed_, 1) << "the drain does not begin anew with every look at the old figure";
}

TEST_F(AgentTest, TheNodeCountsANewSliceOnceTheKubeletHasTakenItOver) {
  kubelet_reports_ = false;
  Run();
  kubelet_.slow = true;
  Plan("7", {{0, "1g.5gb@0"}});
  Run(seconds(3));
  EXPECT_EQ(Allocatable("1g.5gb"), 0);
  kubelet_.slow = false;
  Run(seconds(1));
  EXPECT_EQ(Allocatable("1g.5gb"), 1);
}

TEST_F(AgentTest, WhileNoAgentOffersTheNodeCountsNothing) {
  ASSERT_TRUE(gpus_.Place(0, "1g.5gb", 0).ok());
  kubelet_reports_ = false;
  Run();
  ASSERT_EQ(Allocatable("1g.5gb"), 1);
  kube::Client client(api_);
  ASSERT_TRUE(agent_->Leave(runner_->view(), client).ok());
  EXPECT_EQ(Allocatable("1g.5gb"), 0);
  Restart();
  Run();
  EXPECT_EQ(Allocatable("1g.5gb"), 1);
}

TEST_F(AgentTest, AKubeletThatHasJustStartedTakesNothingFromAPod) {
  const auto used = gpus_.Place(0, "1g.5gb", 1).value();
  ASSERT_TRUE(gpus_.Place(0, "1g.5gb", 0).ok());
  Run();
  ASSERT_TRUE(kubelet_.Admit("ml", "a", "nvidia.com/mig-1g.5gb").ok());
  ASSERT_TRUE(kubelet_.Admit("ml", "b", "nvidia.com/mig-1g.5gb").ok());
  kubelet_.Remove("ml", kubelet_.HolderOf(used.uuid) == "ml/a" ? "b" : "a");
  const std::string pod = kubelet_.HolderOf(used.uuid).substr(3);
  Bind(pod, "1g.5gb");
  Admitted(pod);
  Run();
  kubelet_.forgetful = true;
  Plan("7", {{0, "1g.5gb@0"}});
  Run(seconds(3));
  EXPECT_EQ(destroyed_, 0);
  EXPECT_EQ(Annotation("status-layout-0"), "1g.5gb@0:free,1g.5gb@1:used");
  Restart();  // an agent that has seen nothing yet
  Run(seconds(3));
  EXPECT_EQ(destroyed_, 0);
  EXPECT_EQ(Annotation("status-layout-0"), "1g.5gb@0:used,1g.5gb@1:used") << "either may be";
  kubelet_.forgetful = false;
  Run();
  EXPECT_EQ(Annotation("status-layout-0"), "1g.5gb@0:free,1g.5gb@1:used");
  api_.Remove("pods", "ml/" + pod);
  kubelet_.Remove("ml", pod);
  Run();
  EXPECT_EQ(Annotation("status-layout-0"), "1g.5gb@0:free");
}

TEST_F(AgentTest, APodSentForADrainingInstanceFindsItInTheOffer) {
  const auto instance = gpus_.Place(0, "1g.5gb", 0).value();
  Run();
  Plan("7", {{0, "7g.40gb@0"}});
  bool withdrawn = false;
  kubelet_.on_offer = [&] { withdrawn |= !kubelet_.Offers(instance.uuid); };
  Run(milliseconds(100));
  Bind("a", "1g.5gb");  // by a scheduler that had not seen the node's new figure
  Run();
  EXPECT_FALSE(withdrawn);
  EXPECT_EQ(destroyed_, 0);
  EXPECT_EQ(Allocatable("1g.5gb"), 1) << "counted again for the pod";
}

TEST_F(AgentTest, TheKubeletsOldFigureStartsTheDrainAnew) {
  const auto instance = gpus_.Place(0, "1g.5gb", 0).value();
  Run();
  Plan("7", {{0, "7g.40gb@0"}});
  Run(milliseconds(150));
  ReportAllocatable();  // a sync: the kubelet has the device still
  ASSERT_EQ(Allocatable("1g.5gb"), 1);
  Run(milliseconds(100));
  EXPECT_EQ(Allocatable("1g.5gb"), 0);
  EXPECT_TRUE(kubelet_.Offers(instance.uuid));
  Run();
  EXPECT_EQ(destroyed_, 1);
}

TEST_F(AgentTest, TheLastLookSeesAnOldFigurePastTheCaches) {
  const auto instance = gpus_.Place(0, "1g.5gb", 0).value();
  Run();
  bool reported = false;
  kubelet_.on_offer = [&] { EXPECT_TRUE(kubelet_.Offers(instance.uuid) || reported); };
  Plan("7", {{0, "7g.40gb@0"}});
  api_.intercept = [&](const kube::ApiRequest& request) {
    const bool last_look = request.method == "GET" && request.path.ends_with("/nodes/gpu-1");
    if (last_look && !reported) {
      ReportAllocatable();
      EXPECT_EQ(Allocatable("1g.5gb"), 1);
      reported = true;
      clock_.Advance(Duration(1));
    }
    return std::optional<Result<kube::ApiResponse>>();
  };
  Run(milliseconds(300));
  EXPECT_TRUE(reported);
  EXPECT_EQ(destroyed_, 0) << "the new one has the same UUID";
  Run();
  EXPECT_EQ(destroyed_, 1);
}

TEST_F(AgentTest, AnAgentThatMayNotWriteTheStatusGoesOnLater) {
  ASSERT_TRUE(gpus_.Place(0, "1g.5gb", 0).ok());
  Run();
  api_.intercept = [&](const kube::ApiRequest& request) {
    std::optional<Result<kube::ApiResponse>> answer;
    if (request.path.ends_with("/status")) answer = Status(Code::kPermission, "no");
    return answer;
  };
  Plan("7", {{0, "7g.40gb@0"}});
  Run(seconds(10));
  EXPECT_EQ(destroyed_, 0);
  EXPECT_EQ(Annotation("status-partitioning-plan"), "");
  Run(seconds(20));
  EXPECT_EQ(destroyed_, 1);
  EXPECT_EQ(Annotation("status-partitioning-plan"), "7");
}

TEST_F(AgentTest, APluginThatCannotWithdrawLosesNothingThatTheNodeCounts) {
  kubelet_.withdraws = false;
  kubelet_.on_offer = nullptr;
  ASSERT_TRUE(gpus_.Place(0, "1g.5gb", 0).ok());
  Run();
  ReportAllocatable();
  ASSERT_EQ(Allocatable("1g.5gb"), 1);
  expect_withdrawn_ = false;
  Plan("7", {{0, "7g.40gb@0"}});
  Run(milliseconds(100));
  EXPECT_EQ(Allocatable("1g.5gb"), 0);
  EXPECT_EQ(destroyed_, 0);
  Run();
  EXPECT_EQ(destroyed_, 1);
}

TEST_F(AgentTest, ASilentKubeletStopsEverythingBecauseUseIsUnknown) {
  ASSERT_TRUE(gpus_.Place(0, "1g.5gb", 0).ok());
  Run();
  kubelet_.down = true;
  Plan("7", {{0, "7g.40gb@0"}});
  Run(seconds(60));
  EXPECT_EQ(destroyed_, 0);
  kubelet_.down = false;
  Run(seconds(60));
  EXPECT_EQ(Annotation("status-partitioning-plan"), "7");
}

TEST_F(AgentTest, AnOfferWithoutAnAnswerMayHaveBeenTaken) {
  const auto instance = gpus_.Place(0, "1g.5gb", 0).value();
  Run();
  ASSERT_TRUE(kubelet_.Offers(instance.uuid));
  kubelet_.mute = true;
  kubelet_reports_ = false;
  Plan("7", {{0, "7g.40gb@0"}});
  Run(seconds(1));
  ASSERT_FALSE(kubelet_.Offers(instance.uuid)) << "withdrawn, though nobody said so";
  kubelet_.mute = false;
  Plan("8", {{0, "1g.5gb@0"}});  // it is wanted again, as in the last offer that was answered
  Run();
  EXPECT_TRUE(kubelet_.Offers(instance.uuid));
}

TEST_F(AgentTest, ASuccessorOfTheSameNameDoesNotInheritDevices) {
  ASSERT_TRUE(gpus_.Place(0, "1g.5gb", 0).ok());
  ASSERT_TRUE(gpus_.Place(0, "1g.5gb", 1).ok());
  Run();
  ASSERT_TRUE(kubelet_.Admit("ml", "db-0", "nvidia.com/mig-1g.5gb").ok());
  api_.Put(BoundPod("db-0", "u1", {}, JsonArray{Asking("main", "1")}));
  Admitted("db-0");
  Run();
  api_.Remove("pods", "ml/db-0");  // the kubelet frees its device a moment later
  Run(milliseconds(100));
  api_.Put(BoundPod("db-0", "u2", {}, JsonArray{Asking("main", "1")}));  // StatefulSet
  // kubelet: old one is gone; the new one gets the OTHER device
  std::string old = kubelet_.offer()[0].device_id;
  const std::string first = kubelet_.HolderOf(old).empty() ? kubelet_.offer()[1].device_id : old;
  kubelet_.Remove("ml", "db-0");
  ASSERT_TRUE(kubelet_.Admit("tmp", "x", "nvidia.com/mig-1g.5gb").ok());  // takes the first again
  ASSERT_TRUE(kubelet_.Admit("ml", "db-0", "nvidia.com/mig-1g.5gb").ok());
  kubelet_.Remove("tmp", "x");
  ASSERT_FALSE(kubelet_.Holds(first));
  Admitted("db-0");
  Run(seconds(3600));
  EXPECT_NE(Annotation("status-layout-0").find("free"), std::string::npos)
      << Annotation("status-layout-0");
  Plan("7", {{0, "1g.5gb@1,3g.20gb@4"}});
  Run(seconds(60));
}

TEST_F(AgentTest, ALostGpuDoesNotFreezeTheOthers) {
  ASSERT_TRUE(gpus_.Place(0, "1g.5gb", 0).ok());
  Run();
  ASSERT_TRUE(kubelet_.Admit("ml", "a", "nvidia.com/mig-1g.5gb").ok());
  Bind("a", "1g.5gb");
  Admitted("a");
  ASSERT_TRUE(gpus_.Place(1, "1g.5gb", 0).ok());
  Run();
  EXPECT_EQ(Annotation("status-layout-1"), "1g.5gb@0:free");
  gpus_.Lose(0);
  Run();
  EXPECT_EQ(Annotation("status-layout-1"), "1g.5gb@0:free");
  Plan("7", {{1, "7g.40gb@0"}});
  Run(seconds(600));
  EXPECT_EQ(Annotation("status-layout-1"), "7g.40gb@0:free") << Annotation("partitioning-result");
}

TEST_F(AgentTest, AnInitContainerThatHasEndedFreezesOneSliceAtMost) {
  for (uint8_t i = 0; i < 6; ++i) ASSERT_TRUE(gpus_.Place(0, "1g.5gb", i).ok());
  Run();
  // init asked for one slice and has ended; the main container asks for none: the kubelet lists
  // none
  api_.Put(
      BoundPod("a", "u1", JsonArray{Asking("init", "1")}, JsonArray{JsonObject{{"name", "main"}}}));
  Admitted("a");
  Run(seconds(60));
  Plan("7", {{0, "1g.5gb@0,3g.20gb@4"}});
  Run(seconds(600));
  EXPECT_EQ(destroyed_, 5) << Annotation("partitioning-result");
}

TEST_F(AgentTest, APluginThatCannotWithdrawLeavesNewSlicesToTheKubelet) {
  kubelet_.withdraws = false;
  kubelet_.on_offer = nullptr;
  expect_withdrawn_ = false;
  ASSERT_TRUE(gpus_.Place(0, "1g.5gb", 0).ok());
  Run();
  ReportAllocatable();
  ASSERT_EQ(Allocatable("1g.5gb"), 1);
  Plan("7", {{0, "7g.40gb@0"}});
  Run();
  kubelet_.slow = true;
  kubelet_.down = false;
  // NVIDIA's plugin is being restarted: Offer says kUnavailable
  kubelet_.mute = true;
  Plan("8", {{1, "1g.5gb@0"}});
  Run(seconds(3));
  EXPECT_EQ(Allocatable("1g.5gb"), 0) << "the kubelet does not have it yet";
}

TEST_F(AgentTest, AFigureOfOldIsNotTakenForOurs) {
  ASSERT_TRUE(gpus_.Place(0, "1g.5gb", 0).ok());
  kubelet_reports_ = false;
  Run();
  Plan("7", {{0, "7g.40gb@0"}});
  Run();
  ASSERT_EQ(Allocatable("1g.5gb"), 0);
  kubelet_.slow = true;
  Plan("8", {{1, "1g.5gb@0"}});
  Run(seconds(3));
  ReportAllocatable();  // its sync comes between two looks of ours
  kubelet_.slow = false;
  Run();
  ASSERT_EQ(Allocatable("1g.5gb"), 1);
  // The kubelet restarts: no plugin is registered yet, allocatable is 0, and it stays so for 20 s
  kubelet_.slow = true;
  Json node = *api_.Find("nodes", kNode);
  MakeObject(node, "status", "allocatable")["nvidia.com/mig-1g.5gb"] = "0";
  api_.Put(node);
  Run(seconds(5));
  EXPECT_EQ(Allocatable("1g.5gb"), 0) << "the kubelet does not have it";
}

TEST_F(AgentTest, AHalfAdmittedPodKeepsWhatItIsAboutToGet) {
  ASSERT_TRUE(gpus_.Place(0, "1g.5gb", 0).ok());
  ASSERT_TRUE(gpus_.Place(0, "1g.5gb", 1).ok());
  Run();
  Plan("7", {{0, "7g.40gb@0"}});
  Run(milliseconds(100));
  api_.Put(BoundPod("a", "u1", {}, JsonArray{Asking("one", "1"), Asking("two", "1")}));
  ASSERT_TRUE(kubelet_.Admit("ml", "a", "nvidia.com/mig-1g.5gb").ok());  // container one so far
  Run(milliseconds(400));
  EXPECT_EQ(destroyed_, 0);
  EXPECT_TRUE(kubelet_.Admit("ml", "a", "nvidia.com/mig-1g.5gb").ok());
}

TEST_F(AgentTest, ASuccessorOfTheSameNameStillNeedsASlice) {
  const auto first = gpus_.Place(0, "1g.5gb", 0).value();
  ASSERT_TRUE(gpus_.Place(0, "1g.5gb", 1).ok());
  Run();
  ASSERT_TRUE(kubelet_.Admit("ml", "db-0", "nvidia.com/mig-1g.5gb").ok());
  api_.Put(BoundPod("db-0", "u1", {}, JsonArray{Asking("main", "1")}));
  Admitted("db-0");
  Run();
  // Deleted by force: its containers still stop. The successor is bound here during the drain.
  Plan("7", {{0, kubelet_.Holds(first.uuid) ? "1g.5gb@0" : "1g.5gb@1"}});
  Run(milliseconds(100));
  api_.Remove("pods", "ml/db-0");
  api_.Put(BoundPod("db-0", "u2", {}, JsonArray{Asking("main", "1")}));
  Run(seconds(1));
  EXPECT_EQ(destroyed_, 0) << "the slice that db-0 (u2) is about to get";
}

}  // namespace
}  // namespace nos::agent
