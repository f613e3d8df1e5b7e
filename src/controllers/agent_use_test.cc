// What may be in use although the kubelet does not say so (yet): it is left alone.
#include <algorithm>

#include "controllers/agent_fixture_test.h"

namespace nos::controllers {
namespace {

constexpr const char* kSlice = "nvidia.com/mig-1g.5gb";

// Two slices on GPU 0.
class AgentUseTest : public AgentTest {
 protected:
  AgentUseTest()
      : first_(gpus_.Place(0, "1g.5gb", 0).value()), second_(gpus_.Place(0, "1g.5gb", 1).value()) {
    Run();
  }
  void Condition(const std::string& pod, const std::string& type, const std::string& status) {
    Json object = *api_.Find("pods", "ml/" + pod);
    object.at("status")
        .at("conditions")
        .get_array()
        .push_back(JsonObject{{"type", type}, {"status", status}});
    api_.Put(object);
  }
  // A plan that keeps only the slice which nobody holds.
  void PlanWithoutTheHeld() {
    Plan("7", {{0, kubelet_.Holds(first_.uuid) ? "1g.5gb@1" : "1g.5gb@0"}});
  }
  // As NVIDIA's.
  void PluginThatCannotWithdraw() {
    kubelet_.withdraws = false;
    kubelet_.on_offer = nullptr;
    expect_withdrawn_ = false;
  }

  device::GpuInstance first_, second_;
};

TEST_F(AgentUseTest, ARunningInitContainerKeepsItsDevice) {
  api_.Put(
      BoundPod("a", "u1", JsonArray{Asking("init", "1")}, JsonArray{JsonObject{{"name", "main"}}}));
  ASSERT_TRUE(kubelet_.Admit("ml", "a", kSlice, "init").ok());
  Admitted("a");
  Condition("a", "Initialized", "False");
  Run();
  PlanWithoutTheHeld();
  Run();
  EXPECT_EQ(destroyed_, 0);
  EXPECT_EQ(Annotation("status-partitioning-plan"), "") << "there is something left to do";
  Admitted("a");
  Condition("a", "Initialized", "True");
  kubelet_.Remove("ml", "a");
  Plan("8", {{0, "7g.40gb@0"}});
  Run();
  EXPECT_EQ(destroyed_, 1) << "the kubelet may run the init container again";
}

TEST_F(AgentUseTest, NothingIsWithdrawnWhileAPodMayGetAnyDeviceOfItsKind) {
  Plan("7", {{0, "1g.5gb@0"}});
  bool withdrawn = false;
  kubelet_.on_offer = [&] { withdrawn |= !kubelet_.Offers(second_.uuid); };
  Run(milliseconds(100));
  Bind("a", "1g.5gb");  // two are offered; the kubelet chooses
  Run(seconds(1));
  EXPECT_FALSE(withdrawn);
  EXPECT_EQ(Allocatable("1g.5gb"), 1) << "no other pod is to come for it";
  ASSERT_TRUE(kubelet_.Admit("ml", "a", kSlice).ok());
  Admitted("a");
  Run();
  EXPECT_EQ(destroyed_, kubelet_.Holds(second_.uuid) ? 0 : 1);
}

TEST_F(AgentUseTest, ASuccessorNeedsASliceAlsoAfterARestartOfTheAgent) {
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
}

TEST_F(AgentUseTest, ADeviceSeenBeforeItsPodIsRemembered) {
  ASSERT_TRUE(kubelet_.Admit("ml", "a", kSlice).ok());
  Run(seconds(11));  // the watch of pods lags
  api_.Put(BoundPod("a", "u1", {}, JsonArray{Asking("main", "1")}));
  Run(seconds(11));
  kubelet_.forgetful = true;  // restarts before it has written the pod's first status
  PlanWithoutTheHeld();
  Run(seconds(3));
  EXPECT_EQ(destroyed_, 0);
}

TEST_F(AgentUseTest, AMomentaryErrorOfTheDriverForgetsNoHolder) {
  kubelet_.Assign({"ml", "a", "main", kSlice, second_.uuid});
  Bind("a", "1g.5gb");  // not yet admitted as far as its status says
  Run();
  kubelet_.forgetful = true;
  gpus_.Lose(0);
  Run(seconds(11));
  gpus_.Restore(0);
  Plan("7", {{0, "1g.5gb@0"}});
  Run(seconds(3));
  EXPECT_EQ(destroyed_, 0);
}

TEST_F(AgentUseTest, AbsurdPodsTakeNoProtectionFromOthers) {
  Bind("a", "1g.5gb");
  for (const char* name : {"x", "y"}) {  // with spec.nodeName, past every scheduler
    api_.Put(BoundPod(name, name, {}, JsonArray{Asking("main", "9223372036854775807")}));
    Admitted(name);
  }
  Plan("7", {{0, "7g.40gb@0"}});
  Run(seconds(1));
  EXPECT_EQ(destroyed_, 0) << "what pod a is about to get";
}

TEST_F(AgentUseTest, AWholeGpuThatAPodHoldsIsNotSwitched) {
  const gpu::Model* model = gpu::Catalogue::Builtin().FindByName("H100-80GB");
  device::SimGpus gpus({{model, "", /*mig_enabled=*/false}}, kNode, Hooks());
  runner_.reset();
  agent_ = std::make_unique<Agent>(config_, kNode, gpu::Catalogue::Builtin(), gpus, kubelet_,
                                   kubelet_, AgentExtras{&health_, &metrics_});
  runner_ = std::make_unique<Runner>(*agent_, api_, ForNode(kNode));
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
  EXPECT_FALSE(gpus.ListGpus()->front().mig_enabled) << "under the pod that holds it";
  EXPECT_FALSE(api_.Find("nodes", kNode)
                   ->at("metadata")
                   .at("annotations")
                   .as_object()
                   .contains("nos.nebuly.com/status-layout-0"))
      << "nobody should plan on it";
  EXPECT_NE(Annotation("partitioning-result").find("in use as a whole"), std::string::npos)
      << Annotation("partitioning-result");
  kubelet_.Remove("ml", "whole");
  api_.Remove("pods", "ml/whole");
  Run();
  EXPECT_TRUE(gpus.ListGpus()->front().mig_enabled);
  runner_.reset();
  agent_.reset();
}

TEST_F(AgentUseTest, OneLookPastTheCachesServesForSeveral) {
  config_.settle = Duration::zero();
  Restart();
  Run();
  int looks = 0;
  api_.intercept =
      [&](const kube::ApiRequest& request) -> std::optional<Result<kube::ApiResponse>> {
    looks += request.method == "GET" && request.path == "/api/v1/pods" ? 1 : 0;
    return std::nullopt;
  };
  Plan("7", {{0, "3g.20gb@4"}});
  Run();
  EXPECT_EQ(destroyed_, 2);
  EXPECT_EQ(looks, 2) << "before they leave the offer, and before they are destroyed";
  Plan("8", {{0, "1g.5gb@0,1g.5gb@1,3g.20gb@4"}});
  Run();
  looks = 0;
  Plan("9", {{0, "1g.5gb@0,3g.20gb@4"}});
  while (destroyed_ < 3) runner_->Step(clock_);
  Plan("10", {{0, "3g.20gb@4"}});  // at once
  Run();
  EXPECT_EQ(destroyed_, 4);
  EXPECT_EQ(looks, 4) << "each offer is looked at anew";
}

TEST_F(AgentUseTest, APluginThatIsNotRightKeepsNobodyInTheDark) {
  PluginThatCannotWithdraw();
  kubelet_.mute = true;  // NVIDIA's plugin never has just what is there
  health_.Add({device::HealthCondition::Kind::kXid, 1, {}, 79, "fell off the bus; reset it"});
  Plan("7", {{0, "1g.5gb@0,1g.5gb@1,1g.5gb@2"}});
  Run(seconds(600));
  EXPECT_EQ(Annotation("status-layout-0"), "1g.5gb@0:free,1g.5gb@1:free,1g.5gb@2:free");
  EXPECT_NE(NodeCondition(), "");
  EXPECT_EQ(Annotation("status-partitioning-plan"), "") << "nobody can use the third one";
}

TEST_F(AgentUseTest, APluginThatComesRightIsNoticedWithinASecond) {
  PluginThatCannotWithdraw();
  kubelet_.mute = true;
  Plan("7", {{0, "1g.5gb@0,1g.5gb@1,1g.5gb@2"}});
  for (int i = 0; i < 20; ++i) {  // its pods end, start, tell
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

TEST_F(AgentUseTest, APluginThatIsNotFoundIsSaidOnTheNodeOnce) {
  PluginThatCannotWithdraw();
  kubelet_.trouble = {Code::kNotFound, "no pod of the plugin"};
  Plan("7", {{0, "1g.5gb@0,1g.5gb@1,1g.5gb@2"}});
  Run(seconds(600));
  EXPECT_EQ(Events(), "DevicesNotOffered: no pod of the plugin\n");
  EXPECT_EQ(Annotation("status-layout-0"), "1g.5gb@0:free,1g.5gb@1:free,1g.5gb@2:free");
  kubelet_.trouble = Status::Ok();
  Run(seconds(10));
  EXPECT_EQ(Annotation("status-partitioning-plan"), "7");
}

TEST_F(AgentTest, AHalfMadeInstanceOfSomebodyElseIsLeftAlone) {
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
}

}  // namespace
}  // namespace nos::controllers
