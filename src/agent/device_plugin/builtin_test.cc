#include <gmock/gmock.h>

#include <filesystem>
#include <map>

#include "agent/device_plugin/strategies.h"
#include "device/sim_gpus.h"
#include "kube/testing/fake_api.h"
#include "kube/testing/refuse.h"
#include "kubelet/testing/fake_kubelet.h"

namespace nos::agent {
namespace {

using ::testing::HasSubstr;

// Gives fields that are texts or words the values of a configuration file.
class Texts final : public ConfigFields {
 public:
  explicit Texts(std::map<std::string, std::string, std::less<>> values)
      : values_(std::move(values)) {}
  void Text(std::string_view key, std::string& value, std::string_view) override {
    if (const auto given = values_.find(key); given != values_.end()) value = given->second;
  }
  void Word(std::string_view key, std::string& value, const std::vector<std::string>&,
            std::string_view help) override {
    Text(key, value, help);
  }
  void Group(std::string_view, FunctionRef<void()>) override {}
  void Flag(std::string_view, bool&, std::string_view) override {}
  void Number(std::string_view, int64_t&, int64_t, int64_t, std::string_view) override {}
  void Seconds(std::string_view, Duration&, Duration, Duration, std::string_view) override {}
  void Renamed(std::string_view, std::string_view) override {}
  void Retired(std::string_view, std::string_view) override {}

 private:
  std::map<std::string, std::string, std::less<>> values_;
};

Json NodeWith(const std::string& runtime) {
  return {{"kind", "Node"},
          {"metadata", {{"name", "n"}}},
          {"status",
           {{"nodeInfo", {{"containerRuntimeVersion", runtime}, {"kubeletVersion", "v1.34.2"}}}}}};
}

TEST(BuiltinPluginTest, OffersNothingByCdiThatNobodyReads) {
  std::string folder = std::filesystem::temp_directory_path() / "nos-builtin-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  kube::FakeApi api;
  api.Put(NodeWith("containerd://1.7.27"));
  device::SimGpus gpus({{gpu::Catalogue::Builtin().FindByName("A100-40GB"), ""}}, "n");
  kubelet::FakeKubelet kubelet;
  const SharingModes modes;
  const device::HostFolders host{folder + "/host", "/host", folder + "/proc", folder + "/dev"};
  const ManualClock clock{Time{}};
  const auto strategy = MakeBuiltinStrategy();
  Texts texts({{"handover", "cdi"}, {"folder", folder}, {"cdiFolder", folder + "/cdi"}});
  strategy->Describe(texts);
  const auto plugin = strategy->Open({"n", api, kubelet, gpus, modes, host, clock, [] {}}, nullptr);

  const std::string message =
      "containerd://1.7.27 may ignore CDI specifications; no new pod gets a device until it is "
      "newer or devicePlugin.handover is auto";
  EXPECT_EQ(plugin->Offer({}).message(), message);
  ASSERT_TRUE(strategy->Handover());
  EXPECT_EQ(strategy->Handover()->status, "False");
  EXPECT_EQ(strategy->Handover()->reason, "SpecificationNotRead");
  EXPECT_EQ(strategy->Handover()->message, message);
  EXPECT_TRUE(std::filesystem::is_empty(folder)) << "there is no socket of a plugin";

  // The runtime was updated.
  api.Put(NodeWith("containerd://2.1.4"));
  (void)plugin->Offer({});
  ASSERT_TRUE(strategy->Handover());
  EXPECT_NE(strategy->Handover()->reason, "SpecificationNotRead");
  std::filesystem::remove_all(folder);
}

TEST(BuiltinPluginTest, ChoosesOnceItHasSeenTheNode) {
  std::string folder = std::filesystem::temp_directory_path() / "nos-builtin-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  kube::FakeApi api;
  api.Put(NodeWith("containerd://1.7.27"));
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
