// Destroying instances: how the agent drains them, and which devices in use it keeps.
#include "agent/loop/fixture_test.h"
#include "kube/testing/refuse.h"
#include "reconcile/testing/slow_watches.h"

namespace nos::agent {
namespace {

TEST_F(AgentTest, FreesInstanceSoonAfterItsPodHasEnded) {
  ASSERT_TRUE(gpus_.Place(0, "1g.5gb", 0).ok());
  Run();
  ASSERT_TRUE(kubelet_.Admit("ml", "a", "nvidia.com/mig-1g.5gb").ok());
  Bind("a", "1g.5gb");
  Run();
  EXPECT_EQ(Annotation("status-layout-0"), "1g.5gb@0:used");
  api_.Remove("pods", "ml/a");  // the kubelet releases its device a little later
  Run(milliseconds(500));
  kubelet_.Remove("ml", "a");
  Run(seconds(2));
  EXPECT_EQ(Annotation("status-layout-0"), "1g.5gb@0:free");
}

// The Go agent destroyed devices that the kubelet could hand out at that moment.
TEST_F(AgentTest, WithdrawsInstanceFromOfferBeforeDestroyingIt) {
  ASSERT_TRUE(gpus_.Place(0, "1g.5gb", 0).ok());
  Run();
  // The kubelet hands out the device while it adopts the new offer.
  kubelet_.on_offer = [&] { kubelet_.on_offer = [this] { ReportAllocatable(); }; };
  ASSERT_TRUE(kubelet_.Admit("ml", "a", "nvidia.com/mig-1g.5gb").ok());
  Apply("7", {{0, "7g.40gb@0"}}, seconds(30));
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
    Bind("a", "1g.5gb");  // by a scheduler that did not see the withdrawal yet
  };
  Run();
  EXPECT_EQ(destroyed_, 0);
  EXPECT_TRUE(kubelet_.Offers(instance.uuid)) << "must be offered again for the pod";
  EXPECT_EQ(reconcile::ReadPlanResult(Annotation("partitioning-result"))->obstacles.at(0).code,
            "InUse");
  ASSERT_TRUE(kubelet_.Admit("ml", "a", "nvidia.com/mig-1g.5gb").ok());
  api_.Remove("pods", "ml/a");
  kubelet_.Remove("ml", "a");
  Run();
  EXPECT_EQ(Annotation("status-layout-0"), "7g.40gb@0:free");
}

TEST_F(AgentTest, ReadsPodsUncachedBeforeDestroyingInstance) {
  ASSERT_TRUE(gpus_.Place(0, "1g.5gb", 0).ok());
  Run();
  Plan("7", {{0, "7g.40gb@0"}});
  api_.intercept = [&](const kube::ApiRequest& request) {
    // The pod is bound just before the agent reads the pods, and the watch has not delivered it
    // yet.
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

TEST_F(AgentTest, LowersAllocatableBeforeWithdrawingInstance) {
  const auto instance = gpus_.Place(0, "1g.5gb", 0).value();
  kubelet_reports_ = false;  // the kubelet's next sync is far away
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

TEST_F(AgentTest, RemembersWrittenAllocatableWhileNodeWatchLags) {
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
  EXPECT_EQ(destroyed_, 1)
      << "the drain must not restart while the cache shows the old allocatable";
}

TEST_F(AgentTest, RaisesAllocatableOnceKubeletHasAdoptedNewSlice) {
  kubelet_reports_ = false;
  Run();
  kubelet_.slow = true;
  Apply("7", {{0, "1g.5gb@0"}}, seconds(3));
  EXPECT_EQ(Allocatable("1g.5gb"), 0);
  kubelet_.slow = false;
  Run(seconds(1));
  EXPECT_EQ(Allocatable("1g.5gb"), 1);
}

TEST_F(AgentTest, LeaveSetsAllocatableToZero) {
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

TEST_F(AgentTest, EndWaitsForBoundPodsThatKubeletHasNotAdmitted) {
  ASSERT_TRUE(gpus_.Place(0, "1g.5gb", 0).ok());
  Run();
  kube::Client client(api_);
  ASSERT_TRUE(agent_->Leave(runner_->view(), client).ok());
  const auto needed_after = [&](Duration time) {
    runner_->Use(nullptr);
    while (runner_->Step(clock_)) {
    }
    return agent_->IsNeeded(runner_->view(), time);
  };
  EXPECT_TRUE(needed_after(milliseconds(900))) << "schedulers have not seen the counts";
  EXPECT_FALSE(needed_after(seconds(1)));
  Bind("a", "1g.5gb");  // by a scheduler that had not seen them
  EXPECT_TRUE(needed_after(seconds(1)));
  EXPECT_FALSE(needed_after(seconds(15))) << "Kubernetes would kill the process";
  Bind("b", "7g.40gb");
  Admitted("a");
  EXPECT_FALSE(needed_after(seconds(1))) << "b needs a device that the agent does not offer";
}

// A kubelet that has just started answers before it has read its pods.
TEST_F(AgentTest, KeepsUsedInstanceWhileRestartedKubeletListsNoHolders) {
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
  Apply("7", {{0, "1g.5gb@0"}}, seconds(3));
  EXPECT_EQ(destroyed_, 0);
  EXPECT_EQ(Annotation("status-layout-0"), "1g.5gb@0:free,1g.5gb@1:used");
  Restart();  // an agent that has not observed the pod's device
  Run(seconds(3));
  EXPECT_EQ(destroyed_, 0);
  EXPECT_EQ(Annotation("status-layout-0"), "1g.5gb@0:used,1g.5gb@1:used")
      << "either slice may be the pod's";
  kubelet_.forgetful = false;
  Run();
  EXPECT_EQ(Annotation("status-layout-0"), "1g.5gb@0:free,1g.5gb@1:used");
  api_.Remove("pods", "ml/" + pod);
  kubelet_.Remove("ml", pod);
  Run();
  EXPECT_EQ(Annotation("status-layout-0"), "1g.5gb@0:free");
}

// The kubelet rejects a pod for good if its device is missing when the pod arrives.
TEST_F(AgentTest, PodBoundToDrainingInstanceFindsItInTheOffer) {
  const auto instance = gpus_.Place(0, "1g.5gb", 0).value();
  Run();
  Plan("7", {{0, "7g.40gb@0"}});
  bool withdrawn = false;
  kubelet_.on_offer = [&] { withdrawn |= !kubelet_.Offers(instance.uuid); };
  Run(milliseconds(100));
  Bind("a", "1g.5gb");  // by a scheduler that did not see the node's new allocatable
  Run();
  EXPECT_FALSE(withdrawn);
  EXPECT_EQ(destroyed_, 0);
  EXPECT_EQ(Allocatable("1g.5gb"), 1) << "must be counted again for the pod";
}

TEST_F(AgentTest, RestartsDrainWhenKubeletRestoresOldAllocatable) {
  const auto instance = gpus_.Place(0, "1g.5gb", 0).value();
  Run();
  Plan("7", {{0, "7g.40gb@0"}});
  Run(milliseconds(150));
  ReportAllocatable();  // a sync: the kubelet still has the device
  ASSERT_EQ(Allocatable("1g.5gb"), 1);
  Run(milliseconds(100));
  EXPECT_EQ(Allocatable("1g.5gb"), 0);
  EXPECT_TRUE(kubelet_.Offers(instance.uuid));
  Run();
  EXPECT_EQ(destroyed_, 1);
}

TEST_F(AgentTest, ReadsNodeUncachedBeforeWithdrawingInstance) {
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
  EXPECT_EQ(destroyed_, 0) << "the node counts the instance again";
  Run();
  EXPECT_EQ(destroyed_, 1);
}

TEST_F(AgentTest, DestroysAfterDrainTimeoutIfNodeStatusCannotBeWritten) {
  ASSERT_TRUE(gpus_.Place(0, "1g.5gb", 0).ok());
  Run();
  Refuse(api_, "", "/status", Status(Code::kPermission, "no"));
  Apply("7", {{0, "7g.40gb@0"}}, seconds(10));
  EXPECT_EQ(destroyed_, 0);
  EXPECT_EQ(Annotation("status-partitioning-plan"), "");
  Run(seconds(20));
  EXPECT_EQ(destroyed_, 1);
  EXPECT_EQ(Annotation("status-partitioning-plan"), "7");
}

TEST_F(AgentTest, LowersAllocatableBeforeDestroyingIfPluginCannotWithdraw) {
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

TEST_F(AgentTest, DestroysNothingWhileKubeletDoesNotAnswer) {
  ASSERT_TRUE(gpus_.Place(0, "1g.5gb", 0).ok());
  Run();
  kubelet_.down = true;
  Apply("7", {{0, "7g.40gb@0"}});
  EXPECT_EQ(destroyed_, 0);
  kubelet_.down = false;
  Run(seconds(60));
  EXPECT_EQ(Annotation("status-partitioning-plan"), "7");
}

TEST_F(AgentTest, OffersAgainAfterAnOfferWithoutAnswer) {
  const auto instance = gpus_.Place(0, "1g.5gb", 0).value();
  Run();
  ASSERT_TRUE(kubelet_.Offers(instance.uuid));
  kubelet_.mute = true;
  kubelet_reports_ = false;
  Apply("7", {{0, "7g.40gb@0"}}, seconds(1));
  ASSERT_FALSE(kubelet_.Offers(instance.uuid)) << "withdrawn, although the call failed";
  kubelet_.mute = false;
  Plan("8", {{0, "1g.5gb@0"}});  // the slice is wanted again, as in the last confirmed offer
  Run();
  EXPECT_TRUE(kubelet_.Offers(instance.uuid));
}

TEST_F(AgentTest, PodDoesNotInheritDevicesOfEarlierPodWithSameName) {
  ASSERT_TRUE(gpus_.Place(0, "1g.5gb", 0).ok());
  ASSERT_TRUE(gpus_.Place(0, "1g.5gb", 1).ok());
  Run();
  ASSERT_TRUE(kubelet_.Admit("ml", "db-0", "nvidia.com/mig-1g.5gb").ok());
  api_.Put(BoundPod("db-0", "u1", {}, JsonArray{Asking("main", "1")}));
  Admitted("db-0");
  Run();
  api_.Remove("pods", "ml/db-0");  // the kubelet frees its device a moment later
  Run(milliseconds(100));
  api_.Put(BoundPod("db-0", "u2", {}, JsonArray{Asking("main", "1")}));  // as a StatefulSet does
  // The kubelet has removed the old pod. The new pod gets the other device.
  std::string old = kubelet_.offer()[0].device_id;
  const std::string first = kubelet_.HolderOf(old).empty() ? kubelet_.offer()[1].device_id : old;
  kubelet_.Remove("ml", "db-0");
  // Takes the first device again.
  ASSERT_TRUE(kubelet_.Admit("tmp", "x", "nvidia.com/mig-1g.5gb").ok());
  ASSERT_TRUE(kubelet_.Admit("ml", "db-0", "nvidia.com/mig-1g.5gb").ok());
  kubelet_.Remove("tmp", "x");
  ASSERT_FALSE(kubelet_.Holds(first));
  Admitted("db-0");
  Run(seconds(3600));
  EXPECT_NE(Annotation("status-layout-0").find("free"), std::string::npos)
      << Annotation("status-layout-0");
  Apply("7", {{0, "1g.5gb@1,3g.20gb@4"}});
}

TEST_F(AgentTest, PartitionsOtherGpusWhileOneIsLost) {
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
  Apply("7", {{1, "7g.40gb@0"}}, seconds(600));
  EXPECT_EQ(Annotation("status-layout-1"), "7g.40gb@0:free") << Annotation("partitioning-result");
}

TEST_F(AgentTest, EndedInitContainerKeepsAtMostOneSlice) {
  for (uint8_t i = 0; i < 6; ++i) ASSERT_TRUE(gpus_.Place(0, "1g.5gb", i).ok());
  Run();
  // The init container requested one slice and has ended. The main container requests none, so the
  // kubelet lists none.
  api_.Put(
      BoundPod("a", "u1", JsonArray{Asking("init", "1")}, JsonArray{JsonObject{{"name", "main"}}}));
  Admitted("a");
  Run(seconds(60));
  Apply("7", {{0, "1g.5gb@0,3g.20gb@4"}}, seconds(600));
  EXPECT_EQ(destroyed_, 5) << Annotation("partitioning-result");
}

TEST_F(AgentTest, LeavesNewSlicesToKubeletIfPluginCannotWithdraw) {
  kubelet_.withdraws = false;
  kubelet_.on_offer = nullptr;
  expect_withdrawn_ = false;
  ASSERT_TRUE(gpus_.Place(0, "1g.5gb", 0).ok());
  Run();
  ReportAllocatable();
  ASSERT_EQ(Allocatable("1g.5gb"), 1);
  Apply("7", {{0, "7g.40gb@0"}}, seconds(30));
  kubelet_.slow = true;
  kubelet_.down = false;
  // NVIDIA's plugin is restarting: Offer returns kUnavailable.
  kubelet_.mute = true;
  Apply("8", {{1, "1g.5gb@0"}}, seconds(3));
  EXPECT_EQ(Allocatable("1g.5gb"), 0) << "the kubelet does not have it yet";
}

TEST_F(AgentTest, DoesNotOverwriteAllocatableThatKubeletHasChanged) {
  ASSERT_TRUE(gpus_.Place(0, "1g.5gb", 0).ok());
  kubelet_reports_ = false;
  Run();
  Apply("7", {{0, "7g.40gb@0"}}, seconds(30));
  ASSERT_EQ(Allocatable("1g.5gb"), 0);
  kubelet_.slow = true;
  Apply("8", {{1, "1g.5gb@0"}}, seconds(3));
  ReportAllocatable();  // the kubelet syncs between two calls of the agent
  kubelet_.slow = false;
  Run();
  ASSERT_EQ(Allocatable("1g.5gb"), 1);
  // The kubelet restarts. Until plugins register again, for 20 s, allocatable is 0.
  kubelet_.slow = true;
  Json node = *api_.Find("nodes", kNode);
  MakeObject(node, "status", "allocatable")["nvidia.com/mig-1g.5gb"] = "0";
  api_.Put(node);
  Run(seconds(5));
  EXPECT_EQ(Allocatable("1g.5gb"), 0) << "the kubelet does not have it";
}

TEST_F(AgentTest, KeepsInstanceThatPartlyAdmittedPodStillNeeds) {
  ASSERT_TRUE(gpus_.Place(0, "1g.5gb", 0).ok());
  ASSERT_TRUE(gpus_.Place(0, "1g.5gb", 1).ok());
  Run();
  Plan("7", {{0, "7g.40gb@0"}});
  Run(milliseconds(100));
  api_.Put(BoundPod("a", "u1", {}, JsonArray{Asking("one", "1"), Asking("two", "1")}));
  ASSERT_TRUE(kubelet_.Admit("ml", "a", "nvidia.com/mig-1g.5gb").ok());  // for container one so far
  Run(milliseconds(400));
  EXPECT_EQ(destroyed_, 0);
  EXPECT_TRUE(kubelet_.Admit("ml", "a", "nvidia.com/mig-1g.5gb").ok());
}

TEST_F(AgentTest, KeepsFreeSliceForBoundPodWithNameOfDeletedPod) {
  const auto first = gpus_.Place(0, "1g.5gb", 0).value();
  ASSERT_TRUE(gpus_.Place(0, "1g.5gb", 1).ok());
  Run();
  ASSERT_TRUE(kubelet_.Admit("ml", "db-0", "nvidia.com/mig-1g.5gb").ok());
  api_.Put(BoundPod("db-0", "u1", {}, JsonArray{Asking("main", "1")}));
  Admitted("db-0");
  Run();
  // The pod is force-deleted and its containers are still stopping. The new pod of its name is
  // bound here during the drain.
  Plan("7", {{0, kubelet_.Holds(first.uuid) ? "1g.5gb@0" : "1g.5gb@1"}});
  Run(milliseconds(100));
  api_.Remove("pods", "ml/db-0");
  api_.Put(BoundPod("db-0", "u2", {}, JsonArray{Asking("main", "1")}));
  Run(seconds(1));
  EXPECT_EQ(destroyed_, 0) << "the slice that db-0 (u2) is about to get";
}

}  // namespace
}  // namespace nos::agent
