// Calls into the driver that do not return: the agent over bounded GPUs over the doubled NVML.
#include <gmock/gmock.h>

#include <condition_variable>
#include <map>
#include <memory>
#include <set>

#include "agent/node_agent.h"
#include "base/log.h"
#include "device/bounded_gpus.h"
#include "device/nvml_gpus.h"
#include "kube/testing/fake_api.h"
#include "kubelet/testing/fake_kubelet.h"
#include "node.h"
#include "reconcile/runner.h"
#include "reconcile/testing/scene.h"

namespace nos::agent {
namespace {

using device::BoundedCallOptions;
using device::BoundedGpus;
using device::HealthCondition;
using device::NvmlLibrary;
using nvml_double::NvmlNode;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Names = std::vector<std::string>;

constexpr const char* kNode = "gpu-1";
constexpr const char* kCreate = "nvmlDeviceCreateGpuInstanceWithPlacement";
constexpr const char* kDestroy = "nvmlGpuInstanceDestroy";
constexpr auto kRead = BoundedCallOptions::Kind::kRead;
constexpr auto kChange = BoundedCallOptions::Kind::kChange;

// The time for calls to a GPU that is to hang is up at once; for others it is never up.
class Patience {
 public:
  using Kind = BoundedCallOptions::Kind;
  void End(int gpu, Kind kind) {
    Change([&] { ended_.insert({gpu, kind}); });
  }
  void Restore(int gpu) {
    Change([&] { std::erase_if(ended_, [&](const auto& end) { return end.first == gpu; }); });
  }
  Duration For(int gpu, Kind kind) {
    const std::lock_guard lock(mutex_);
    return ended_.contains({gpu, kind}) ? Duration() : std::chrono::hours(1);
  }
  void Changed() {
    Change([] {});
  }
  void AwaitUntil(const std::function<bool()>& done) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, done);
  }

 private:
  template <typename F>
  void Change(const F& change) {
    const std::lock_guard lock(mutex_);
    change();
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::pair<int, Kind>> ended_;
};

class HungDriverTest : public ::testing::Test {
 protected:
  HungDriverTest() {
    SetLogLevel(LogLevel::kError);
    api_.Put({{"kind", "Node"},
              {"metadata",
               {{"name", kNode},
                {"labels",
                 {{"nos.nebuly.com/gpu-partitioning", "mig"},
                  {"nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB"},
                  {"nvidia.com/gpu.count", "2"}}}}},
              {"status", {{"allocatable", {{"cpu", "96"}}}}}});
    kubelet_.on_offer = [this] { ReportAllocatable(); };
    health_.SetListener([this] { patience_.Changed(); });
    gpus_ = std::make_unique<BoundedGpus>(
        std::make_shared<device::NvmlGpus>(
            *library_, gpu::Catalogue::Builtin(), health_, device::NvmlEventOptions{},
            device::GpuResetOptions{.program = NvmlNode::nvidia_smi()}),
        health_, BoundedCallOptions{.limit = [this](int gpu, auto kind) {
          return patience_.For(gpu, kind);
        }});
    Restart();
  }
  ~HungDriverTest() override {
    for (const int gpu : {HealthCondition::kNoGpu, 0, 1}) node_.Release(gpu);
  }

  // Simulates a new agent without state.
  void Restart() {
    runner_.reset();
    agent_.reset();
    AgentExtras extras;
    extras.health = &health_;
    agent_ = std::make_unique<Agent>(AgentConfig{}, kNode, gpu::Catalogue::Builtin(), *gpus_,
                                     kubelet_, kubelet_, extras);
    runner_ = std::make_unique<reconcile::Runner>(*agent_, api_, reconcile::ForNode(kNode));
  }
  void Hang(int gpu, const Names& calls, Patience::Kind kind) {
    node_.Hang(gpu, calls);
    patience_.End(gpu, kind);
  }
  // The calls return. Waits until the GPU counts as answering.
  void Release(int gpu) {
    patience_.Restore(gpu);
    node_.Release(gpu);
    patience_.AwaitUntil([&] { return Reasons().empty(); });
    runner_->Poke(clock_.Now());
  }
  Names Reasons() const {
    Names reasons;
    for (const HealthCondition& condition : health_.Conditions()) {
      reasons.push_back(condition.Reason());
    }
    return reasons;
  }
  void ReportAllocatable() {
    std::map<std::string, int> counts;
    for (const gpu::Profile& profile : model_.profiles()) counts[profile.resource_name] = 0;
    for (const auto& device : kubelet_.offer()) counts[device.resource] += device.healthy ? 1 : 0;
    reconcile::testing::PutAllocatable(api_, kNode, counts);
  }
  void Run(Duration time = seconds(60)) {
    EXPECT_TRUE(reconcile::testing::RunFor(*runner_, clock_, time))
        << "the agent does not come to rest";
  }
  void Plan(const std::string& id, const std::map<int, std::string>& layouts) {
    Json node = *api_.Find("nodes", kNode);
    JsonObject& annotations = MakeObject(node, "metadata", "annotations");
    for (const auto& [gpu, layout] : layouts) {
      annotations["nos.nebuly.com/spec-layout-" + std::to_string(gpu)] = layout;
    }
    annotations["nos.nebuly.com/spec-partitioning-plan"] = id;
    api_.Put(node);
  }
  std::string Annotation(const std::string& key) {
    return reconcile::testing::NodeAnnotation(api_, kNode, key);
  }
  // "False GpuHangs GPU 0: ...".
  std::string Condition() {
    const Json node = *api_.Find("nodes", kNode);
    for (const Json& one : node.at("status").at("conditions").as_array()) {
      if (FindString(one, "type") != kGpusHealthy) continue;
      return std::string(FindString(one, "status")) + " " + std::string(FindString(one, "reason")) +
             " " + std::string(FindString(one, "message"));
    }
    return "";
  }
  // Number of offered devices that are healthy, and of the others.
  std::pair<int, int> Offered() const {
    std::pair<int, int> count;
    for (const auto& device : kubelet_.offer()) ++(device.healthy ? count.first : count.second);
    return count;
  }

  const gpu::Model& model_ = *gpu::Catalogue::Builtin().FindByName("A100-40GB");
  NvmlNode node_{JsonObject{
      {"node", kNode},
      {"gpus", JsonArray{{{"model", "A100-40GB"}, {"product", "NVIDIA A100-SXM4-40GB"}},
                         {{"model", "A100-40GB"}, {"product", "NVIDIA A100-SXM4-40GB"}}}}}};
  std::unique_ptr<NvmlLibrary> library_ = NvmlLibrary::Open(NvmlNode::library()).value();
  ManualClock clock_{Time(seconds(1'000'000))};
  Patience patience_;
  device::GpuHealth health_;
  kube::FakeApi api_;
  kubelet::FakeKubelet kubelet_;
  std::unique_ptr<BoundedGpus> gpus_;
  std::unique_ptr<Agent> agent_;
  std::unique_ptr<reconcile::Runner> runner_;
};

TEST_F(HungDriverTest, OtherGpuIsRepartitionedWhileOneHangsInARead) {
  Plan("7", {{0, "3g.20gb@4"}, {1, "7g.40gb@0"}});
  Run();
  ASSERT_EQ(Annotation("status-partitioning-plan"), "7");
  Hang(0, {"*"}, kRead);
  Plan("8", {{0, "7g.40gb@0"}, {1, "3g.20gb@0,3g.20gb@4"}});
  Run();
  EXPECT_EQ(node_.Layout(1), (Names{"3g.20gb@0", "3g.20gb@4"}));
  EXPECT_EQ(node_.Layout(0), Names{"3g.20gb@4"});
  EXPECT_EQ(Offered(), std::pair(2, 1)) << "the device of GPU 0 is unhealthy";
  EXPECT_THAT(Condition(), HasSubstr("False GpuHangs GPU 0: the call 'read GPU' has not returned "
                                     "since 20"));
  EXPECT_EQ(Annotation("status-partitioning-plan"), "8") << "the plan ends without it";
  Release(0);
  Run();
  EXPECT_EQ(node_.Layout(0), Names{"7g.40gb@0"});
  EXPECT_EQ(Offered(), std::pair(3, 0));
  EXPECT_THAT(Condition(), HasSubstr("True Healthy"));
}

TEST_F(HungDriverTest, OtherGpuIsRepartitionedWhileOneHangsInACreation) {
  Hang(0, {kCreate}, kChange);
  Plan("7", {{0, "3g.20gb@4"}, {1, "7g.40gb@0"}});
  Run();
  node_.AwaitHanging(0);
  EXPECT_EQ(node_.Layout(1), Names{"7g.40gb@0"});
  EXPECT_EQ(node_.Layout(0), Names{});
  EXPECT_EQ(Offered(), std::pair(1, 0));
  EXPECT_THAT(Reasons(), ElementsAre("GpuHangs"));
  Release(0);
  Run();
  EXPECT_EQ(node_.Layout(0), Names{"3g.20gb@4"}) << "made once";
  EXPECT_EQ(Offered(), std::pair(2, 0));
}

TEST_F(HungDriverTest, UsedSliceStaysWhileADestructionBesideItHangs) {
  Plan("7", {{0, "3g.20gb@0,3g.20gb@4"}, {1, "7g.40gb@0"}});
  Run();
  reconcile::testing::PutBoundPod(api_, "a", kNode, "3g.20gb", "Running");
  ASSERT_TRUE(kubelet_.Admit("ml", "a", "nvidia.com/mig-3g.20gb").ok());
  Run();
  Hang(0, {kDestroy}, kChange);
  Plan("8", {{0, "1g.5gb@0"}, {1, "3g.20gb@0,3g.20gb@4"}});
  Run();
  node_.AwaitHanging(0);
  EXPECT_EQ(node_.Layout(1), (Names{"3g.20gb@0", "3g.20gb@4"}));
  const auto held = kubelet_.List().value();
  ASSERT_EQ(held.size(), 1u);
  for (const auto& device : kubelet_.offer()) {
    if (device.device_id == held.front().device_id) {
      EXPECT_FALSE(device.healthy) << "no other pod may get it";
    }
  }
  Release(0);
  Run();
  const auto kept = gpus_->ListInstances(0).value();
  EXPECT_THAT(kept, Contains(::testing::Field(&device::GpuInstance::uuid, held.front().device_id)));
}

TEST_F(HungDriverTest, StartsWhileAGpuHangs) {
  Plan("7", {{0, "3g.20gb@4"}, {1, "7g.40gb@0"}});
  Run();
  Hang(0, {"*"}, kRead);
  Restart();
  Plan("8", {{1, "3g.20gb@0,3g.20gb@4"}});
  Run();
  EXPECT_EQ(node_.Layout(1), (Names{"3g.20gb@0", "3g.20gb@4"}));
  EXPECT_EQ(Offered().first, 2);
  Release(0);
  Run();
  EXPECT_EQ(Offered(), std::pair(3, 0));
  EXPECT_EQ(node_.Layout(0), Names{"3g.20gb@4"});
}

TEST_F(HungDriverTest, KeepsGpusWhileDriverDoesNotCountThem) {
  Plan("7", {{0, "3g.20gb@4"}, {1, "7g.40gb@0"}});
  Run();
  Hang(HealthCondition::kNoGpu, {"nvmlDeviceGetCount_v2"}, kRead);
  Plan("8", {{1, "3g.20gb@0,3g.20gb@4"}});
  Run();
  EXPECT_EQ(node_.Layout(1), (Names{"3g.20gb@0", "3g.20gb@4"}));
  EXPECT_EQ(Offered(), std::pair(3, 0));
  EXPECT_THAT(Condition(), HasSubstr("False DriverHangs the driver does not answer: the call "
                                     "'count GPUs' has not returned since 20"));
  Release(HealthCondition::kNoGpu);
  Run();
  EXPECT_THAT(Condition(), HasSubstr("True Healthy"));
}

TEST_F(HungDriverTest, ReportsDriverThatHangsFromTheStart) {
  Hang(HealthCondition::kNoGpu, {"nvmlDeviceGetCount_v2"}, kRead);
  Plan("7", {{0, "3g.20gb@4"}});
  Run();
  EXPECT_THAT(Condition(), HasSubstr("False DriverHangs"));
  EXPECT_EQ(runner_->last_error().code(), Code::kDeadline);
  Release(HealthCondition::kNoGpu);
  Run();
  EXPECT_EQ(node_.Layout(0), Names{"3g.20gb@4"});
}

// The double refuses a reset while a process has a session, as the driver does.
TEST_F(HungDriverTest, ResetsGpuAfterClosingSessionsOfAll) {
  ASSERT_EQ(gpus_->ListGpus()->size(), 2u);
  EXPECT_EQ(gpus_->DisableMig(0).code(), Code::kPermission) << "the mode is pending";
  const Status reset = gpus_->ResetGpu(0);
  EXPECT_TRUE(reset.ok()) << reset.message();
  EXPECT_FALSE(gpus_->ListGpus()->front().mig_enabled);
  Hang(1, {"*"}, kRead);
  EXPECT_EQ(gpus_->ListInstances(1).status().code(), Code::kUnavailable);
  EXPECT_THAT(gpus_->ResetGpu(0).message(), HasSubstr("GPU 1 does not answer"));
}

// A watcher that hangs with its GPU must not keep the errors of others from being noticed.
TEST_F(HungDriverTest, NoticesErrorsOfOtherGpus) {
  Hang(0, {"*"}, kRead);
  ASSERT_EQ(gpus_->ListGpus()->size(), 2u);
  node_.Event({{"gpu", 1}, {"data", 79}});
  patience_.AwaitUntil([&] { return Reasons() == Names{"GpuHangs", "Xid79"}; });
  EXPECT_FALSE(health_.Usable(1, 0));
  health_.ClearGpu(1);
}

}  // namespace
}  // namespace nos::agent
