#include <gmock/gmock.h>

#include <filesystem>

#include "agent/device_plugin/strategies.h"
#include "device/sim_gpus.h"
#include "kube/testing/fake_api.h"
#include "kube/testing/refuse.h"
#include "kubelet/testing/fake_kubelet.h"

namespace nos::agent {
namespace {

using ::testing::HasSubstr;

TEST(BuiltinPluginTest, ChoosesOnceItHasSeenTheNode) {
  std::string folder = std::filesystem::temp_directory_path() / "nos-builtin-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  kube::FakeApi api;
  api.Put(
      {{"kind", "Node"},
       {"metadata", {{"name", "n"}}},
       {"status",
        {{"nodeInfo",
          {{"containerRuntimeVersion", "containerd://1.7.27"}, {"kubeletVersion", "v1.34.2"}}}}}});
  device::SimGpus gpus({{gpu::Catalogue::Builtin().FindByName("A100-40GB"), ""}}, "n");
  kubelet::FakeKubelet kubelet;
  const SharingModes modes;
  const device::HostFolders host{folder + "/host", "/host", folder + "/proc", folder + "/dev"};
  const ManualClock clock{Time{}};
  const auto strategy = MakeBuiltinStrategy();
  const auto plugin = strategy->Open({"n", api, kubelet, gpus, modes, host, clock, [] {}}, nullptr);

  const auto refused =
      kube::Refuse(api, "GET", "/nodes/n", Status(Code::kUnavailable, "no answer"), 1);
  EXPECT_EQ(plugin->Offer({}).message(), "no answer");
  EXPECT_FALSE(strategy->Handover()) << "an unknown runtime is not one that ignores CDI";
  (void)plugin->Offer({});
  ASSERT_TRUE(strategy->Handover());
  EXPECT_EQ(strategy->Handover()->reason, "DriverFilesNotFound");
  EXPECT_THAT(strategy->Handover()->message, HasSubstr(folder + "/host"));
  EXPECT_EQ(*refused, 1);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace nos::agent
