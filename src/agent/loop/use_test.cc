// Devices that may be in use although the kubelet does not list them as used (yet): they are kept.
#include <gmock/gmock.h>

#include "agent/loop/use_fixture_test.h"

namespace nos::agent {
namespace {

TEST_F(AgentUseTest, KeepsDeviceOfRunningInitContainer) {
  AnInitContainerRuns();
  PlanWithoutTheHeld();
  Run();
  EXPECT_EQ(destroyed_, 0);
  EXPECT_EQ(Annotation("status-layout-0"), "1g.5gb@0:used,1g.5gb@1:used")
      << "the kubelet does not say which";
  Admitted("a");
  Condition("a", "Initialized", "True");
  kubelet_.Remove("ml", "a");
  Apply("8", {{0, "7g.40gb@0"}}, seconds(30));
  EXPECT_EQ(destroyed_, 1) << "the kubelet may run the init container again";
}

TEST_F(AgentUseTest, KeepsSliceThatKubeletMayHaveChosenForBoundPod) {
  ASSERT_TRUE(gpus_.Place(0, "1g.5gb", 2).ok());
  Run();
  Plan("7", {{0, "1g.5gb@0,1g.5gb@2"}});
  Run(milliseconds(100));
  // All are offered: the kubelet has chosen the second slice and does not list it yet.
  Bind("a", "1g.5gb");
  Run(seconds(20));
  EXPECT_EQ(destroyed_, 0);
  EXPECT_EQ(Allocatable("1g.5gb"), 2) << "no other pod may be sent for it";
  EXPECT_FALSE(kubelet_.Offers(second_.uuid)) << "no other pod may get it";
  EXPECT_EQ(Annotation("status-partitioning-plan"), "") << "an operation is still pending";
  Bind("b", "1g.5gb");  // bound later: the kubelet cannot give it the second slice
  Run(seconds(20));
  EXPECT_EQ(destroyed_, 0);
  api_.Remove("pods", "ml/a");
  Run();
  EXPECT_EQ(destroyed_, 1) << "whether b is admitted or not";
}

// The slice left the offer once before, when no pod was being admitted.
TEST_F(AgentUseTest, SliceThatLeavesOfferAgainWaitsForPodsBeingAdmittedThen) {
  kubelet_.taken_late = second_.uuid;
  Plan("7", {{0, "1g.5gb@0"}});
  Run(milliseconds(900));
  ASSERT_FALSE(kubelet_.Offers(second_.uuid));
  Apply("8", {{0, "1g.5gb@0,1g.5gb@1"}}, seconds(30));
  ASSERT_TRUE(kubelet_.Offers(second_.uuid));
  kubelet_.taken_late.clear();
  Plan("9", {{0, "1g.5gb@0"}});
  Run(milliseconds(100));
  Bind("a", "1g.5gb");  // the kubelet has chosen the second slice and does not list it yet
  Run(seconds(20));
  EXPECT_FALSE(kubelet_.Offers(second_.uuid));
  EXPECT_EQ(destroyed_, 0);
}

TEST_F(AgentUseTest, HonoursPlanThatChangesJustBeforeDestruction) {
  Plan("7", {{0, "1g.5gb@0"}});
  api_.intercept = [&](const kube::ApiRequest& request) {
    const bool looks = request.method == "GET" && request.path == "/api/v1/nodes/gpu-1";
    if (looks && !kubelet_.Offers(second_.uuid)) {  // just before it is destroyed
      api_.intercept = nullptr;
      Plan("8", {{0, "1g.5gb@0,1g.5gb@1"}});
    }
    return std::optional<Result<kube::ApiResponse>>();
  };
  Run();
  EXPECT_EQ(Annotation("status-partitioning-plan"), "8");
  EXPECT_EQ(destroyed_, 0);
}

TEST_F(AgentUseTest, KeepsSliceThatKubeletAssignsAfterWithdrawal) {
  kubelet_.taken_late = second_.uuid;
  Plan("7", {{0, "1g.5gb@0"}});
  Run(milliseconds(900));
  EXPECT_EQ(destroyed_, 0);
  kubelet_.taken_late.clear();
  Run();
  EXPECT_EQ(destroyed_, 1);
}

// Jobs of one kind start and end on the slices that stay. At any moment a pod is being admitted.
TEST_F(AgentUseTest, StreamOfPodsDoesNotDelayRepartitioningOfOtherGpu) {
  for (uint8_t start = 2; start < 7; ++start) ASSERT_TRUE(gpus_.Place(0, "1g.5gb", start).ok());
  const auto other = gpus_.Place(1, "1g.5gb", 0).value();  // to be destroyed
  Run();
  Plan("7", {{0, "1g.5gb@0,1g.5gb@1,1g.5gb@2,1g.5gb@3,1g.5gb@4,1g.5gb@5,1g.5gb@6"},
             {1, "3g.20gb@4,3g.20gb@0"}});
  int bound = 0;
  for (int tick = 0; tick < 60 * 5; ++tick) {  // 200 ms each
    const auto name = [](int n) { return "job-" + std::to_string(n); };
    if (tick % 2 == 0) {
      Bind(name(bound), "1g.5gb");
      ++bound;
    }
    if (tick % 2 == 1 && bound >= 2) {  // bound 600 ms ago
      const std::string ready = name(bound - 2);
      ASSERT_TRUE(kubelet_.Admit("ml", ready, kSlice).ok());
      Admitted(ready);
    }
    if (tick % 2 == 1 && bound >= 4) {
      kubelet_.Remove("ml", name(bound - 4));
      api_.Remove("pods", "ml/" + name(bound - 4));
    }
    Run(milliseconds(200));
  }
  EXPECT_FALSE(kubelet_.Holds(other.uuid));
  EXPECT_EQ(destroyed_, 1) << bound << " pods";
  EXPECT_EQ(Annotation("status-partitioning-plan"), "7");
}

// The pod watch lags, and the next instance to destroy is still in the kubelet's list.
TEST_F(AgentUseTest, KeepsSliceOfPodBoundBetweenTwoDestructions) {
  PluginThatCannotWithdraw();
  class LaggingPods final : public kube::Transport {
   public:
    explicit LaggingPods(kube::Transport& api) : api_(api) {}
    Result<kube::ApiResponse> Do(const kube::ApiRequest& r) override { return api_.Do(r); }
    Result<std::unique_ptr<kube::WatchStream>> Watch(const kube::ApiRequest& r) override {
      NOS_ASSIGN(auto inner, api_.Watch(r));
      if (r.path != "/api/v1/pods") return inner;
      return std::unique_ptr<kube::WatchStream>(
          std::make_unique<Stream>(std::move(inner), &silent));
    }
    bool silent = false;

   private:
    struct Stream final : kube::WatchStream {
      Stream(std::unique_ptr<kube::WatchStream> inner, const bool* silent)
          : inner_(std::move(inner)), silent_(silent) {}
      std::optional<kube::WatchEvent> Next() override {
        return *silent_ ? std::nullopt : inner_->Next();
      }
      bool Ended() const override { return inner_->Ended(); }
      void OnReady(std::function<void()> wake) override { inner_->OnReady(std::move(wake)); }
      std::unique_ptr<kube::WatchStream> inner_;
      const bool* silent_;
    };
    kube::Transport& api_;
  } lagging(api_);
  runner_ = std::make_unique<reconcile::Runner>(*agent_, lagging, reconcile::ForNode(kNode));
  Run();
  lagging.silent = true;  // for less than a second
  Plan("7", {{0, "7g.40gb@0"}});
  const Time begin = clock_.Now();
  while (destroyed_ < 1 && clock_.Now() - begin < seconds(30)) {
    if (!runner_->Step(clock_)) clock_.Advance(milliseconds(10));
  }
  ASSERT_EQ(destroyed_, 1);
  Bind("late", "1g.5gb");  // by a scheduler with an older allocatable
  const Time first = clock_.Now();
  while (clock_.Now() - first < milliseconds(900)) {
    if (!runner_->Step(clock_)) clock_.Advance(milliseconds(10));
  }
  EXPECT_EQ(destroyed_, 1) << "the slice that pod late is about to get";
  lagging.silent = false;
  Run();
  runner_.reset();
}

// For example it loads a model, or fails again and again. The other containers of its pod need no
// slice.
TEST_F(AgentUseTest, AcknowledgesPlanWhileInitContainerRunsForHours) {
  AnInitContainerRuns();
  Plan("7", {{0, "1g.5gb@0"}, {1, "7g.40gb@0"}});
  int patches = 0, looks = 0;
  api_.intercept =
      [&](const kube::ApiRequest& request) -> std::optional<Result<kube::ApiResponse>> {
    patches += request.method == "PATCH" ? 1 : 0;
    looks += request.method == "GET" ? 1 : 0;
    return std::nullopt;
  };
  for (int i = 0; i < 360; ++i) {  // an hour; a kubelet writes allocatable every 10 s
    ReportAllocatable();
    Run(seconds(10));
  }
  EXPECT_NE(Annotation("status-layout-1").find("7g.40gb@0"), std::string::npos);
  EXPECT_EQ(Annotation("status-partitioning-plan"), "7")
      << "GPU 1 is partitioned, GPU 0 is not: the result is missing for an hour";
  EXPECT_LT(patches + looks, 100) << patches << " patches " << looks << " GETs in an hour";
}

// A sidecar keeps its device as long as the other containers keep theirs.
TEST_F(AgentUseTest, KeepsSidecarDeviceThatKubeletForgets) {
  Json sidecar = Asking("side", "1");
  sidecar.as_object()["restartPolicy"] = "Always";
  api_.Put(BoundPod("a", "u1", JsonArray{sidecar}, JsonArray{JsonObject{{"name", "main"}}}));
  kubelet_.Assign({"ml", "a", "side", kSlice, second_.uuid});
  kubelet_.forgetful = true;  // the agent also restarts
  Admitted("a");
  Condition("a", "Initialized", "True");
  Restart();
  Apply("7", {{0, "1g.5gb@0"}}, seconds(30));
  EXPECT_EQ(destroyed_, 0);
}

TEST_F(AgentUseTest, RemembersDeviceListedBeforeItsPodIsSeen) {
  ASSERT_TRUE(kubelet_.Admit("ml", "a", kSlice).ok());
  Run(seconds(11));  // the pod watch lags
  api_.Put(BoundPod("a", "u1", {}, JsonArray{Asking("main", "1")}));
  Run(seconds(11));
  kubelet_.forgetful = true;  // the kubelet restarts before it has written the pod's first status
  PlanWithoutTheHeld();
  Run(seconds(3));
  EXPECT_EQ(destroyed_, 0);
}

TEST_F(AgentUseTest, RemembersHolderDuringDriverError) {
  kubelet_.Assign({"ml", "a", "main", kSlice, second_.uuid});
  Bind("a", "1g.5gb");  // its status does not show the admission yet
  Run();
  kubelet_.forgetful = true;
  gpus_.Lose(0);
  Run(seconds(11));
  gpus_.Restore(0);
  Apply("7", {{0, "1g.5gb@0"}}, seconds(3));
  EXPECT_EQ(destroyed_, 0);
}

TEST_F(AgentUseTest, PodsWithAbsurdRequestsDoNotExposeSlicesOfOthers) {
  Bind("a", "1g.5gb");
  for (const char* name : {"x", "y"}) {  // with spec.nodeName set, so no scheduler is involved
    api_.Put(BoundPod(name, name, {}, JsonArray{Asking("main", "9223372036854775807")}));
    Admitted(name);
  }
  Apply("7", {{0, "7g.40gb@0"}}, seconds(1));
  EXPECT_EQ(destroyed_, 0) << "what pod a is about to get";
}

TEST_F(AgentUseTest, DoesNotEnableMigOnGpuThatAPodHoldsWhole) {
  const gpu::Model* model = gpu::Catalogue::Builtin().FindByName("H100-80GB");
  device::SimGpus gpus({{model, "", /*mig_enabled=*/false}}, kNode, Hooks());
  Restart(gpus);
  Run();
  EXPECT_EQ(Annotation("status-layout-0"), "");
  const std::string uuid = gpus.ListGpus()->front().uuid;
  Plan("7", {{0, "7g.80gb@0"}});
  api_.Put(BoundPod(
      "whole", "u1", {},
      JsonArray{JsonObject{{"name", "main"}, {"resources", {{"limits", {{kWholeGpu, "1"}}}}}}}));
  Run(seconds(5));
  EXPECT_FALSE(gpus.ListGpus()->front().mig_enabled) << "a pod is about to get it";
  kubelet_.Assign({"ml", "whole", "main", kWholeGpu, uuid});
  Admitted("whole");
  Run();
  EXPECT_FALSE(gpus.ListGpus()->front().mig_enabled) << "a pod holds it";
  EXPECT_FALSE(HasStatus()) << "no plan may use it";
  EXPECT_THAT(Obstacles(), ::testing::Contains("InUse"));
  kubelet_.forgetful = true;  // the agent restarts, too
  Restart(gpus);
  Run();
  EXPECT_FALSE(gpus.ListGpus()->front().mig_enabled);
  EXPECT_FALSE(HasStatus()) << "a pod holds it";
  kubelet_.forgetful = false;
  End("whole");
  Run();
  EXPECT_TRUE(gpus.ListGpus()->front().mig_enabled);
  runner_.reset();
  agent_.reset();
}

TEST_F(AgentUseTest, DoesNotAcknowledgePlanWhileGpuWaitsForPod) {
  const gpu::Model* model = gpu::Catalogue::Builtin().FindByName("H100-80GB");
  device::SimGpus gpus({{model, "", false}, {model, "", false}}, kNode, Hooks());
  Restart(gpus);
  api_.Put(BoundPod(
      "whole", "u1", {},
      JsonArray{JsonObject{{"name", "main"}, {"resources", {{"limits", {{kWholeGpu, "1"}}}}}}}));
  Apply("7", {{0, "7g.80gb@0"}}, seconds(5));
  EXPECT_EQ(Annotation("status-partitioning-plan"), "") << Annotation("partitioning-result");
  kubelet_.Assign({"ml", "whole", "main", kWholeGpu, gpus.ListGpus()->back().uuid});
  Admitted("whole");
  Run(seconds(5));
  EXPECT_EQ(Annotation("status-layout-0"), "7g.80gb@0:free");
  EXPECT_EQ(Annotation("status-partitioning-plan"), "7");
  runner_.reset();
  agent_.reset();
}

TEST_F(AgentUseTest, ReportsStateWhilePluginOffersWrongDevices) {
  PluginThatCannotWithdraw();
  kubelet_.mute = true;  // NVIDIA's plugin never offers the existing devices
  health_.Add({device::HealthCondition::Kind::kXid, 1, {}, 79, "fell off the bus; reset it"});
  Apply("7", {{0, "1g.5gb@0,1g.5gb@1,1g.5gb@2"}}, seconds(600));
  EXPECT_EQ(Annotation("status-layout-0"), "1g.5gb@0:free,1g.5gb@1:free,1g.5gb@2:free");
  EXPECT_NE(NodeCondition(), "");
  EXPECT_EQ(Annotation("status-partitioning-plan"), "") << "the third slice is not offered";
}

TEST_F(AgentUseTest, NoticesCorrectedPluginWithinASecond) {
  PluginThatCannotWithdraw();
  kubelet_.mute = true;
  Plan("7", {{0, "1g.5gb@0,1g.5gb@1,1g.5gb@2"}});
  for (int i = 0; i < 20; ++i) {  // the plugin's pods end, start and register
    Bind("plugin-" + std::to_string(i), "1g.5gb");
    Run(milliseconds(20));
    api_.Remove("pods", "ml/plugin-" + std::to_string(i));
  }
  Run(seconds(60));
  EXPECT_EQ(Annotation("status-partitioning-plan"), "");
  kubelet_.mute = false;
  Run(seconds(1));
  EXPECT_EQ(Annotation("status-partitioning-plan"), "7");
}

TEST_F(AgentUseTest, PublishesMissingPluginOnNodeOnce) {
  PluginThatCannotWithdraw();
  kubelet_.trouble = {Code::kNotFound, "no pod of the plugin"};
  Apply("7", {{0, "1g.5gb@0,1g.5gb@1,1g.5gb@2"}}, seconds(600));
  EXPECT_EQ(Events(), "DevicesNotOffered: Failed to offer devices of Node: no pod of the plugin\n");
  EXPECT_EQ(Annotation("status-layout-0"), "1g.5gb@0:free,1g.5gb@1:free,1g.5gb@2:free");
  kubelet_.trouble = Status::Ok();
  Run(seconds(10));
  EXPECT_EQ(Annotation("status-partitioning-plan"), "7");
}

TEST_F(AgentUseTest, PublishesOfferThatKubeletDoesNotReadAfterAMinute) {
  kubelet_.mute = true;
  kubelet_reports_ = false;
  Apply("7", {{0, "1g.5gb@0,1g.5gb@1,1g.5gb@2"}}, seconds(50));
  EXPECT_EQ(Events(), "") << "a kubelet that starts takes its time";
  Run(seconds(300));
  EXPECT_EQ(Events(), "DevicesNotOffered: Failed to offer devices of Node: no answer\n");
}

TEST_F(AgentTest, KeepsIncompleteInstanceThatAnotherToolMayBeCreating) {
  Plan("7", {{0, "3g.20gb@4"}});
  fault_ = [](const device::SimAttempt&) { return device::SimFault::kCrashBetween; };
  while (gpus_.Truth(0).empty()) runner_->Step(clock_);
  fault_ = {};
  ASSERT_FALSE(gpus_.Truth(0).front().complete);
  Json node = *api_.Find("nodes", kNode);
  MakeObject(node, "metadata", "labels").erase("nos.nebuly.com/gpu-partitioning");
  api_.Put(node);
  Restart();
  Run();
  EXPECT_EQ(destroyed_, 0) << "a node without the label";
  MakeObject(node, "metadata", "labels")["nos.nebuly.com/gpu-partitioning"] = "mig";
  health_.Add({device::HealthCondition::Kind::kXid, 0, {}, 79, "fell off the bus; reset it"});
  api_.Put(node);
  Run();
  EXPECT_EQ(destroyed_, 0) << "a broken GPU";
  health_.ClearGpu(0);
  Run();
  EXPECT_EQ(destroyed_, 1) << "an incomplete instance of nos";
}

// API servers before 1.31 read every pod of the cluster for another list (Observer).
TEST_F(AgentUseTest, ListsPodsBeforeDestructionAtTheVersionOfThatMoment) {
  std::vector<kube::ApiRequest> lists;
  api_.intercept =
      [&](const kube::ApiRequest& request) -> std::optional<Result<kube::ApiResponse>> {
    const bool pods = request.method == "GET" && request.path.ends_with("/pods");
    if (pods && request.Query("watch").empty()) lists.push_back(request);
    return std::nullopt;
  };
  Apply("7", {{0, "1g.5gb@0"}}, seconds(20));
  ASSERT_EQ(destroyed_, 1);
  ASSERT_EQ(lists.size() % 2, 0U);
  ASSERT_FALSE(lists.empty());
  for (size_t i = 0; i < lists.size(); i += 2) {
    EXPECT_TRUE(lists[i].Query("fieldSelector").starts_with("metadata.name="));
    EXPECT_EQ(lists[i].path, "/api/v1/namespaces/default/pods") << "one key";
    EXPECT_EQ(lists[i + 1].Query("fieldSelector"), std::string("spec.nodeName=") + kNode);
    EXPECT_NE(lists[i + 1].Query("resourceVersion"), "");
    EXPECT_EQ(lists[i + 1].Query("limit"), "") << "with a limit it is read from etcd";
  }
}

}  // namespace
}  // namespace nos::agent
