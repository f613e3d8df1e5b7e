#include "controllers/agent.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>

#include "controllers/node_write.h"
#include "controllers/runner.h"
#include "controllers/testing/scene.h"
#include "device/sim_gpus.h"
#include "kube/testing/fake_api.h"
#include "kubelet/testing/fake_kubelet.h"

namespace nos::controllers {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* kNode = "gpu-1";

// A node with two A100-40GB, its kubelet, and an agent that may die at any time.
class AgentTest : public ::testing::Test {
 protected:
  AgentTest() {
    api_.Put({{"kind", "Node"},
              {"metadata",
               {{"name", kNode},
                {"labels",
                 {{"nos.nebuly.com/gpu-partitioning", "mig"},
                  {"nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB"},
                  {"nvidia.com/gpu.count", "2"}}}}},
              {"status", {{"allocatable", {{"cpu", "96"}}}}}});
    kubelet_.on_offer = [this] {
      if (kubelet_reports_) ReportAllocatable();
    };
    Restart();
  }

  device::SimHooks Hooks() {
    device::SimHooks hooks;
    hooks.spend = [this](Duration d) { clock_.Advance(d); };
    hooks.fault = [this](const device::SimAttempt& attempt) {
      return fault_ ? fault_(attempt) : device::SimFault::kNone;
    };
    // No SimHooks::held: the driver refuses only while a process runs, so caution must be the
    // agent's.
    hooks.on_destroy = [this](const device::GpuInstance& instance) {
      ++destroyed_;
      EXPECT_FALSE(kubelet_.Holds(instance.uuid)) << "a used instance was destroyed";
      EXPECT_FALSE(expect_withdrawn_ && kubelet_.Offers(instance.uuid)) << "while on offer";
    };
    return hooks;
  }

  void Restart() {
    runner_.reset();
    agent_ = std::make_unique<Agent>(config_, kNode, gpu::Catalogue::Builtin(), gpus_, kubelet_,
                                     kubelet_, AgentExtras{&health_, &metrics_});
    runner_ = std::make_unique<Runner>(*agent_, api_, ForNode(kNode));
  }

  void ReportAllocatable() {
    std::map<std::string, int> counts = {{"nvidia.com/mig-1g.5gb", 0},
                                         {"nvidia.com/mig-7g.40gb", 0}};
    for (const auto& device : kubelet_.offer()) counts[device.resource] += device.healthy ? 1 : 0;
    Json node = *api_.Find("nodes", kNode);
    for (const auto& [resource, count] : counts) {
      MakeObject(node, "status", "allocatable")[resource] = std::to_string(count);
    }
    api_.Put(node);
  }

  // Lets the agent work for this long.
  void Run(Duration time = seconds(30)) {
    EXPECT_TRUE(testing::RunFor(*runner_, clock_, time)) << "the agent does not come to rest";
  }

  void Annotate(const std::string& key, const std::string& value) {
    Json node = *api_.Find("nodes", kNode);
    MakeObject(node, "metadata", "annotations")["nos.nebuly.com/" + key] = value;
    api_.Put(node);
  }
  void Plan(const std::string& id, const std::map<int, std::string>& layouts) {
    for (const auto& [gpu, layout] : layouts) {
      Annotate("spec-layout-" + std::to_string(gpu), layout);
    }
    Annotate("spec-partitioning-plan", id);
  }
  std::string Annotation(const std::string& key) {
    return testing::NodeAnnotation(api_, kNode, key);
  }
  void Bind(const std::string& name, const std::string& profile) {
    testing::PutBoundPod(api_, name, kNode, profile, "Pending");
  }
  int64_t Allocatable(const std::string& profile) {
    return AllocatableOf(cluster::DecodeNode(*api_.Find("nodes", kNode)).value(),
                         "nvidia.com/mig-" + profile);
  }
  // As its kubelet tells it.
  void Admitted(const std::string& name) {
    Json pod = *api_.Find("pods", "ml/" + name);
    MakeObject(pod, "status")["conditions"] =
        JsonArray{JsonObject{{"type", "Ready"}, {"status", "False"}}};
    api_.Put(pod);
  }
  std::string Events() { return testing::EventsOf(api_); }
  // "status reason message", or "".
  std::string NodeCondition() {
    cluster::Node node = cluster::DecodeNode(*api_.Find("nodes", kNode)).value();
    const cluster::Condition* condition = FindCondition(node.conditions, kGpusHealthy);
    if (condition == nullptr) return "";
    return condition->status + " " + condition->reason + " " + condition->message;
  }

  ManualClock clock_{Time(seconds(1'000'000))};
  kube::FakeApi api_;
  kubelet::FakeKubelet kubelet_;
  std::function<device::SimFault(const device::SimAttempt&)> fault_;
  int destroyed_ = 0;
  bool kubelet_reports_ = true;
  bool expect_withdrawn_ = true;
  device::SimGpus gpus_{{{gpu::Catalogue::Builtin().FindByName("A100-40GB"), ""},
                         {gpu::Catalogue::Builtin().FindByName("A100-40GB"), ""}},
                        kNode,
                        Hooks()};
  AgentConfig config_;
  device::HealthBoard health_;
  Metrics metrics_;
  std::unique_ptr<Agent> agent_;
  std::unique_ptr<Runner> runner_;
};

TEST_F(AgentTest, ABrokenGpuIsLeftAloneAndOfferedAsUnhealthy) {
  ASSERT_TRUE(gpus_.Place(0, "3g.20gb", 4).ok());
  ASSERT_TRUE(gpus_.Place(1, "3g.20gb", 4).ok());
  health_.Add({device::HealthCondition::Kind::kXid, 0, {}, 79, "fell off the bus; reset it"});
  Run();
  ASSERT_EQ(kubelet_.offer().size(), 2u);
  const auto broken = gpus_.ListInstances(0)->front().uuid;
  for (const auto& device : kubelet_.offer()) {
    EXPECT_EQ(device.healthy, device.device_id != broken);
  }
  EXPECT_EQ(Annotation("status-layout-0"), "") << "nobody must plan on it";
  EXPECT_EQ(Annotation("status-layout-1"), "3g.20gb@4:free");
  EXPECT_EQ(NodeCondition(), "False Xid79 GPU 0: fell off the bus; reset it");
  EXPECT_NE(Events().find("Xid79: GPU 0: fell off"), std::string::npos) << Events();
  EXPECT_NE(metrics_.Text().find(R"(nos_agent_gpu_conditions{gpu="0",reason="Xid79"} 1)"),
            std::string::npos);

  Plan("8", {{0, "7g.40gb@0"}, {1, "7g.40gb@0"}});
  Run();
  EXPECT_EQ(gpus_.ListInstances(0)->front().profile, "3g.20gb") << "a broken GPU is not cut";
  EXPECT_EQ(Annotation("status-layout-1"), "7g.40gb@0:free");
  EXPECT_EQ(Annotation("status-partitioning-plan"), "8") << "the plan has come to its end";
  EXPECT_NE(Annotation("partitioning-result").find("GpuUnhealthy"), std::string::npos);

  health_.ClearGpu(0);
  Run();
  EXPECT_EQ(NodeCondition(), "True AllWell ");
  EXPECT_EQ(Annotation("status-layout-0"), "7g.40gb@0:free");
}

TEST_F(AgentTest, AnUnhealthyInstanceIsGivenToNobodyNew) {
  ASSERT_TRUE(gpus_.Place(0, "3g.20gb", 4).ok());
  ASSERT_TRUE(gpus_.Place(0, "3g.20gb", 0).ok());
  const uint32_t sick = gpus_.ListInstances(0)->front().id;
  health_.Add({device::HealthCondition::Kind::kXid, 0, sick, 64, "row remapping failed"});
  Run();
  ASSERT_EQ(kubelet_.offer().size(), 2u);
  EXPECT_NE(kubelet_.offer()[0].healthy, kubelet_.offer()[1].healthy);
  const std::string layout = Annotation("status-layout-0");
  EXPECT_NE(layout.find(":used"), std::string::npos) << layout;
  EXPECT_NE(layout.find(":free"), std::string::npos) << layout;
}

TEST_F(AgentTest, ANodeThatIsWellHasNoConditionOfIt) {
  Run();
  EXPECT_EQ(NodeCondition(), "");
}

TEST_F(AgentTest, CountsWhatItDoes) {
  Plan("7", {{0, "3g.20gb@4,1g.5gb@0"}});
  Run();
  const std::string text = metrics_.Text();
  EXPECT_NE(text.find(R"(nos_agent_device_operations_total{operation="create",result="ok"} 2)"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(R"(profile="3g.20gb",state="free"} 1)"), std::string::npos) << text;
}

TEST_F(AgentTest, ReportsWhatIsThereAndOffersIt) {
  ASSERT_TRUE(gpus_.Place(1, "3g.20gb", 4).ok());
  Run();
  EXPECT_EQ(Annotation("status-layout-0"), "");
  EXPECT_EQ(Annotation("status-layout-1"), "3g.20gb@4:free");
  EXPECT_EQ(Annotation("status-gpu-1-3g.20gb-free"), "1");
  EXPECT_EQ(Annotation("status-partitioning-plan"), "") << "nobody asked for a plan";
  ASSERT_EQ(kubelet_.offer().size(), 1u);
  EXPECT_EQ(kubelet_.offer()[0].resource, "nvidia.com/mig-3g.20gb");
  EXPECT_EQ(destroyed_, 0) << "without a spec everything stays";
}

TEST_F(AgentTest, AppliesAPlanAndThenAcknowledgesIt) {
  Run();
  Plan("7", {{0, "3g.20gb@4,1g.5gb@0"}, {1, "7g.40gb@0"}});
  Run();
  EXPECT_EQ(Annotation("status-layout-0"), "1g.5gb@0:free,3g.20gb@4:free");
  EXPECT_EQ(Annotation("status-layout-1"), "7g.40gb@0:free");
  EXPECT_EQ(Annotation("status-partitioning-plan"), "7");
  EXPECT_TRUE(ReadPlanResult(Annotation("partitioning-result"))->applied);
  EXPECT_EQ(kubelet_.offer().size(), 3u);
  EXPECT_NE(Events().find("Partitioned: plan 7 is applied"), std::string::npos) << Events();
}

// The Go agent acknowledged a plan when it had read it (defect A12).
TEST_F(AgentTest, DoesNotAcknowledgeWhatItHasNotDone) {
  fault_ = [](const device::SimAttempt&) { return device::SimFault::kBusy; };
  Plan("7", {{0, "7g.40gb@0"}});
  Run(seconds(3));
  EXPECT_EQ(Annotation("status-partitioning-plan"), "");
  fault_ = {};
  Run(seconds(30));
  EXPECT_EQ(Annotation("status-partitioning-plan"), "7");
}

// Defects A12 and C3: a failed apply looked acknowledged and was never tried again.
TEST_F(AgentTest, SaysWhatFailedForGoodAndGoesOnTrying) {
  fault_ = [](const device::SimAttempt& attempt) {
    return attempt.gpu == 0 ? device::SimFault::kFails : device::SimFault::kNone;
  };
  Plan("7", {{0, "7g.40gb@0"}, {1, "7g.40gb@0"}});
  Run(seconds(120));
  EXPECT_EQ(Annotation("status-layout-1"), "7g.40gb@0:free") << "the other GPU does not wait";
  EXPECT_EQ(Annotation("status-partitioning-plan"), "7");
  const auto result = ReadPlanResult(Annotation("partitioning-result"));
  ASSERT_TRUE(result.ok());
  EXPECT_FALSE(result->applied);
  EXPECT_EQ(result->obstacles.back().code, "DeviceError");
  EXPECT_EQ(result->obstacles.back().gpu, 0);
  EXPECT_NE(Events().find("DeviceOperationFailed: create 7g.40gb@0 on GPU 0"), std::string::npos);
  fault_ = {};
  Run(seconds(120));
  EXPECT_EQ(Annotation("status-layout-0"), "7g.40gb@0:free");
  EXPECT_TRUE(ReadPlanResult(Annotation("partitioning-result"))->applied);
}

TEST_F(AgentTest, KeepsUsedInstancesAndSaysSo) {
  const auto used = gpus_.Place(0, "1g.5gb", 5).value();
  Run();
  ASSERT_TRUE(kubelet_.Admit("ml", "a", "nvidia.com/mig-1g.5gb").ok());
  Bind("a", "1g.5gb");
  Plan("7", {{0, "3g.20gb@4,2g.10gb@0"}});
  Run();
  EXPECT_EQ(Annotation("status-layout-0"), "2g.10gb@0:free,1g.5gb@5:used");
  EXPECT_EQ(Annotation("status-partitioning-plan"), "7");
  const auto result = ReadPlanResult(Annotation("partitioning-result")).value();
  EXPECT_FALSE(result.applied);
  EXPECT_EQ(result.obstacles.at(0).code, "InUse");
  EXPECT_EQ(destroyed_, 0);
  EXPECT_NE(result.obstacles.at(0).message.find(used.uuid), std::string::npos);
  api_.Remove("pods", "ml/a");
  kubelet_.Remove("ml", "a");
  Run();
  EXPECT_EQ(Annotation("status-layout-0"), "2g.10gb@0:free,3g.20gb@4:free");
}

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

// Defect C2: the Go agent destroyed devices that the kubelet could hand out at that very moment.
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
  EXPECT_EQ(ReadPlanResult(Annotation("partitioning-result"))->obstacles.at(0).code, "InUse");
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

// It answers before it has read its pods.
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

// The kubelet refuses a pod for good when a device is missing at its arrival.
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
  EXPECT_TRUE(kubelet_.Offers(instance.uuid));
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

// Defect C1: at start the Go agent destroyed devices under their pods.
TEST_F(AgentTest, AStartDestroysOnlyWhatACrashLeftHalfMade) {
  ASSERT_TRUE(gpus_.Place(0, "1g.5gb", 0).ok());
  Run();
  ASSERT_TRUE(kubelet_.Admit("ml", "a", "nvidia.com/mig-1g.5gb").ok());
  Plan("7", {{0, "1g.5gb@0,3g.20gb@4,1g.5gb@1"}});
  fault_ = [](const device::SimAttempt& attempt) {
    return attempt.profile == "3g.20gb" ? device::SimFault::kCrashBetween : device::SimFault::kNone;
  };
  Run(seconds(1));
  const auto half_made = [&] {
    return std::any_of(gpus_.Truth(0).begin(), gpus_.Truth(0).end(),
                       [](const auto& instance) { return !instance.complete; });
  };
  fault_ = {};
  EXPECT_TRUE(half_made());
  Restart();
  Run();
  EXPECT_FALSE(half_made());
  EXPECT_EQ(Annotation("status-layout-0"), "1g.5gb@0:used,1g.5gb@1:free,3g.20gb@4:free");
  EXPECT_EQ(Annotation("status-partitioning-plan"), "7");
}

TEST_F(AgentTest, ConvergesWithACrashAfterEveryStep) {
  ASSERT_TRUE(gpus_.Place(0, "2g.10gb", 0).ok());
  ASSERT_TRUE(gpus_.Place(0, "1g.5gb", 6).ok());
  Plan("7", {{0, "4g.20gb@0,1g.5gb@4"}, {1, "3g.20gb@0,3g.20gb@4"}});
  for (int i = 0; i < 200 && Annotation("status-partitioning-plan") != "7"; ++i) {
    if (i % 7 == 0) Restart();
    runner_->Step(clock_);
    clock_.Advance(milliseconds(400));
  }
  EXPECT_EQ(Annotation("status-partitioning-plan"), "7");
  EXPECT_EQ(Annotation("status-layout-0"), "4g.20gb@0:free,1g.5gb@4:free");
  EXPECT_EQ(Annotation("status-layout-1"), "3g.20gb@0:free,3g.20gb@4:free");
}

TEST_F(AgentTest, RestoresTheLayoutAfterAReboot) {
  Plan("7", {{0, "7g.40gb@0"}});
  Run();
  gpus_.Reboot();
  Restart();
  Run();
  EXPECT_EQ(Annotation("status-layout-0"), "7g.40gb@0:free");
}

TEST_F(AgentTest, ALostGpuHurtsOnlyItself) {
  gpus_.Lose(0);
  Plan("7", {{0, "7g.40gb@0"}, {1, "7g.40gb@0"}});
  Run();
  EXPECT_EQ(Annotation("status-layout-1"), "7g.40gb@0:free");
  EXPECT_EQ(api_.Find("nodes", kNode)
                ->at("metadata")
                .at("annotations")
                .as_object()
                .count("nos.nebuly.com/status-layout-0"),
            0u);
  const auto result = ReadPlanResult(Annotation("partitioning-result")).value();
  EXPECT_EQ(result.obstacles.at(0).code, "NoSuchGpu");
  EXPECT_NE(Events().find("GpuNotUsable: GPU 0"), std::string::npos);
  gpus_.Restore(0);
  Run();
  EXPECT_EQ(Annotation("status-layout-0"), "7g.40gb@0:free");
}

TEST_F(AgentTest, AMalformedSpecIsLeftAlone) {
  ASSERT_TRUE(gpus_.Place(0, "1g.5gb", 0).ok());
  Plan("7", {{0, "9g.90gb@0"}, {1, "7g.40gb@0"}});
  Run();
  EXPECT_EQ(destroyed_, 0);
  EXPECT_EQ(Annotation("status-layout-0"), "1g.5gb@0:free");
  EXPECT_EQ(Annotation("status-layout-1"), "7g.40gb@0:free");
  EXPECT_EQ(ReadPlanResult(Annotation("partitioning-result"))->obstacles.at(0).code, "BadSpec");
}

TEST_F(AgentTest, ASpecThatContradictsItselfIsLeftAlone) {
  ASSERT_TRUE(gpus_.Place(0, "1g.5gb", 0).ok());
  ASSERT_TRUE(gpus_.Place(1, "1g.5gb", 0).ok());
  Annotate("spec-gpu-0-7g.40gb", "1");
  Annotate("spec-gpu-1-7g.40gb", "1");
  Plan("7", {{0, "nonsense"}, {1, "3g.20gb@4"}});
  Run();
  EXPECT_EQ(destroyed_, 0);
  EXPECT_EQ(Annotation("status-layout-0"), "1g.5gb@0:free");
  EXPECT_EQ(Annotation("status-layout-1"), "1g.5gb@0:free");
  EXPECT_EQ(ReadPlanResult(Annotation("partitioning-result"))->obstacles.size(), 2u);
}

// Defect A2: taking the label off a node was never noticed.
TEST_F(AgentTest, ANodeWithoutTheLabelIsLeftAlone) {
  ASSERT_TRUE(gpus_.Place(0, "1g.5gb", 0).ok());
  Json node = *api_.Find("nodes", kNode);
  MakeObject(node, "metadata", "labels").erase("nos.nebuly.com/gpu-partitioning");
  api_.Put(node);
  Plan("7", {{0, "7g.40gb@0"}});
  Run();
  EXPECT_EQ(destroyed_, 0);
  EXPECT_EQ(Annotation("status-partitioning-plan"), "");
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

TEST_F(AgentTest, TriesAgainAfterTheFirstPauseAndNotAtTheNextPoll) {
  config_.poll = seconds(3600);
  Restart();
  Run();
  int failures = 1;
  fault_ = [&](const device::SimAttempt&) {
    return failures-- > 0 ? device::SimFault::kBusy : device::SimFault::kNone;
  };
  Plan("7", {{0, "7g.40gb@0"}});
  Run(seconds(2));
  EXPECT_EQ(Annotation("status-partitioning-plan"), "7");
}

TEST_F(AgentTest, RestsWhenThereIsNothingToDo) {
  Plan("7", {{0, "7g.40gb@0"}});
  Run();
  const size_t writes = api_.writes.size();
  const int offers = kubelet_.offers;
  Run(seconds(300));
  EXPECT_EQ(api_.writes.size(), writes);
  EXPECT_EQ(kubelet_.offers, offers);
}

}  // namespace
}  // namespace nos::controllers
