// Nodes whose GPUs are shared by Nebuly's device plugin.
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "agent/loop/fixture_test.h"
#include "agent/nebuly_plugin.h"
#include "reconcile/testing/event_reasons.h"

namespace nos::agent {
namespace {

using reconcile::testing::EventReasons;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr const char* kMap = "nebuly-nvidia/nos-device-plugin-configs";

// Offers all devices that are not shares.
class OtherDevices final : public kubelet::DevicePlugin {
 public:
  Status Offer(const std::vector<kubelet::OfferedDevice>& devices) override {
    for (const auto& device : devices) EXPECT_FALSE(device.device_id.starts_with("GPU-"));
    return Status::Ok();
  }
};

class AgentNebulyTest : public AgentTest {
 protected:
  AgentNebulyTest() {
    for (int gpu = 0; gpu < 2; ++gpu) EXPECT_EQ(gpus_.DisableMig(gpu).code(), Code::kPermission);
    gpus_.Reboot();
    Label("nos.nebuly.com/gpu-partitioning", "mps");
    folder_ = std::filesystem::path(::testing::TempDir()) /
              ("nebuly-" + std::to_string(getpid()) + "-" +
               ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(Volume());
    api_.Put({{"kind", "ConfigMap"},
              {"metadata", {{"namespace", "nebuly-nvidia"}, {"name", "nos-device-plugin-configs"}}},
              {"data",
               {{"default", "version: v1\n"},
                {"gpu-10_0123456789abcdef", "another's: ["},
                {"gpu-10-1700000000", "another's"}}}});
    api_.Put({{"kind", "Pod"},
              {"metadata",
               {{"namespace", "nebuly-nvidia"}, {"name", "plugin-x"}, {"uid", "plugin-uid"}}},
              {"spec", {{"nodeName", kNode}}},
              {"status", {{"phase", "Running"}}}});
    api_.intercept = [this](const kube::ApiRequest& request) { return Before(request); };
    Start();
  }
  ~AgentNebulyTest() override {
    runner_.reset();
    agent_.reset();
    std::filesystem::remove_all(folder_);
  }

  // Starts a new agent, which knows no shares.
  void Start() {
    runner_.reset();
    const auto offered = [this]() -> Result<std::vector<std::string>> {
      std::vector<std::string> ids;
      for (const auto& device : kubelet_.offer()) ids.push_back(device.device_id);
      return ids;
    };
    shares_ = std::make_unique<device::NebulyGpus>(gpus_, device::MpsGpusOptions(), offered);
    NebulyPluginOptions options;
    options.config_map.node = kNode;
    options.pods_folder = folder_;
    plugin_ = std::make_unique<NebulyPlugin>(
        options, others_, api_, kubelet_, *shares_, [this] { return shares_->ListGpus(); }, clock_);
    AgentExtras extras;
    extras.health = &health_;
    extras.metrics = &metrics_;
    extras.modes = AllSharingModes({.mps = true});
    extras.rules = plugin_.get();
    agent_ = std::make_unique<Agent>(config_, kNode, gpu::Catalogue::Builtin(), *shares_, kubelet_,
                                     *plugin_, extras);
    runner_ = std::make_unique<reconcile::Runner>(*agent_, api_, reconcile::ForNode(kNode));
  }

  std::filesystem::path Volume() const {
    return folder_ / "plugin-uid/volumes/kubernetes.io~configmap/available-configs";
  }
  void Label(const std::string& key, const std::string& value) {
    Json node = *api_.Find("nodes", kNode);
    MakeObject(node, "metadata", "labels")[key] = value;
    api_.Put(node);
  }
  std::string Label(const std::string& key) {
    return std::string(FindString(*api_.Find("nodes", kNode), "metadata", "labels", key));
  }
  std::string ConfigLabel() { return Label(std::string(kNebulyLabel)); }
  std::map<std::string, std::string> Texts() {
    std::map<std::string, std::string> texts;
    const Json map = *api_.Find("configmaps", kMap);
    for (const auto& [key, text] : map.at("data").as_object()) {
      texts[std::string(key)] = std::string(nos::View(text.as_string()));
    }
    return texts;
  }
  void SetText(const std::string& key, const std::string& text) {
    Json map = *api_.Find("configmaps", kMap);
    MakeObject(map, "data")[key] = text;
    api_.Put(map);
  }
  // The plugin has read this configuration already. Returns its key.
  std::string StartWith(const std::string& text) {
    const std::string key = "gpu-1-1700000001";
    SetText(key, text);
    std::ofstream(Volume() / key) << text;
    Label(std::string(kNebulyLabel), key);
    Plugin();
    return key;
  }
  // The keys of this node.
  std::vector<std::string> Keys() {
    std::vector<std::string> keys;
    const auto texts = Texts();
    for (const auto& [key, text] : texts) {
      if (IsNebulyKeyOf(kNode, key)) keys.push_back(key);
    }
    return keys;
  }
  std::string Uuid(int gpu) { return gpus_.ListGpus()->at(static_cast<size_t>(gpu)).uuid; }

  // Kubelet and plugin act before each request. (The fake API server does not support label
  // selectors.)
  std::optional<Result<kube::ApiResponse>> Before(const kube::ApiRequest& request) {
    Sync();
    Plugin();
    if (request.Query("labelSelector").empty()) return std::nullopt;
    JsonArray items;
    if (const Json* pod = api_.Find("pods", "nebuly-nvidia/plugin-x")) items.push_back(*pod);
    return kube::ApiResponse{
        200, {{"metadata", {{"resourceVersion", "1"}}}, {"items", std::move(items)}}};
  }
  // The kubelet updates files in the plugin's pod when the pod's annotation changes.
  void Sync() {
    const Json* pod = api_.Find("pods", "nebuly-nvidia/plugin-x");
    if (pod == nullptr || !syncs_) return;
    const std::string_view reminder =
        FindString(*pod, "metadata", "annotations", "nos.nebuly.com/device-plugin-config");
    if (reminder == synced_) return;
    synced_ = reminder;
    for (const auto& entry : std::filesystem::directory_iterator(Volume())) {
      std::filesystem::remove(entry.path());
    }
    const auto texts = Texts();
    for (const auto& [key, text] : texts) std::ofstream(Volume() / key) << text;
  }
  // The plugin's config-manager reads the file that the label names when the label changes.
  void Plugin() {
    const std::string label = ConfigLabel();
    if (!runs_ || label == read_) return;
    read_ = label;
    std::vector<kubelet::OfferedDevice> offer;
    if (!label.empty()) {
      std::ifstream file(Volume() / label);
      if (!file) ++crashes_;
      const std::string text{std::istreambuf_iterator<char>(file), {}};
      const auto shares = ReadNebulyConfig(text, {{0, Uuid(0)}, {1, Uuid(1)}});
      if (!shares.ok()) ++crashes_;
      const NebulyShares all = shares.value_or({});
      std::map<std::string, int> gib;
      for (const auto& [share, count] : all) gib[share.first] += share.second * count;
      for (const auto& [gpu, sum] : gib) EXPECT_LE(sum, 39) << "more than the GPU has";
      for (const auto& [share, count] : all) {
        for (int i = 0; i < count; ++i) {
          offer.push_back({"nvidia.com/gpu-" + std::to_string(share.second) + "gb",
                           device::MpsShareId({share.first, share.second, i})});
        }
      }
    }
    ++restarts_;
    EXPECT_TRUE(kubelet_.Offer(kubelet::SortedOffer(offer)).ok());
  }

  void Hold(const std::string& pod, const std::string& size, const std::string& number) {
    AgentTest::Hold(pod, "gpu-" + size + "gb", Uuid(0) + "::" + size + "::" + number);
  }
  size_t WritesTo(const std::string& what) {
    return static_cast<size_t>(std::ranges::count_if(api_.writes, [&](const auto& request) {
      return request.path.find(what) != std::string::npos;
    }));
  }

  std::filesystem::path folder_;
  OtherDevices others_;
  std::unique_ptr<device::NebulyGpus> shares_;
  std::unique_ptr<NebulyPlugin> plugin_;
  bool syncs_ = true, runs_ = true;
  std::string synced_, read_;
  int crashes_ = 0, restarts_ = 0;
};

TEST_F(AgentNebulyTest, PlanBecomesConfigMapKeyAndNodeLabel) {
  Run();
  EXPECT_THAT(Keys(), IsEmpty()) << "no shares are planned yet";
  EXPECT_EQ(Annotation("status-model-0"), "MPS-39GB");
  Apply("7", {{0, "10gb@0,10gb@1,19gb@2"}}, seconds(30));
  ASSERT_EQ(Keys().size(), 1u);
  EXPECT_EQ(ConfigLabel(), Keys().front());
  EXPECT_EQ(Texts()[ConfigLabel()], WriteNebulyConfig({{{Uuid(0), 10}, 2}, {{Uuid(0), 19}, 1}}));
  EXPECT_TRUE(kubelet_.Offers(Uuid(0) + "::19::0"));
  EXPECT_EQ(Annotation("status-layout-0"), "10gb@0:free,10gb@1:free,19gb@2:free");
  EXPECT_EQ(Annotation("status-gpu-0-10gb-free"), "2");
  EXPECT_EQ(Annotation("status-partitioning-plan"), "7");
  EXPECT_EQ(crashes_, 0);
  EXPECT_EQ(restarts_, 1) << "one restart for the whole plan";
}

TEST_F(AgentNebulyTest, RemovesOldKeysOfThisNodeOnly) {
  SetText("gpu-1-1699999999", "version: v1");
  Apply("7", {{0, "10gb@0"}}, seconds(30));
  const std::string first = ConfigLabel();
  Apply("8", {{0, "20gb@0"}});
  EXPECT_NE(ConfigLabel(), first);
  EXPECT_THAT(Keys(), ::testing::ElementsAre(ConfigLabel()));
  EXPECT_TRUE(Texts().contains("default"));
  EXPECT_EQ(Texts()["gpu-10_0123456789abcdef"], "another's: [");
  EXPECT_TRUE(Texts().contains("gpu-10-1700000000"));
  EXPECT_EQ(crashes_, 0);
}

TEST_F(AgentNebulyTest, KeepsSharesThatPodsHold) {
  Apply("7", {{0, "10gb@0,20gb@1"}}, seconds(30));
  Hold("a", "10", "0");
  Apply("8", {{0, "15gb@2,12gb@3"}});
  EXPECT_EQ(Texts()[ConfigLabel()],
            WriteNebulyConfig({{{Uuid(0), 10}, 1}, {{Uuid(0), 12}, 1}, {{Uuid(0), 15}, 1}}));
  EXPECT_EQ(Annotation("status-holders-0"), "10gb@0=ml/a");
  EXPECT_THAT(Annotation("status-layout-0"), HasSubstr("10gb@0:used"));
  EXPECT_TRUE(kubelet_.Offers(Uuid(0) + "::10::0"));
}

// The plugin can only remove the highest numbers.
TEST_F(AgentNebulyTest, KeepsSharesNumberedBelowAHeldOne) {
  Apply("7", {{0, "10gb@0,10gb@1,10gb@2"}}, seconds(30));
  Hold("a", "10", "1");
  Apply("8", {{0, "10gb@1,29gb@3"}});
  EXPECT_EQ(Texts()[ConfigLabel()], WriteNebulyConfig({{{Uuid(0), 10}, 2}}));
  EXPECT_THAT(Annotation("partitioning-result"), HasSubstr("29gb"));
  End("a");
  Run(seconds(120));
  EXPECT_EQ(Texts()[ConfigLabel()], WriteNebulyConfig({{{Uuid(0), 10}, 1}, {{Uuid(0), 29}, 1}}));
}

TEST_F(AgentNebulyTest, AcknowledgesPlanOnceKubeletOffersShares) {
  Run();
  runs_ = false;
  Apply("7", {{0, "10gb@0"}});
  EXPECT_FALSE(ConfigLabel().empty());
  EXPECT_EQ(Annotation("status-layout-0"), "");
  EXPECT_NE(Annotation("status-partitioning-plan"), "7");
  EXPECT_THAT(Events(), Not(HasSubstr("DevicesNotOffered")));
  Run(seconds(240));
  EXPECT_THAT(EventReasons(api_), Contains("DevicesNotOffered gpu-1"));
  EXPECT_THAT(Events(), AllOf(HasSubstr(ConfigLabel()), HasSubstr("plugin-x")));
  runs_ = true;
  Run(seconds(60));
  EXPECT_EQ(Annotation("status-layout-0"), "10gb@0:free");
  EXPECT_EQ(Annotation("status-partitioning-plan"), "7");
}

TEST_F(AgentNebulyTest, SetsLabelOnlyAfterFileExistsInPluginPod) {
  Run();
  syncs_ = false;
  Apply("7", {{0, "10gb@0"}}, seconds(100));
  EXPECT_EQ(Keys().size(), 1u);
  EXPECT_EQ(ConfigLabel(), "");
  Run(seconds(240));
  EXPECT_EQ(ConfigLabel(), "") << "the file is known to be missing";
  EXPECT_THAT(EventReasons(api_), Contains("DevicesNotOffered gpu-1"));
  syncs_ = true;
  Run(seconds(60));
  EXPECT_EQ(Annotation("status-partitioning-plan"), "7");
  EXPECT_EQ(crashes_, 0);
}

TEST_F(AgentNebulyTest, SetsLabelAfterDelayIfPluginFilesAreNotVisible) {
  Run();
  std::filesystem::remove_all(folder_);
  syncs_ = runs_ = false;
  Apply("7", {{0, "10gb@0"}}, seconds(100));
  EXPECT_EQ(ConfigLabel(), "");
  Run(seconds(60));
  EXPECT_EQ(ConfigLabel(), Keys().at(0));
}

TEST_F(AgentNebulyTest, NothingIsWrittenWhenNothingChanges) {
  Apply("7", {{0, "10gb@0"}, {1, "5gb@0"}});
  const size_t maps = WritesTo("configmaps"), nodes = WritesTo("nodes"), pods = WritesTo("pods/");
  const int restarts = restarts_;
  Run(std::chrono::hours(1));
  Start();
  Run(std::chrono::hours(1));
  EXPECT_EQ(WritesTo("configmaps"), maps);
  EXPECT_EQ(WritesTo("nodes"), nodes);
  EXPECT_EQ(WritesTo("pods/"), pods);
  EXPECT_EQ(restarts_, restarts);
}

TEST_F(AgentNebulyTest, KeepsUsingKeyOfGoVersion) {
  const std::string key = StartWith(
      "version: v1\nsharing: {mps: {resources: [{name: nvidia.com/gpu, rename: gpu-10gb, "
      "memoryGB: 10, replicas: 2, devices: ['0']}]}}");
  Hold("a", "10", "1");
  Run(seconds(60));
  EXPECT_EQ(ConfigLabel(), key);
  EXPECT_EQ(WritesTo("configmaps"), 0u);
  EXPECT_EQ(Annotation("status-gpu-0-10gb-free"), "1");
  EXPECT_EQ(Annotation("status-gpu-0-10gb-used"), "1");
}

// If the plugin offered 10::2 it would exceed the GPU's memory, or offer 10::1 in its place.
TEST_F(AgentNebulyTest, HeldShareThatCannotBeOfferedStillUsesMemory) {
  StartWith(WriteNebulyConfig({{{Uuid(0), 10}, 2}, {{Uuid(0), 15}, 1}}));
  Hold("a", "10", "2");
  Hold("b", "15", "0");
  Run(seconds(60));
  EXPECT_EQ(Texts()[ConfigLabel()], WriteNebulyConfig({{{Uuid(0), 10}, 1}, {{Uuid(0), 15}, 1}}));
  EXPECT_EQ(Annotation("status-gpu-0-10gb-free"), "1");
  EXPECT_EQ(Annotation("status-gpu-0-10gb-used"), "1");
  EXPECT_EQ(Annotation("status-gpu-0-15gb-used"), "1");
  const int restarts = restarts_;
  Run(std::chrono::hours(1));
  Start();
  Run(std::chrono::hours(1));
  EXPECT_EQ(restarts_, restarts);
  Plan("7", {{0, "10gb@0"}});
  End("b");
  Run(seconds(120));
  EXPECT_EQ(Texts()[ConfigLabel()], WriteNebulyConfig({{{Uuid(0), 10}, 3}})) << "now all three fit";
}

// The share is free above a gap, where the plugin cannot offer it.
TEST_F(AgentNebulyTest, ReplacesFreeShareAboveGapByOneThatCanBeOffered) {
  Apply("7", {{0, "10gb@0,10gb@1,15gb@2"}}, seconds(30));
  Hold("a", "10", "2");
  Hold("b", "15", "0");
  Run(seconds(120));
  EXPECT_EQ(Texts()[ConfigLabel()], WriteNebulyConfig({{{Uuid(0), 10}, 1}, {{Uuid(0), 15}, 1}}));
  End("a");
  Run(seconds(120));
  EXPECT_EQ(Texts()[ConfigLabel()], WriteNebulyConfig({{{Uuid(0), 10}, 2}, {{Uuid(0), 15}, 1}}));
  EXPECT_EQ(Annotation("status-gpu-0-10gb-free"), "2");
  const int restarts = restarts_;
  Run(std::chrono::hours(1));
  EXPECT_EQ(restarts_, restarts);
}

TEST_F(AgentNebulyTest, OffersSizeAgainThatCouldNotBeOfferedBefore) {
  Apply("7", {{0, "10gb@0,20gb@1"}}, seconds(30));
  Hold("a", "10", "1");
  Hold("b", "20", "0");
  Run(seconds(120));
  EXPECT_EQ(Texts()[ConfigLabel()], WriteNebulyConfig({{{Uuid(0), 20}, 1}}));
  End("a");
  Run(seconds(120));
  EXPECT_EQ(Texts()[ConfigLabel()], WriteNebulyConfig({{{Uuid(0), 10}, 1}, {{Uuid(0), 20}, 1}}));
}

// A pod may have got the share before the plugin removed it.
TEST_F(AgentNebulyTest, HeldSharesTakePrecedenceOverPlannedOnes) {
  Apply("7", {{0, "10gb@0,10gb@1,10gb@2"}}, seconds(30));
  Hold("a", "10", "2");
  Hold("b", "15", "0");
  Run(seconds(60));
  EXPECT_EQ(Texts()[ConfigLabel()], WriteNebulyConfig({{{Uuid(0), 10}, 1}, {{Uuid(0), 15}, 1}}));
  const int restarts = restarts_;
  Run(std::chrono::hours(1));
  EXPECT_EQ(restarts_, restarts);
  End("b");
  Run(seconds(120));
  EXPECT_EQ(Texts()[ConfigLabel()], WriteNebulyConfig({{{Uuid(0), 10}, 3}}));
}

// Held shares that exceed the memory stay. Once they are free they are removed, because no plan
// requests them.
TEST_F(AgentNebulyTest, RemovesFreeSharesThatExceedMemory) {
  Apply("7", {{0, "10gb@0,10gb@1,10gb@2"}}, seconds(30));
  for (const char* number : {"0", "1", "2"}) Hold(std::string("p") + number, "10", number);
  Run(seconds(60));
  for (const char* pod : {"p0", "p1"}) End(pod);
  Hold("b", "15", "0");
  Run(seconds(120));
  EXPECT_EQ(Texts()[ConfigLabel()], WriteNebulyConfig({{{Uuid(0), 10}, 1}, {{Uuid(0), 15}, 1}}));
  const int restarts = restarts_;
  Run(std::chrono::hours(1));
  EXPECT_EQ(restarts_, restarts);
}

TEST_F(AgentNebulyTest, ReplacesKeyThatWasEdited) {
  Apply("7", {{0, "10gb@0"}}, seconds(30));
  const std::string before = ConfigLabel();
  SetText(before, "rubbish: [");
  Run(std::chrono::minutes(10));
  EXPECT_NE(ConfigLabel(), before);
  EXPECT_EQ(Texts()[ConfigLabel()], WriteNebulyConfig({{{Uuid(0), 10}, 1}}));
  EXPECT_EQ(crashes_, 0);
}

TEST_F(AgentNebulyTest, RestoresRemovedLabel) {
  Apply("7", {{0, "10gb@0"}}, seconds(30));
  const std::string key = ConfigLabel();
  Label(std::string(kNebulyLabel), "");
  Run(std::chrono::minutes(10));
  EXPECT_EQ(ConfigLabel(), key);
  EXPECT_TRUE(kubelet_.Offers(Uuid(0) + "::10::0"));
}

TEST_F(AgentNebulyTest, RetriesConflictsOnConfigMap) {
  int conflicts = 0;
  api_.intercept =
      [&](const kube::ApiRequest& request) -> std::optional<Result<kube::ApiResponse>> {
    if (request.method == "PATCH" && request.path.find("configmaps") != std::string::npos &&
        conflicts < 6) {
      ++conflicts;
      return kube::ApiResponse{409, {{"kind", "Status"}, {"code", 409}, {"reason", "Conflict"}}};
    }
    return Before(request);
  };
  Apply("7", {{0, "10gb@0"}});
  EXPECT_EQ(conflicts, 6);
  EXPECT_EQ(Annotation("status-partitioning-plan"), "7");
}

TEST_F(AgentNebulyTest, PublishesMissingConfigMap) {
  api_.Remove("configmaps", kMap);
  Apply("7", {{0, "10gb@0"}}, seconds(30));
  EXPECT_THAT(EventReasons(api_), Contains("DevicesNotOffered gpu-1"));
  EXPECT_THAT(Events(), HasSubstr(kMap));
}

// In the Go version a leftover label stopped NVIDIA's plugin when it was installed later.
TEST_F(AgentNebulyTest, RemovesLabelAndKeysWhenNodeLeavesMps) {
  Apply("7", {{0, "10gb@0"}}, seconds(30));
  Hold("a", "10", "0");
  Label("nos.nebuly.com/gpu-partitioning", "none");
  Run(seconds(120));
  EXPECT_EQ(ConfigLabel(), Keys().at(0)) << "a pod holds a share";
  End("a");
  Run(std::chrono::minutes(10));
  EXPECT_EQ(ConfigLabel(), "");
  EXPECT_THAT(Keys(), IsEmpty());
  EXPECT_TRUE(Texts().contains("default"));
}

TEST_F(AgentNebulyTest, CreatesNoSharesOnGpuThatAPodHoldsWhole) {
  Run();
  AgentTest::Hold("whole", "gpu", Uuid(0));
  Apply("7", {{0, "10gb@0"}, {1, "5gb@0"}});
  EXPECT_EQ(Texts()[ConfigLabel()], WriteNebulyConfig({{{Uuid(1), 5}, 1}}));
  EXPECT_THAT(Obstacles(), Contains("InUse"));
}

}  // namespace
}  // namespace nos::agent
