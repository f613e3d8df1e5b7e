// The life of shares: created, offered to a kubelet, allocated to a container with access to its
// daemon, and restored by the next agent.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <set>

#include "agent/mps_grant.h"
#include "agent/node_agent.h"
#include "device/mig_parts.h"
#include "device/mps_control.h"
#include "device/mps_gpus.h"
#include "device/plain_gpus.h"
#include "device/sim_gpus.h"
#include "doubles/kubelet/device_manager.h"
#include "gpu/shares.h"
#include "kubelet/device_plugin_server.h"
#include "kubelet/pod_resources_client.h"
#include "kubelet/testing/fake_kubelet.h"
#include "reconcile/testing/scene.h"

namespace nos {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::MatchesRegex;

constexpr seconds kLong{60};  // only reached by a failing test

class MpsNodeTest : public testing::Test {
 protected:
  agent::SharingModes Sharing(const std::vector<gpu::InstancePart>& parts = {}) {
    return agent::AllSharingModes(
        {.mps = true, .daemons = mps_.get(), .whole = true, .parts = parts});
  }
  MpsNodeTest() {
    std::string pattern = fs::temp_directory_path() / "nos-mps-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    kubelet_options_ = {.plugins = folder_ + "/device-plugins",
                        .pod_resources = folder_ + "/pod-resources/kubelet.sock"};
    kubelet_ = std::make_unique<doubles::KubeletDouble>(kubelet_options_);
    mps_options_.program = NOS_MPS_DOUBLE;
    mps_options_.folder = folder_ + "/pipe";
    mps_options_.log_folder = folder_ + "/log";
    mps_options_.daemon.answer_within = kLong;
    mps_options_.daemon.start_within = kLong;
    mps_options_.daemon.on_change = [this] {
      const std::scoped_lock lock(mutex_);
      changed_.notify_all();
    };
    mps_ = std::make_unique<device::MpsControl>(mps_options_, board_);
    StartPlugin();
  }
  ~MpsNodeTest() override {
    EXPECT_TRUE(mps_->Keep({}).ok());
    EXPECT_TRUE(Await([this] { return mps_->States().empty(); }));
    mps_.reset();
    plugin_.reset();
    kubelet_.reset();
    fs::remove_all(folder_);
  }

  void StartPlugin() {
    kubelet::DevicePluginOptions options;
    options.folder = kubelet_options_.plugins;
    options.patience = kLong;
    options.pauses.base = std::chrono::milliseconds(5);
    options.grant = [this](const kubelet::Allocation& allocation) {
      return agent::GrantMpsShares(
          allocation,
          {.pipe_folder = [this](const std::string& uuid) { return mps_->PipeFolder(uuid); },
           .serves = [this](const std::string& uuid) { return mps_->Serves(uuid); }});
    };
    options.prefer = agent::PreferOneGpu;
    plugin_ = std::make_unique<kubelet::DevicePluginServer>(options);
  }
  bool Await(const std::function<bool()>& done) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kLong, done);
  }
  // Like an agent: sets modes, starts daemons, then offers existing shares.
  void Share(device::MpsGpus& shares) {
    std::vector<device::MpsGpu> served;
    const std::vector<device::GpuInfo> infos = *gpus_.ListGpus();
    for (const device::GpuInfo& info : infos) {
      ASSERT_TRUE(shares.EnableMps(info.index).ok());
      served.push_back({info.index, info.uuid, shares.ListGpus()->at(0).share_gib});
    }
    ASSERT_TRUE(mps_->Keep(served).ok());
    ASSERT_TRUE(Await([&] {
      return board_.Conditions().empty() &&
             std::ranges::all_of(served, [&](const auto& gpu) { return mps_->Serves(gpu.uuid); });
    }));
  }
  void Offer(device::MpsGpus& shares) {
    std::vector<kubelet::OfferedDevice> offer;
    for (int gpu = 0; gpu < 2; ++gpu) {
      const std::vector<device::GpuInstance> instances = *shares.ListInstances(gpu);
      for (const device::GpuInstance& share : instances) {
        offer.push_back({"nvidia.com/gpu-" + share.profile, share.uuid});
      }
    }
    const Status offered = plugin_->Offer(kubelet::SortedOffer(offer));
    ASSERT_TRUE(offered.ok()) << offered.message();
    std::map<std::string, doubles::Ids> all;
    for (const kubelet::OfferedDevice& device : offer)
      all[device.resource].insert(device.device_id);
    ASSERT_TRUE(kubelet_->WaitFor(kLong, [&] {  // the kubelet applies the list later
      const auto healthy = kubelet_->HealthyDevices();
      return std::ranges::all_of(all, [&](const auto& list) {
        const auto known = healthy.find(list.first);
        return known != healthy.end() && known->second == list.second;
      });
    }));
  }
  std::vector<std::string> HeldIds() {
    kubelet::PodResourcesOptions options;
    options.socket = kubelet_options_.pod_resources;
    options.mps_shares = true;
    std::vector<std::string> ids;
    const std::vector<kubelet::DeviceAssignment> held =
        *kubelet::PodResourcesClient(options).List();
    for (const auto& assignment : held) ids.push_back(assignment.device_id);
    return ids;
  }

  const gpu::Model& model_ = *gpu::Catalogue::Builtin().FindByName("H200-141GB");
  device::SimGpus gpus_{{{&model_, "", false}, {&model_, "", false}}, "n"};
  std::string folder_;
  std::mutex mutex_;
  std::condition_variable changed_;
  device::GpuHealth board_;
  doubles::KubeletOptions kubelet_options_;
  device::MpsControlOptions mps_options_;
  std::unique_ptr<doubles::KubeletDouble> kubelet_;
  std::unique_ptr<device::MpsControl> mps_;
  std::unique_ptr<kubelet::DevicePluginServer> plugin_;
};

TEST_F(MpsNodeTest, ShareReachesItsDaemonAndIsRestored) {
  device::MpsGpus shares(gpus_);
  Share(shares);
  ASSERT_TRUE(shares.Create(0, "20gb", 3).ok());
  ASSERT_TRUE(shares.Create(1, "5gb", 0).ok());
  Offer(shares);
  auto pod = kubelet_->Admit({"team-a", "train-0"}, {{"nvidia.com/gpu-20gb", 1}});
  ASSERT_TRUE(pod.ok()) << pod.status().message();
  const std::string uuid = gpus_.ListGpus()->at(0).uuid;
  EXPECT_EQ(pod->envs["NVIDIA_VISIBLE_DEVICES"], uuid);
  EXPECT_EQ(pod->envs["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"], "0=20G");
  const std::string pipes = pod->envs["CUDA_MPS_PIPE_DIRECTORY"];
  EXPECT_EQ(pod->mounts[pipes], pipes);
  const device::MpsTool reached({mps_options_.program, uuid, pipes, folder_ + "/log", false});
  EXPECT_EQ(reached.Ask("get_default_device_pinned_mem_limit 0", kLong).value(), "140G");

  plugin_.reset();  // the next agent starts
  StartPlugin();
  device::MpsGpus again(gpus_);
  Share(again);
  EXPECT_TRUE(again.Adopt(HeldIds()).empty());
  const auto known = again.ListInstances(0);
  ASSERT_EQ(known->size(), 1u);
  EXPECT_EQ(known->front().uuid, uuid + "::20::3");
  EXPECT_EQ(again.ListInstances(1)->size(), 0u) << "free ones are made by the spec";
  EXPECT_EQ(again.DisableMps(0).code(), Code::kUnavailable);
  Offer(again);
  EXPECT_FALSE(kubelet_->Admit({"team-a", "train-1"}, {{"nvidia.com/gpu-20gb", 1}}).ok());
}

TEST_F(MpsNodeTest, AllocatesSeveralSharesOnOneGpuOnly) {
  device::MpsGpus shares(gpus_);
  Share(shares);
  for (uint8_t start = 0; start < 2; ++start) {
    ASSERT_TRUE(shares.Create(0, "10gb", start).ok());
  }
  for (const int gpu : {0, 1}) ASSERT_TRUE(shares.Create(gpu, "7gb", 2).ok());
  // Both orders of GPUs: one has a single share, which a choice without preference would
  // take.
  for (const int gpu : {0, 1}) {
    const std::string profile = gpu == 0 ? "3gb" : "4gb";
    for (uint8_t start = 3; start < 5; ++start) {
      ASSERT_TRUE(shares.Create(gpu, profile, start).ok());
    }
    ASSERT_TRUE(shares.Create(1 - gpu, profile, 5).ok());
  }
  Offer(shares);
  auto both = kubelet_->Admit({"team-a", "two"}, {{"nvidia.com/gpu-10gb", 2}});
  ASSERT_TRUE(both.ok()) << both.status().message();
  EXPECT_EQ(both->ids.size(), 2u);
  EXPECT_EQ(both->envs["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"], "0=10G");
  for (const char* resource : {"nvidia.com/gpu-3gb", "nvidia.com/gpu-4gb"}) {
    const auto together = kubelet_->Admit({"team-a", resource}, {{resource, 2}});
    EXPECT_TRUE(together.ok()) << together.status().message();
  }
  const auto apart = kubelet_->Admit({"team-a", "apart"}, {{"nvidia.com/gpu-7gb", 2}});
  EXPECT_THAT(apart.status().message(),
              MatchesRegex("UnexpectedAdmissionError: Allocate failed due to rpc error: code = 3 "
                           "desc = 2 shares of nvidia.com/gpu-7gb for one container are of GPUs "
                           "GPU-[-0-9a-f]+ and GPU-[-0-9a-f]+, and a program reaches the MPS "
                           "daemon of one GPU only: ask for one larger share, or for one share in "
                           "each of several containers, which is unexpected"));
}

// Clients depend on the daemons: a starting agent knows no share before it has asked the kubelet.
TEST_F(MpsNodeTest, StartingAgentTakesOverDaemons) {
  kube::FakeApi api;
  api.Put({{"kind", "Node"},
           {"metadata",
            {{"name", "n"}, {"labels", {{std::string(cluster::kPartitioningLabel), "mps"}}}}},
           {"status", {{"allocatable", {{"cpu", "96"}}}}}});
  kubelet::FakeKubelet kubelet;
  ManualClock clock{Time(seconds(1'000'000))};
  std::vector<pid_t> daemons;
  for (int start = 0; start < 2; ++start) {
    device::MpsGpus shares(gpus_);
    agent::Agent agent({}, "n", gpu::Catalogue::Builtin(), shares, kubelet, kubelet,
                       {&board_, nullptr, nullptr, Sharing()});
    reconcile::Runner runner(agent, api, reconcile::ForNode("n"));
    EXPECT_TRUE(reconcile::testing::RunFor(runner, clock, seconds(30)));
    ASSERT_TRUE(Await([this] {
      const auto states = mps_->States();
      return states.size() == 2 && std::ranges::all_of(states, [](const auto& state) {
               return state.phase == device::MpsState::Phase::kServing;
             });
    }));
    const auto states = mps_->States();
    for (const device::MpsState& state : states) daemons.push_back(state.pid);
    mps_ = std::make_unique<device::MpsControl>(mps_options_, board_);
  }
  EXPECT_EQ(daemons[0], daemons[2]);
  EXPECT_EQ(daemons[1], daemons[3]);
}

// The first GPU can optionally never be read.
class UnreadGpus final : public device::MpsGpus {
 public:
  UnreadGpus(device::Backend& backend, const device::MpsGpusOptions& options, bool unread)
      : MpsGpus(backend, options), unread_(unread) {}

  Result<std::vector<device::GpuInfo>> ListGpus() override {
    NOS_ASSIGN(std::vector<device::GpuInfo> infos, MpsGpus::ListGpus());
    if (!unread_) return infos;
    infos.at(0) = {};
    infos.at(0).problem = "NVML_ERROR_UNKNOWN";
    return infos;
  }

 private:
  bool unread_;
};

class RestartedAgentTest : public MpsNodeTest {
 protected:
  void PutNode(const std::string& mode, JsonObject annotations) {
    api_.Put({{"kind", "Node"},
              {"metadata",
               {{"name", "n"},
                {"labels", {{std::string(cluster::kPartitioningLabel), mode}}},
                {"annotations", std::move(annotations)}}},
              {"status", {{"allocatable", {{"cpu", "96"}}}}}});
  }
  // Runs a new agent with new daemon objects until it is idle, and again after the daemons have
  // settled.
  void RunAgent() {
    mps_ = std::make_unique<device::MpsControl>(mps_options_, board_);
    UnreadGpus shares(gpus_, share_options_, unread_first_);
    agent::Agent agent({}, "n", gpu::Catalogue::Builtin(), shares, silent_, silent_,
                       {&board_, nullptr, nullptr, Sharing()});
    reconcile::Runner runner(agent, api_, reconcile::ForNode("n"));
    for (int times = 0; times < 2; ++times) {
      EXPECT_TRUE(reconcile::testing::RunFor(runner, clock_, seconds(30)));
      results_.push_back(reconcile::testing::NodeAnnotation(api_, "n", "partitioning-result"));
      ASSERT_TRUE(Await([this] {
        const auto states = mps_->States();
        return std::ranges::all_of(states, [](const auto& state) {
          using enum device::MpsState::Phase;
          return state.phase == kServing || state.phase == kGone;
        });
      }));
    }
  }

  kube::FakeApi api_;
  kubelet::FakeKubelet silent_;
  ManualClock clock_{Time(seconds(1'000'000))};
  device::MpsGpusOptions share_options_;
  bool unread_first_ = false;
  std::vector<std::string> results_;
};

// A restarted kubelet reports no assignments for a moment.
TEST_F(RestartedAgentTest, KeepsDaemonsWhileSharesMayBeHeld) {
  PutNode("mps", {});
  RunAgent();
  ASSERT_EQ(mps_->States().size(), 2u);
  PutNode("none", {});
  api_.Put(
      {{"kind", "Pod"},
       {"metadata", {{"namespace", "ml"}, {"name", "a"}, {"uid", "a"}}},
       {"spec",
        {{"nodeName", "n"},
         {"containers", JsonArray{{{"name", "c"},
                                   {"resources", {{"limits", {{"nvidia.com/gpu-10gb", "1"}}}}}}}}}},
       {"status",
        {{"phase", "Running"},
         {"conditions", JsonArray{{{"type", "Ready"}, {"status", "True"}}}}}}});
  RunAgent();
  EXPECT_EQ(mps_->States().size(), 2u);
  api_.Remove("pods", "ml/a");
  RunAgent();
  EXPECT_EQ(mps_->States().size(), 0u);
}

// The agent does not even know the UUID of a GPU that it never read.
TEST_F(RestartedAgentTest, KeepsDaemonOfUnreadableGpu) {
  PutNode("mps", {});
  RunAgent();
  std::vector<pid_t> daemons;
  const std::vector<device::MpsState> served = mps_->States();
  for (const device::MpsState& state : served) daemons.push_back(state.pid);
  ASSERT_EQ(daemons.size(), 2u);
  unread_first_ = true;
  RunAgent();
  unread_first_ = false;
  RunAgent();
  const std::vector<device::MpsState> states = mps_->States();
  ASSERT_EQ(states.size(), 2u);
  EXPECT_EQ(states[0].pid, daemons[0]);
  EXPECT_EQ(states[1].pid, daemons[1]);
}

TEST_F(RestartedAgentTest, TakingOverDaemonsDoesNotFailPlan) {
  PutNode("mps", {{"nos.nebuly.com/spec-partitioning-plan", "1"},
                  {"nos.nebuly.com/spec-layout-0", "10gb@0"}});
  RunAgent();
  const std::string applied = R"({"plan":"1","outcome":"applied"})";
  EXPECT_EQ(results_.back(), applied);
  RunAgent();
  EXPECT_EQ(results_.back(), applied);
  EXPECT_THAT(reconcile::testing::EventsOf(api_),
              testing::Not(HasSubstr("PartitioningIncomplete")));
}

TEST_F(RestartedAgentTest, KeepsLimitOfShareLargerThanGpuCapacity) {
  const std::string uuid = gpus_.Info(0).uuid;
  silent_.Assign({"ml", "a", "c", "nvidia.com/gpu-140gb", uuid + "::140::0"});
  share_options_.overhead_mib = 16 * int64_t{1024};
  PutNode("mps", {});
  RunAgent();
  const device::MpsTool tool(
      {mps_options_.program, uuid, mps_->PipeFolder(uuid), folder_ + "/log", false});
  EXPECT_EQ(tool.Ask("get_default_device_pinned_mem_limit 0", kLong).value(), "140G");
}

// Daemons answer independently of the GPU's health.
TEST_F(RestartedAgentTest, FaultOfServedGpuFailsPlan) {
  PutNode("mps", {{"nos.nebuly.com/spec-partitioning-plan", "1"},
                  {"nos.nebuly.com/spec-layout-0", "10gb@0"}});
  RunAgent();
  board_.Add({device::HealthCondition::Kind::kXid, 0, {}, 79, "it has fallen off the bus"});
  Json node = *api_.Find("nodes", "n");
  MakeObject(node, "metadata", "annotations")["nos.nebuly.com/spec-partitioning-plan"] = "2";
  MakeObject(node, "metadata", "annotations")["nos.nebuly.com/spec-layout-0"] = "20gb@0";
  api_.Put(node);
  RunAgent();
  EXPECT_THAT(results_.back(), HasSubstr("GpuUnhealthy"));
}

// While its daemon ends, the GPU has a condition, and no target.
TEST_F(RestartedAgentTest, SwitchToMigEndsDaemonOnce) {
  device::MpsGpus shares(gpus_);
  device::PlainGpus all(shares);
  agent::AgentExtras extras{&board_};
  extras.modes = Sharing();
  PutNode("hybrid", {{"nos.nebuly.com/spec-partitioning-plan", "1"},
                     {"nos.nebuly.com/spec-layout-0", "10gb@0"}});
  agent::Agent agent({}, "n", gpu::Catalogue::Builtin(), all, silent_, silent_, extras);
  reconcile::Runner runner(agent, api_, reconcile::ForNode("n"));
  const auto run = [&](device::MpsState::Phase phase) {
    EXPECT_TRUE(reconcile::testing::RunFor(runner, clock_, seconds(60)));
    ASSERT_TRUE(Await([&] {
      const auto states = mps_->States();
      return std::ranges::all_of(states, [&](const auto& one) { return one.phase == phase; });
    }));
  };
  using enum device::MpsState::Phase;
  for (int times = 0; times < 3; ++times) run(kServing);
  ASSERT_EQ(mps_->States().size(), 1U);
  const std::string uuid = mps_->States()[0].gpu_uuid;

  PutNode("hybrid", {{"nos.nebuly.com/spec-partitioning-plan", "2"},
                     {"nos.nebuly.com/spec-layout-0", "1g.18gb@6"}});
  run(kLeaving);
  for (int times = 0; times < 3; ++times) run(kServing);  // or there is none
  EXPECT_EQ(mps_->States().size(), 0U);
  ASSERT_EQ(gpus_.Truth(0).size(), 1U);
  EXPECT_EQ(gpus_.Truth(0)[0].profile, "1g.18gb");
  EXPECT_EQ(reconcile::testing::NodeAnnotation(api_, "n", "partitioning-result"),
            R"({"plan":"2","outcome":"applied"})");
  EXPECT_THAT(reconcile::testing::EventsOf(api_),
              testing::Not(HasSubstr("PartitioningIncomplete")));
  std::ifstream file(folder_ + "/log/" + uuid + "/control.log");
  const std::string start =
      "] Starting control daemon using socket " + mps_->PipeFolder(uuid) + "/control";
  int starts = 0;
  for (std::string line; std::getline(file, line);) starts += line.ends_with(start) ? 1 : 0;
  EXPECT_EQ(starts, 1);
}

// No part is allocated before its daemon serves, and the instance is destroyed only after the
// daemon has ended.
TEST_F(RestartedAgentTest, ServesDividedInstanceFromFirstToLastPart) {
  const std::vector<gpu::InstancePart> divided = {{"3g.71gb", 2}};
  device::MigParts parts(gpus_, gpu::Catalogue::Builtin(), divided);
  device::MpsGpus shares(parts);
  device::PlainGpus all(shares);
  agent::AgentExtras extras{&board_};
  extras.modes = Sharing(divided);
  PutNode("hybrid", {{"nos.nebuly.com/spec-partitioning-plan", "1"},
                     {"nos.nebuly.com/spec-layout-0", "3g.71gb.mps2@5"}});
  agent::Agent agent({}, "n", gpu::Catalogue::Builtin(), all, silent_, silent_, extras);
  reconcile::Runner runner(agent, api_, reconcile::ForNode("n"));
  std::set<std::string> healthy;  // devices offered as healthy before a daemon served
  silent_.on_offer = [&] {
    const auto states = mps_->States();
    const bool served = std::ranges::any_of(
        states, [](const auto& state) { return state.phase == device::MpsState::Phase::kServing; });
    for (const kubelet::OfferedDevice& device : silent_.offer()) {
      if (!served && device.healthy && device::ParseMigPartId(device.device_id)) {
        healthy.insert(device.device_id);
      }
    }
  };
  const auto run = [&] {
    for (int times = 0; times < 3; ++times) {
      EXPECT_TRUE(reconcile::testing::RunFor(runner, clock_, seconds(60)));
      ASSERT_TRUE(Await([this] {
        const auto states = mps_->States();
        return std::ranges::all_of(states, [](const auto& state) {
          return state.phase == device::MpsState::Phase::kServing;
        });
      }));
    }
  };
  run();
  ASSERT_EQ(gpus_.Truth(0).size(), 1U);
  const std::string mig = gpus_.Truth(0)[0].uuid;
  ASSERT_EQ(mps_->States().size(), 1U);
  EXPECT_EQ(mps_->States()[0].gpu_uuid, mig);
  const int memory = model_.profile(*model_.FindProfile("3g.71gb")).memory_mib;
  EXPECT_EQ(mps_->LimitMib(mig), (memory - gpu::kShareOverheadMib) / 2);
  EXPECT_TRUE(silent_.Offers(mig + "::mps2::1"));
  EXPECT_TRUE(silent_.offer().front().healthy);
  EXPECT_THAT(healthy, testing::IsEmpty());

  PutNode("hybrid", {{"nos.nebuly.com/spec-partitioning-plan", "2"},
                     {"nos.nebuly.com/spec-layout-0", "1g.18gb@6"}});
  run();
  EXPECT_EQ(mps_->States().size(), 0U);
  ASSERT_EQ(gpus_.Truth(0).size(), 1U);
  EXPECT_EQ(gpus_.Truth(0)[0].profile, "1g.18gb");
}

}  // namespace
}  // namespace nos
