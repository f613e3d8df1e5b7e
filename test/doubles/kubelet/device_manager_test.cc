// Tests the pod-resources client and the device-plugin server against the kubelet's double: our
// gRPC against grpc++.

#include "doubles/kubelet/device_manager.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <future>
#include <memory>
#include <thread>

#include "kubelet/device_plugin_server.h"
#include "kubelet/pod_resources_client.h"

namespace nos::doubles {
namespace {

using kubelet::DeviceAssignment;
using kubelet::OfferedDevice;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

constexpr auto kLong = std::chrono::seconds(20);  // only reached by a failing test
constexpr const char* kSmall = "nvidia.com/mig-1g.5gb";
constexpr const char* kLarge = "nvidia.com/mig-3g.20gb";

std::vector<std::string> Lines(const std::vector<DeviceAssignment>& assignments) {
  std::vector<std::string> lines;
  lines.reserve(assignments.size());
  for (const DeviceAssignment& a : assignments) {
    lines.push_back(a.ns + "/" + a.pod + "/" + a.container + " " + a.resource + " " + a.device_id);
  }
  return lines;
}

class KubeletDoubleTest : public testing::Test {
 protected:
  KubeletDoubleTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "nos-double-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    options_ = {.plugins = folder_ / "device-plugins",
                .pod_resources = folder_ / "pod-resources" / "kubelet.sock"};
  }
  ~KubeletDoubleTest() override {
    plugin_.reset();
    kubelet_.reset();
    std::filesystem::remove_all(folder_);
  }

  void StartKubelet(KubeletFaults faults = {}) {
    kubelet_ = std::make_unique<KubeletDouble>(options_, std::move(faults));
  }
  void StartPlugin(Duration patience = kLong) {
    kubelet::DevicePluginOptions options;
    options.folder = options_.plugins;
    options.patience = patience;
    options.pauses.base = std::chrono::milliseconds(5);
    plugin_ = std::make_unique<kubelet::DevicePluginServer>(options);
  }
  kubelet::PodResourcesClient Client() const { return ClientWith({}); }
  kubelet::PodResourcesClient ClientWith(kubelet::PodResourcesOptions options) const {
    options.socket = options_.pod_resources;
    return kubelet::PodResourcesClient(options);
  }
  void Offer(const std::vector<OfferedDevice>& devices) {
    const Status offered = plugin_->Offer(devices);
    EXPECT_TRUE(offered.ok()) << offered.message();
  }
  std::vector<std::string> Held() {
    const auto held = Client().List();
    EXPECT_TRUE(held.ok()) << held.status().message();
    return held.ok() ? Lines(*held) : std::vector<std::string>{};
  }
  bool Counts(const std::string& resource, ResourceCount count) {
    return kubelet_->WaitFor(kLong, [&] { return kubelet_->Resources()[resource] == count; });
  }

  std::filesystem::path folder_;
  KubeletOptions options_;
  std::unique_ptr<KubeletDouble> kubelet_;
  std::unique_ptr<kubelet::DevicePluginServer> plugin_;
};

TEST_F(KubeletDoubleTest, AdmitsPodsOntoOfferedDevices) {
  StartKubelet();
  StartPlugin();
  Offer({{kSmall, "MIG-a"}, {kSmall, "MIG-b"}, {kSmall, "MIG-c", false}, {kLarge, "MIG-d"}});
  EXPECT_TRUE(Counts(kSmall, {3, 2}));
  EXPECT_TRUE(Counts(kLarge, {1, 1}));
  const auto admitted = kubelet_->Admit({"team-a", "train-0"}, {{kSmall, 2}});
  ASSERT_TRUE(admitted.ok()) << admitted.status().message();
  EXPECT_THAT(admitted->envs, ElementsAre(Pair("NVIDIA_VISIBLE_DEVICES", "MIG-a,MIG-b")));
  EXPECT_THAT(Held(), ElementsAre("team-a/train-0/main nvidia.com/mig-1g.5gb MIG-a",
                                  "team-a/train-0/main nvidia.com/mig-1g.5gb MIG-b"));
  const auto allocatable = Client().Allocatable();
  ASSERT_TRUE(allocatable.ok()) << allocatable.status().message();
  EXPECT_THAT(*allocatable,
              ElementsAre(OfferedDevice{kSmall, "MIG-a"}, OfferedDevice{kSmall, "MIG-b"},
                          OfferedDevice{kLarge, "MIG-d"}));
  EXPECT_FALSE(kubelet_->Admit({"team-a", "train-1"}, {{kSmall, 1}}).ok());
  kubelet_->Remove("team-a", "train-0");
  EXPECT_TRUE(kubelet_->Admit({"team-a", "train-1"}, {{kSmall, 1}, {kLarge, 1}}).ok());
  EXPECT_EQ(Held().size(), 2U);
}

TEST_F(KubeletDoubleTest, WaitForReturnsFalseOnTimeout) {
  StartKubelet();
  EXPECT_FALSE(kubelet_->WaitFor(std::chrono::milliseconds(50),
                                 [&] { return !kubelet_->Resources().empty(); }));
}

TEST_F(KubeletDoubleTest, ServesFiftySixDevicesOfSevenResources) {
  StartKubelet();
  StartPlugin();
  std::vector<OfferedDevice> offer;
  for (int resource = 0; resource < 7; ++resource) {
    for (int device = 0; device < 8; ++device) {
      offer.push_back({"nvidia.com/mig-" + std::to_string(resource) + "g",
                       "MIG-" + std::to_string(resource) + "-" + std::to_string(device)});
    }
  }
  Offer(offer);
  for (int resource = 0; resource < 7; ++resource) {
    EXPECT_TRUE(Counts("nvidia.com/mig-" + std::to_string(resource) + "g", {8, 8}));
  }
}

TEST_F(KubeletDoubleTest, RestartedKubeletRestoresPluginAndAssignments) {
  StartKubelet();
  StartPlugin();
  Offer({{kSmall, "MIG-a"}, {kSmall, "MIG-b"}});
  ASSERT_TRUE(Counts(kSmall, {2, 2}));
  ASSERT_TRUE(kubelet_->Admit({"team-a", "train-0"}, {{kSmall, 1}}).ok());
  kubelet_->Stop();
  EXPECT_EQ(Client().List().status().code(), Code::kUnavailable);
  kubelet_->Start();
  EXPECT_TRUE(Counts(kSmall, {2, 2}));
  EXPECT_THAT(Held(), ElementsAre("team-a/train-0/main nvidia.com/mig-1g.5gb MIG-a"));
  const auto admitted = kubelet_->Admit({"team-a", "train-1"}, {{kSmall, 1}});
  ASSERT_TRUE(admitted.ok()) << admitted.status().message();
  EXPECT_THAT(admitted->ids, ElementsAre("MIG-b"));
}

TEST_F(KubeletDoubleTest, RestartedPluginServesTheSameDevices) {
  StartKubelet();
  StartPlugin();
  Offer({{kSmall, "MIG-a"}});
  ASSERT_TRUE(Counts(kSmall, {1, 1}));
  plugin_.reset();
  EXPECT_TRUE(Counts(kSmall, {1, 0}));
  EXPECT_FALSE(kubelet_->Admit({"team-a", "train-0"}, {{kSmall, 1}}).ok());
  StartPlugin();
  Offer({{kSmall, "MIG-a"}});
  EXPECT_TRUE(Counts(kSmall, {1, 1}));
  EXPECT_TRUE(kubelet_->Admit({"team-a", "train-0"}, {{kSmall, 1}}).ok());
}

TEST_F(KubeletDoubleTest, AllocatesDeviceWithdrawnDuringAdmission) {
  StartKubelet({.before_allocate = [this] { Offer({{kSmall, "MIG-b"}}); }});
  StartPlugin();
  Offer({{kSmall, "MIG-a"}});
  ASSERT_TRUE(Counts(kSmall, {1, 1}));
  const auto given = kubelet_->Admit({"team-a", "train-0"}, {{kSmall, 1}});
  EXPECT_TRUE(given.ok()) << given.status().message();
  EXPECT_FALSE(plugin_->RefuseAllocation("MIG-a"));
  EXPECT_THAT(Held(), ElementsAre("team-a/train-0/main nvidia.com/mig-1g.5gb MIG-a"));
}

TEST_F(KubeletDoubleTest, RefusesAllocationDuringAdmission) {
  StartKubelet({.before_allocate = [this] {
    Offer({{kSmall, "MIG-b"}});
    EXPECT_TRUE(plugin_->RefuseAllocation("MIG-a"));
  }});
  StartPlugin();
  Offer({{kSmall, "MIG-a"}});
  ASSERT_TRUE(Counts(kSmall, {1, 1}));
  const auto refused = kubelet_->Admit({"team-a", "train-0"}, {{kSmall, 1}});
  EXPECT_EQ(refused.status().code(), Code::kExhausted);
  EXPECT_EQ(refused.status().message(),
            "UnexpectedAdmissionError: Allocate failed due to rpc error: code = 9 desc = device "
            "MIG-a of nvidia.com/mig-1g.5gb is not offered any more: the GPU is being "
            "repartitioned anew, "
            "which is unexpected");
  EXPECT_THAT(Held(), ElementsAre());
  // The kubelet applies a list a moment after its arrival.
  EXPECT_TRUE(
      kubelet_->WaitFor(kLong, [&] { return kubelet_->HealthyDevices()[kSmall] == Ids{"MIG-b"}; }));
  EXPECT_TRUE(kubelet_->Admit({"team-a", "train-1"}, {{kSmall, 1}}).ok());
}

TEST_F(KubeletDoubleTest, OfferReachesKubeletThatRegistersSlowly) {
  std::promise<void> release;
  StartKubelet({.before_register = [until = release.get_future().share()] { until.wait(); }});
  StartPlugin(std::chrono::milliseconds(30));
  const Status offered = plugin_->Offer({{kSmall, "MIG-a"}});
  EXPECT_EQ(offered.code(), Code::kUnavailable);
  EXPECT_THAT(offered.message(), HasSubstr(kSmall));
  release.set_value();
  EXPECT_TRUE(Counts(kSmall, {1, 1}));
}

TEST_F(KubeletDoubleTest, PluginStopsWhileKubeletIsSlow) {
  options_.dial = std::chrono::milliseconds(50);  // for dialling a missing plugin
  std::promise<void> release;
  StartKubelet({.before_register = [until = release.get_future().share()] { until.wait(); }});
  StartPlugin(std::chrono::milliseconds(30));
  EXPECT_FALSE(plugin_->Offer({{kSmall, "MIG-a"}}).ok());
  plugin_.reset();  // must not hang
  release.set_value();
}

TEST_F(KubeletDoubleTest, ListTimesOutOnSlowKubelet) {
  std::promise<void> release;
  StartKubelet({.before_list = [until = release.get_future().share()] { until.wait(); }});
  const auto held = ClientWith({.timeout = std::chrono::milliseconds(30)}).List();
  EXPECT_EQ(held.status().code(), Code::kDeadline);
  release.set_value();
}

TEST_F(KubeletDoubleTest, ReportsKubeletErrorText) {
  StartKubelet({.list_code = 8});
  const auto held = Client().List();
  EXPECT_EQ(held.status().code(), Code::kExhausted);
  EXPECT_THAT(held.status().message(), HasSubstr("rate limit"));
}

TEST_F(KubeletDoubleTest, LimitsSizeOfAnswers) {
  StartKubelet({.invented_pods = 5000});
  const auto held = Client().List();
  ASSERT_TRUE(held.ok()) << held.status().message();
  EXPECT_EQ(held->size(), 5000U);
  EXPECT_EQ(ClientWith({.max_bytes = 100'000}).List().status().code(), Code::kExhausted);
}

// The double as a separate process.
class KubeletProcess {
 public:
  explicit KubeletProcess(const KubeletOptions& options) {
    std::array<int, 2> input{}, output{};
    EXPECT_EQ(pipe2(input.data(), O_CLOEXEC) + pipe2(output.data(), O_CLOEXEC), 0);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(input[0], STDIN_FILENO);
      dup2(output[1], STDOUT_FILENO);
      execl(KUBELET_DOUBLE, KUBELET_DOUBLE, options.plugins.c_str(), options.pod_resources.c_str(),
            nullptr);
      _exit(127);
    }
    close(input[0]);
    close(output[1]);
    to_ = input[1];
    from_ = output[0];
    EXPECT_EQ(ReadLine(), "ready");
  }
  ~KubeletProcess() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    close(to_);
    close(from_);
  }

  std::string Ask(const std::string& command) {
    const std::string line = command + "\n";
    EXPECT_EQ(write(to_, line.data(), line.size()), static_cast<ssize_t>(line.size()));
    return ReadLine();
  }
  bool Comes(const std::string& command, const std::string& answer) {
    const auto deadline = std::chrono::steady_clock::now() + kLong;
    while (Ask(command) != answer) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::yield();
    }
    return true;
  }

 private:
  std::string ReadLine() const {
    std::string line;
    for (char c = 0; read(from_, &c, 1) == 1 && c != '\n';) line += c;
    return line;
  }

  pid_t pid_ = -1;
  int to_ = -1;
  int from_ = -1;
};

TEST_F(KubeletDoubleTest, KilledKubeletRestoresPluginAndAssignments) {
  StartPlugin();
  const std::string whole = std::string("ok ") + kSmall + "=2/2";
  {
    std::jthread offering([this] {  // blocks until the kubelet starts
      EXPECT_TRUE(plugin_->Offer({{kSmall, "MIG-a"}, {kSmall, "MIG-b"}}).ok());
    });
    KubeletProcess kubelet(options_);
    ASSERT_TRUE(kubelet.Comes("resources", whole));
    EXPECT_EQ(kubelet.Ask(std::string("admit team-a train-0 ") + kSmall + " 1"), "ok MIG-a");
    offering.join();  // Offer() looks for itself whether the kubelet has read the list
  }
  KubeletProcess kubelet(options_);
  EXPECT_TRUE(kubelet.Comes("resources", whole));
  EXPECT_THAT(Held(), ElementsAre("team-a/train-0/main nvidia.com/mig-1g.5gb MIG-a"));
  EXPECT_EQ(kubelet.Ask(std::string("admit team-a train-1 ") + kSmall + " 1"), "ok MIG-b");
  EXPECT_EQ(kubelet.Ask("remove team-a train-0"), "ok");
  EXPECT_EQ(Held().size(), 1U);
}

}  // namespace
}  // namespace nos::doubles
