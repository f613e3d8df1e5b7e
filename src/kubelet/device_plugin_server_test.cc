#include "kubelet/device_plugin_server.h"

#include <gmock/gmock.h>

#include <atomic>
#include <memory>

#include "kubelet/fixture_test.h"

namespace nos::kubelet {
namespace {

using testing::HasSubstr;
constexpr const char* kSmall = "nvidia.com/mig-1g.5gb";
constexpr const char* kLarge = "nvidia.com/mig-3g.20gb";
constexpr const char* kSmallSocket = "nos-nvidia.com_mig-1g.5gb.sock";

class DevicePluginServerTest : public testing::Test {
 protected:
  DevicePluginOptions Options() const {
    DevicePluginOptions options;
    options.folder = folder_.path();
    options.patience = kLong;
    options.pauses.base = std::chrono::milliseconds(5);
    return options;
  }
  void Start(DevicePluginOptions options) {
    plugin_ = std::make_unique<DevicePluginServer>(std::move(options));
  }
  void StartBoth() {
    kubelet_ = std::make_unique<MiniKubelet>(folder_.path());
    Start(Options());
  }
  void Offer(const std::vector<OfferedDevice>& devices) {
    const Status offered = plugin_->Offer(devices);
    EXPECT_TRUE(offered.ok()) << offered.message();
  }

  TemporaryFolder folder_;
  std::unique_ptr<MiniKubelet> kubelet_;
  std::unique_ptr<DevicePluginServer> plugin_;
};

TEST_F(DevicePluginServerTest, PushesListsOfEveryResource) {
  kubelet_ = std::make_unique<MiniKubelet>(folder_.path());
  DevicePluginOptions options = Options();
  options.pauses = {kLong, kLong};  // a slow kubelet is not asked twice
  Start(options);
  Offer({{kSmall, "MIG-a"}, {kSmall, "MIG-b", false}, {kLarge, "MIG-c"}});
  EXPECT_TRUE(kubelet_->Sees(kSmall, {"MIG-a", "MIG-b (unhealthy)"}));
  EXPECT_TRUE(kubelet_->Sees(kLarge, {"MIG-c"}));
  Offer({{kSmall, "MIG-d"}});
  EXPECT_TRUE(kubelet_->Sees(kSmall, {"MIG-d"}));
  EXPECT_TRUE(kubelet_->Sees(kLarge, {}));
  EXPECT_EQ(kubelet_->registrations(), 2);  // one per resource: the streams stay open
}

TEST_F(DevicePluginServerTest, HandsOverByEnvironment) {
  StartBoth();
  Offer({{kSmall, "MIG-a"}, {kSmall, "MIG-b"}});
  const auto answer = kubelet_->Allocate(kSmallSocket, {"MIG-a", "MIG-b"});
  ASSERT_TRUE(answer.ok()) << answer.status().message();
  const auto& container = answer->container_responses(0);
  EXPECT_EQ(container.envs().at("NVIDIA_VISIBLE_DEVICES"), "MIG-a,MIG-b");
  EXPECT_EQ(container.cdi_devices_size(), 0);
}

TEST_F(DevicePluginServerTest, HandsOverByCdi) {
  kubelet_ = std::make_unique<MiniKubelet>(folder_.path());
  DevicePluginOptions options = Options();
  options.handover = Handover::kCdi;
  Start(options);
  Offer({{kSmall, "MIG-a"}});
  const auto answer = kubelet_->Allocate(kSmallSocket, {"MIG-a"});
  ASSERT_TRUE(answer.ok()) << answer.status().message();
  const auto& container = answer->container_responses(0);
  EXPECT_EQ(container.envs().size(), 0U);
  EXPECT_EQ(container.cdi_devices(0).name(), "nvidia.com/gpu=MIG-a");
}

// Devices with a grant of their own, beyond their ids.
class DevicePluginGrantTest : public DevicePluginServerTest {
 protected:
  void StartWith(Handover handover, const Result<std::optional<ContainerGrant>>& grant) {
    kubelet_ = std::make_unique<MiniKubelet>(folder_.path());
    DevicePluginOptions options = Options();
    options.handover = handover;
    options.files = [this](const std::vector<std::string>& visible) {
      EXPECT_EQ(visible, std::vector<std::string>{"GPU-a"});
      return files_;
    };
    options.grant = [this, grant](const Allocation& allocation) {
      asked_ = allocation.resource;
      return grant;
    };
    Start(std::move(options));
    Offer({{kSmall, "GPU-a::10::0"}});
  }
  static ContainerGrant Grant() { return {{"GPU-a"}, {{"CUDA_X", "1"}}, {{"/run/x", "/x", true}}}; }
  std::string asked_;
  Result<ContainerGrant> files_ = ContainerGrant();
};

TEST_F(DevicePluginGrantTest, GrantsEnvironmentAndMountsOfOwner) {
  StartWith(Handover::kEnvironment, std::optional(Grant()));
  const auto answer = kubelet_->Allocate(kSmallSocket, {"GPU-a::10::0"});
  ASSERT_TRUE(answer.ok()) << answer.status().message();
  EXPECT_EQ(asked_, kSmall);
  const auto& container = answer->container_responses(0);
  EXPECT_EQ(container.envs().at("NVIDIA_VISIBLE_DEVICES"), "GPU-a");
  EXPECT_EQ(container.envs().at("CUDA_X"), "1");
  ASSERT_EQ(container.mounts_size(), 1);
  EXPECT_EQ(container.mounts(0).host_path(), "/run/x");
  EXPECT_EQ(container.mounts(0).container_path(), "/x");
  EXPECT_TRUE(container.mounts(0).read_only());
}

TEST_F(DevicePluginGrantTest, HandsOverGrantedDevicesByCdi) {
  StartWith(Handover::kCdi, std::optional(Grant()));
  const auto answer = kubelet_->Allocate(kSmallSocket, {"GPU-a::10::0"});
  ASSERT_TRUE(answer.ok()) << answer.status().message();
  const auto& container = answer->container_responses(0);
  EXPECT_EQ(container.cdi_devices(0).name(), "nvidia.com/gpu=GPU-a");
  EXPECT_FALSE(container.envs().contains("NVIDIA_VISIBLE_DEVICES"));
  EXPECT_EQ(container.envs().at("CUDA_X"), "1");
}

TEST_F(DevicePluginGrantTest, HandsOverNodesAndFiles) {
  files_ = ContainerGrant{{}, {{"NVIDIA_VISIBLE_DEVICES", "void"}}, {}, {"/dev/nvidia0"}};
  StartWith(Handover::kNodes, std::optional(Grant()));
  const auto answer = kubelet_->Allocate(kSmallSocket, {"GPU-a::10::0"});
  ASSERT_TRUE(answer.ok()) << answer.status().message();
  const auto& container = answer->container_responses(0);
  EXPECT_EQ(container.envs().at("NVIDIA_VISIBLE_DEVICES"), "void");
  ASSERT_EQ(container.devices_size(), 1);
  EXPECT_EQ(container.devices(0).host_path(), "/dev/nvidia0");
  EXPECT_EQ(container.devices(0).container_path(), "/dev/nvidia0");
  EXPECT_EQ(container.devices(0).permissions(), "rw");
  EXPECT_EQ(container.mounts_size(), 1) << "of the owner's grant";
}

TEST_F(DevicePluginGrantTest, RefusesDevicesWithoutNodes) {
  files_ = NotFound("/proc/driver/nvidia/gpus does not list GPU-a");
  StartWith(Handover::kNodes, std::optional(Grant()));
  const auto refused = kubelet_->Allocate(kSmallSocket, {"GPU-a::10::0"});
  EXPECT_THAT(refused.status().message(), HasSubstr(files_.status().message()));
}

TEST_F(DevicePluginGrantTest, MakesIdsVisibleWithoutGrant) {
  StartWith(Handover::kEnvironment, std::optional<ContainerGrant>());
  const auto answer = kubelet_->Allocate(kSmallSocket, {"GPU-a::10::0"});
  ASSERT_TRUE(answer.ok()) << answer.status().message();
  const auto& container = answer->container_responses(0);
  EXPECT_EQ(container.envs().at("NVIDIA_VISIBLE_DEVICES"), "GPU-a::10::0");
  EXPECT_EQ(container.envs().size(), 1U);
}

TEST_F(DevicePluginGrantTest, OwnerCanRefuseAllocation) {
  const Status wrong = Invalid("shares of two GPUs cannot be one container's");
  StartWith(Handover::kEnvironment, wrong);
  const auto refused = kubelet_->Allocate(kSmallSocket, {"GPU-a::10::0"});
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.status().message(), HasSubstr(wrong.message()));
  EXPECT_EQ(plugin_->Counts().at(kSmall).refusals, 1U);
  EXPECT_EQ(plugin_->Counts().at(kSmall).allocations, 0U);
}

TEST_F(DevicePluginGrantTest, DoesNotAskOwnerForDevicesOutsideOffer) {
  StartWith(Handover::kEnvironment, std::optional(Grant()));
  EXPECT_FALSE(kubelet_->Allocate(kSmallSocket, {"GPU-a::10::1"}).ok());
  EXPECT_EQ(asked_, "");
}

TEST_F(DevicePluginServerTest, ReturnsPreferredAllocation) {
  kubelet_ = std::make_unique<MiniKubelet>(folder_.path());
  const auto call = [&](const char* method, const std::string& request) {
    return UnaryCall(folder_ / kSmallSocket, std::string("/v1beta1.DevicePlugin/") + method,
                     request, {});
  };
  const auto asks = [&] {
    v1beta1::DevicePluginOptions options;
    options.ParseFromString(call("GetDevicePluginOptions", "").value());
    return options.get_preferred_allocation_available();
  };
  v1beta1::PreferredAllocationRequest request;
  auto& container = *request.add_container_requests();
  for (const char* id : {"MIG-a", "MIG-b", "MIG-c"}) container.add_available_deviceids(id);
  container.add_must_include_deviceids("MIG-c");
  container.set_allocation_size(2);

  Start(Options());
  Offer({{kSmall, "MIG-a"}});
  EXPECT_FALSE(asks());
  EXPECT_FALSE(call("GetPreferredAllocation", request.SerializeAsString()).ok());
  plugin_.reset();

  DevicePluginOptions options = Options();
  options.prefer = [](const Choice& choice) {
    EXPECT_EQ(choice.resource, kSmall);
    EXPECT_EQ(choice.size, 2);
    return std::vector{choice.available[1], choice.must_include[0]};
  };
  Start(options);
  Offer({{kSmall, "MIG-a"}});
  EXPECT_TRUE(asks());
  v1beta1::PreferredAllocationResponse answer;
  answer.ParseFromString(call("GetPreferredAllocation", request.SerializeAsString()).value());
  ASSERT_EQ(answer.container_responses_size(), 1);
  EXPECT_THAT(answer.container_responses(0).deviceids(), testing::ElementsAre("MIG-b", "MIG-c"));
  EXPECT_FALSE(call("GetPreferredAllocation", "\xff\xff").ok());
}

TEST_F(DevicePluginServerTest, PrefersDevicesThatNobodyMayUse) {
  kubelet_ = std::make_unique<MiniKubelet>(folder_.path());
  DevicePluginOptions options = Options();
  options.prefer = [](const Choice&) { return std::vector<std::string>(); };
  Start(options);
  Offer({{kSmall, "MIG-a"}});
  plugin_->Avoid({{"MIG-a", ""}, {"MIG-b", ""}});
  const auto preferred = [&](std::vector<std::string> available, int size) {
    v1beta1::PreferredAllocationRequest request;
    auto& container = *request.add_container_requests();
    for (const std::string& id : available) container.add_available_deviceids(id);
    container.add_must_include_deviceids("MIG-a");
    container.set_allocation_size(size);
    v1beta1::PreferredAllocationResponse answer;
    answer.ParseFromString(UnaryCall(folder_ / kSmallSocket,
                                     "/v1beta1.DevicePlugin/GetPreferredAllocation",
                                     request.SerializeAsString(), {})
                               .value());
    const auto& ids = answer.container_responses(0).deviceids();
    return std::vector<std::string>(ids.begin(), ids.end());
  };
  EXPECT_THAT(preferred({"MIG-a", "MIG-b", "MIG-c"}, 2), testing::ElementsAre("MIG-a", "MIG-c"));
  EXPECT_THAT(preferred({"MIG-a", "MIG-b"}, 2), testing::IsEmpty()) << "there are no others";
}

TEST_F(DevicePluginServerTest, RefusesDeviceWhoseUserStillRuns) {
  kubelet_ = std::make_unique<MiniKubelet>(folder_.path());
  struct Cgroups final : PodCgroups {
    Result<std::map<std::string, bool>> Read() override {
      return std::map<std::string, bool>{{"runs", true}, {"ended", false}};
    }
  } cgroups;
  DevicePluginOptions options = Options();
  options.cgroups = &cgroups;
  options.in_use_patience = std::chrono::milliseconds(1);
  Start(options);
  Offer({{kSmall, "MIG-a"}, {kSmall, "MIG-b"}, {kSmall, "MIG-c"}, {kSmall, "MIG-d"}});
  plugin_->Avoid({{"MIG-a", "runs"}, {"MIG-b", "ended"}, {"MIG-c", "gone"}, {"MIG-d", ""}});
  EXPECT_FALSE(kubelet_->Allocate(kSmallSocket, {"MIG-a"}).ok());
  for (const char* id : {"MIG-b", "MIG-c", "MIG-d"}) {
    EXPECT_TRUE(kubelet_->Allocate(kSmallSocket, {id}).ok()) << id;
  }
  EXPECT_EQ(plugin_->Counts().at(kSmall).refusals, 1u);
}

TEST_F(DevicePluginServerTest, RefusesDevicesOutsideOffer) {
  StartBoth();
  Offer({{kSmall, "MIG-a"}, {kSmall, "MIG-sick", false}});
  ASSERT_TRUE(kubelet_->Allocate(kSmallSocket, {"MIG-a"}).ok());
  Offer({{kSmall, "MIG-sick", false}});
  ASSERT_TRUE(plugin_->RefuseAllocation("MIG-a"));
  for (const char* id : {"MIG-a", "MIG-sick", "MIG-unknown"}) {
    const auto refused = kubelet_->Allocate(kSmallSocket, {id});
    ASSERT_FALSE(refused.ok()) << id;
    EXPECT_THAT(refused.status().message(), HasSubstr("not offered"));
  }
  EXPECT_EQ(plugin_->Counts().at(kSmall).allocations, 1U);
  EXPECT_EQ(plugin_->Counts().at(kSmall).refusals, 3U);
}

TEST_F(DevicePluginServerTest, AllowsLateAllocationUntilRefused) {
  StartBoth();
  Offer({{kSmall, "MIG-a"}, {kSmall, "MIG-b"}});
  Offer({{kSmall, "MIG-b"}});
  ASSERT_TRUE(kubelet_->Allocate(kSmallSocket, {"MIG-a"}).ok());
  EXPECT_FALSE(plugin_->RefuseAllocation("MIG-a")) << "a pod has it";
  ASSERT_TRUE(kubelet_->Allocate(kSmallSocket, {"MIG-a"}).ok()) << "a container started again";
  EXPECT_FALSE(plugin_->RefuseAllocation("MIG-a"));
  EXPECT_TRUE(plugin_->RefuseAllocation("MIG-a")) << "the pod has ended, says the kubelet";
  EXPECT_FALSE(kubelet_->Allocate(kSmallSocket, {"MIG-a"}).ok());
  Offer({{kSmall, "MIG-a"}, {kSmall, "MIG-b"}});  // offers the destroyed and recreated device again
  EXPECT_TRUE(kubelet_->Allocate(kSmallSocket, {"MIG-a"}).ok());
}

TEST_F(DevicePluginServerTest, RefusesLateAllocationOfUnhealthyDevice) {
  StartBoth();
  Offer({{kSmall, "MIG-a"}});
  Offer({{kSmall, "MIG-a", false}});
  EXPECT_FALSE(kubelet_->Allocate(kSmallSocket, {"MIG-a"}).ok()) << "it has not left";
  Offer({});
  EXPECT_FALSE(kubelet_->Allocate(kSmallSocket, {"MIG-a"}).ok()) << "and left as a sick one";
}

TEST_F(DevicePluginServerTest, ForgetsLateAllocationOfDeviceOfferedAgain) {
  StartBoth();
  Offer({{kSmall, "MIG-a"}});
  Offer({});
  ASSERT_TRUE(kubelet_->Allocate(kSmallSocket, {"MIG-a"}).ok());
  Offer({{kSmall, "MIG-a"}});
  Offer({});
  EXPECT_TRUE(plugin_->RefuseAllocation("MIG-a"));
}

TEST_F(DevicePluginServerTest, ReportsAllocations) {
  kubelet_ = std::make_unique<MiniKubelet>(folder_.path());
  std::mutex mutex;
  std::vector<Allocation> seen;
  DevicePluginOptions options = Options();
  options.on_allocate = [&](const Allocation& allocation) {
    const std::lock_guard lock(mutex);
    seen.push_back(allocation);
  };
  Start(options);
  Offer({{kSmall, "MIG-a"}});
  ASSERT_TRUE(kubelet_->Allocate(kSmallSocket, {"MIG-a"}).ok());
  const std::lock_guard lock(mutex);
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0].resource, kSmall);
  EXPECT_EQ(seen[0].device_ids, std::vector<std::string>{"MIG-a"});
}

// Allocations race with withdrawals: every successful allocation precedes the end of its
// withdrawal.
TEST_F(DevicePluginServerTest, NeverAllocatesDeviceAfterWithdrawal) {
  StartBoth();
  Offer({{kSmall, "MIG-a"}});
  std::atomic<int> phase = 0;  // odd while the device is certainly withdrawn
  std::atomic<bool> go_on = true;
  std::atomic<int> given_late = 0;
  std::thread allocator([&] {
    while (go_on) {
      const int before = phase;
      const bool given = kubelet_->Allocate(kSmallSocket, {"MIG-a"}).ok();
      if (given && before % 2 == 1 && phase == before) ++given_late;
    }
  });
  for (int i = 0; i < 20; ++i) {
    Offer({});
    ++phase;
    EXPECT_EQ(kubelet_->List(kSmall).size(), 0U);
    ++phase;
    Offer({{kSmall, "MIG-a"}});
  }
  go_on = false;
  allocator.join();
  EXPECT_EQ(given_late, 0);
}

TEST_F(DevicePluginServerTest, RegistersWithKubeletStartedLater) {
  DevicePluginOptions options = Options();
  options.patience = std::chrono::milliseconds(20);
  Start(options);
  const Status offered = plugin_->Offer({{kSmall, "MIG-a"}});
  EXPECT_EQ(offered.code(), Code::kUnavailable);
  kubelet_ = std::make_unique<MiniKubelet>(folder_.path());
  EXPECT_TRUE(kubelet_->Sees(kSmall, {"MIG-a"}));
}

TEST_F(DevicePluginServerTest, RegistersAgainWhenTheKubeletRestarts) {
  StartBoth();
  Offer({{kSmall, "MIG-a"}});
  kubelet_.reset();
  // A starting kubelet empties its directory.
  for (const auto& file : std::filesystem::directory_iterator(folder_.path())) {
    std::filesystem::remove(file);
  }
  kubelet_ = std::make_unique<MiniKubelet>(folder_.path());
  EXPECT_TRUE(kubelet_->Sees(kSmall, {"MIG-a"}));
  EXPECT_TRUE(kubelet_->Allocate(kSmallSocket, {"MIG-a"}).ok());
}

TEST_F(DevicePluginServerTest, RegistersAgainWhenKubeletDisconnects) {
  StartBoth();
  Offer({{kSmall, "MIG-a"}});
  kubelet_->HangUp();
  Offer({{kSmall, "MIG-b"}});
  EXPECT_TRUE(kubelet_->Sees(kSmall, {"MIG-b"}));
  EXPECT_GE(kubelet_->registrations(), 2);
}

TEST_F(DevicePluginServerTest, LeavesSocketToSecondAgentUntilItEnds) {
  kubelet_ = std::make_unique<MiniKubelet>(folder_.path());
  DevicePluginOptions options = Options();
  options.patience = std::chrono::milliseconds(200);
  Start(options);
  Offer({{kSmall, "MIG-a"}});
  auto second = std::make_unique<DevicePluginServer>(Options());
  EXPECT_TRUE(second->Offer({{kSmall, "MIG-b"}}).ok());
  EXPECT_TRUE(kubelet_->Sees(kSmall, {"MIG-b"}));
  // The kubelet keeps the stream to the first one.
  const Status offered = plugin_->Offer({{kSmall, "MIG-c"}});
  EXPECT_EQ(offered.code(), Code::kUnavailable);
  EXPECT_THAT(offered.message(), HasSubstr("second agent"));
  EXPECT_FALSE(plugin_->Counts().at(kSmall).connected);
  const int before = kubelet_->registrations();
  second.reset();
  EXPECT_TRUE(kubelet_->WaitForRegistrations(before + 1));
  Offer({{kSmall, "MIG-d"}});
  EXPECT_TRUE(kubelet_->Sees(kSmall, {"MIG-d"}));
}

TEST_F(DevicePluginServerTest, ReplacesStaleSocket) {
  ListenUnix(folder_ / kSmallSocket).value();  // closed at once, the file stays
  StartBoth();
  Offer({{kSmall, "MIG-a"}});
  EXPECT_TRUE(kubelet_->Sees(kSmall, {"MIG-a"}));
}

TEST_F(DevicePluginServerTest, WaitsForPluginDirectory) {
  DevicePluginOptions options = Options();
  options.folder = folder_ / "not/yet";
  options.patience = std::chrono::milliseconds(20);
  Start(options);
  const Status offered = plugin_->Offer({{kSmall, "MIG-a"}});
  EXPECT_EQ(offered.code(), Code::kUnavailable);
  std::filesystem::create_directories(options.folder);
  kubelet_ = std::make_unique<MiniKubelet>(options.folder);
  EXPECT_TRUE(kubelet_->Sees(kSmall, {"MIG-a"}));
}

TEST_F(DevicePluginServerTest, RefusesOfferThatKubeletWouldReject) {
  StartBoth();
  Offer({{kSmall, "MIG-a"}});
  EXPECT_EQ(plugin_->Offer({{"../../etc/x", "MIG-b"}}).code(), Code::kInvalid);
  EXPECT_EQ(plugin_->Offer({{"gpu", "MIG-b"}}).code(), Code::kInvalid);
  EXPECT_EQ(plugin_->Offer({{kSmall, std::string(64, 'x')}}).code(), Code::kInvalid);
  EXPECT_TRUE(kubelet_->Allocate(kSmallSocket, {"MIG-a"}).ok());
}

TEST_F(DevicePluginServerTest, RemovesSocketsOnDestruction) {
  StartBoth();
  Offer({{kSmall, "MIG-a"}});
  EXPECT_TRUE(std::filesystem::exists(folder_ / kSmallSocket));
  plugin_.reset();
  EXPECT_FALSE(std::filesystem::exists(folder_ / kSmallSocket));
}

}  // namespace
}  // namespace nos::kubelet
