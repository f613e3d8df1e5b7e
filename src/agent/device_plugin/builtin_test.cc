#include <gmock/gmock.h>

#include <filesystem>
#include <map>

#include "agent/device_plugin/strategies.h"
#include "device/sim_gpus.h"
#include "kube/testing/fake_api.h"
#include "kube/testing/refuse.h"
#include "kubelet/testing/fake_kubelet.h"
#include "kubelet/testing/fake_runtime.h"

namespace nos::agent {
namespace {

using ::testing::HasSubstr;

// Gives fields that are texts or words the values of a configuration file.
class GivenTexts final : public ConfigFields {
 public:
  explicit GivenTexts(std::map<std::string, std::string, std::less<>> values)
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
  void Decimal(std::string_view, int64_t&, int64_t, int64_t, std::string_view) override {}
  void Texts(std::string_view, std::map<std::string, std::string>&, std::string_view) override {}
  void List(std::string_view, size_t, FunctionRef<void(size_t)>, FunctionRef<void(size_t)>,
            std::string_view) override {}
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

// A node whose runtime reads CDI specifications only if it is configured to.
class BuiltinPluginTest : public ::testing::Test {
 protected:
  BuiltinPluginTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "nos-builtin-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    host_ = {folder_ + "/host", "/host", folder_ + "/proc", folder_ + "/dev"};
    api_.Put(NodeWith("containerd://1.7.27"));
  }
  ~BuiltinPluginTest() override { std::filesystem::remove_all(folder_); }
  std::unique_ptr<kubelet::DevicePlugin> Open() {
    return strategy_->Open({"n", api_, kubelet_, gpus_, modes_, host_, clock_, [] {}}, nullptr);
  }

  std::string folder_;
  device::HostFolders host_;
  kube::FakeApi api_;
  device::SimGpus gpus_{{{gpu::Catalogue::Builtin().FindByName("A100-40GB"), ""}}, "n"};
  kubelet::FakeKubelet kubelet_;
  const SharingModes modes_;
  const ManualClock clock_{Time{}};
  const std::shared_ptr<DevicePluginStrategy> strategy_ = MakeBuiltinStrategy();
};

TEST_F(BuiltinPluginTest, OffersNothingByCdiThatNobodyReads) {
  GivenTexts texts({{"handover", "cdi"}, {"folder", folder_}, {"cdiFolder", folder_ + "/cdi"}});
  strategy_->Describe(texts);
  const auto plugin = Open();

  const std::string message =
      "containerd://1.7.27 may ignore CDI specifications; no new pod gets a device until "
      "that changes, or devicePlugin.handover is auto";
  EXPECT_EQ(plugin->Offer({}).message(), message);
  ASSERT_TRUE(strategy_->Handover());
  EXPECT_EQ(strategy_->Handover()->status, "False");
  EXPECT_EQ(strategy_->Handover()->reason, "SpecificationNotRead");
  EXPECT_EQ(strategy_->Handover()->message, message);
  EXPECT_TRUE(std::filesystem::is_empty(folder_)) << "there is no socket of a plugin";

  // The runtime was updated.
  api_.Put(NodeWith("containerd://2.1.4"));
  (void)plugin->Offer({});
  ASSERT_TRUE(strategy_->Handover());
  EXPECT_NE(strategy_->Handover()->reason, "SpecificationNotRead");
}

TEST_F(BuiltinPluginTest, BelievesTheRuntimeRatherThanItsVersion) {
  const std::string socket = folder_ + "/containerd.sock";
  GivenTexts texts({{"handover", "cdi"},
                    {"folder", folder_},
                    {"cdiFolder", folder_ + "/cdi"},
                    {"runtimeSocket", socket}});
  strategy_->Describe(texts);
  kubelet::FakeRuntime runtime;
  const auto plugin = Open();

  api_.Put(NodeWith("containerd://2.1.4"));
  ASSERT_TRUE(runtime.Serve(socket, R"({"enableCDI":false})").ok());
  EXPECT_EQ(plugin->Offer({}).message(),
            "containerd://2.1.4 has CDI switched off (enable_cdi); no new pod gets a device until "
            "that changes, or devicePlugin.handover is auto");
  ASSERT_TRUE(strategy_->Handover());
  EXPECT_EQ(strategy_->Handover()->reason, "SpecificationNotRead");

  // An administrator has enabled it in an older one.
  api_.Put(NodeWith("containerd://1.7.27"));
  ASSERT_TRUE(runtime.Serve(socket, R"({"enableCDI":true})").ok());
  (void)plugin->Offer({});
  ASSERT_TRUE(strategy_->Handover());
  EXPECT_NE(strategy_->Handover()->reason, "SpecificationNotRead");
}

TEST_F(BuiltinPluginTest, ChoosesOnceItHasSeenTheNode) {
  const auto plugin = Open();

  const auto refused =
      kube::Refuse(api_, "GET", "/nodes/n", Status(Code::kUnavailable, "no answer"), 1);
  EXPECT_EQ(plugin->Offer({}).message(), "no answer");
  EXPECT_FALSE(strategy_->Handover()) << "an unknown runtime is not one that ignores CDI";
  (void)plugin->Offer({});
  ASSERT_TRUE(strategy_->Handover());
  EXPECT_EQ(strategy_->Handover()->reason, "DriverFilesNotFound");
  EXPECT_THAT(strategy_->Handover()->message, HasSubstr(folder_ + "/host"));
  EXPECT_EQ(*refused, 1);
}

}  // namespace
}  // namespace nos::agent
