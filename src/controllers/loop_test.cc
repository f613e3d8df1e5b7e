// Partitioner, scheduler and agents together, from pending to running pods, with crashes, lost
// answers and device errors. The full virtual cluster is in sim/world; this is the smallest one
// with a complete control loop.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "agent/node_agent.h"
#include "base/random.h"
#include "controllers/partitioner.h"
#include "controllers/scheduler.h"
#include "device/sim_gpus.h"
#include "kube/testing/fake_api.h"
#include "kubelet/testing/fake_kubelet.h"
#include "reconcile/runner.h"
#include "scheduling/framework.h"

namespace nos::controllers {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

const gpu::Catalogue& Models() { return gpu::Catalogue::Builtin(); }

struct Machine {
  std::string name;
  std::unique_ptr<kubelet::FakeKubelet> kubelet = std::make_unique<kubelet::FakeKubelet>();
  std::unique_ptr<device::SimGpus> gpus;
  std::unique_ptr<agent::Agent> agent;
  std::unique_ptr<reconcile::Runner> runner;
  Time busy_until{};
};

class World {
 public:
  explicit World(uint64_t seed) : random_(seed) {
    for (int i = 0; i < 3; ++i) AddMachine("gpu-" + std::to_string(i));
    api_.intercept = [this](const kube::ApiRequest& request) { return Fault(request); };
    RestartPartitioner();
    RestartScheduler();
  }

  void AddPod(const std::string& profile, int count, Duration run) {
    const std::string name = "p" + std::to_string(pods_.size());
    pods_.push_back({name, "nvidia.com/mig-" + profile, count, run, std::nullopt});
    api_.Put(
        {{"kind", "Pod"},
         {"metadata",
          {{"namespace", "ml"}, {"name", name}, {"creationTimestamp", FormatTime(clock_.Now())}}},
         {"spec",
          {{"containers",
            JsonArray{
                {{"name", "main"},
                 {"resources", {{"limits", {{pods_.back().resource, std::to_string(count)}}}}}}}}}},
         {"status", {{"phase", "Pending"}}}});
  }

  void RunFor(Duration time, bool faults) {
    faults_ = faults;
    for (const Time end = clock_.Now() + time; clock_.Now() < end;) {
      Step();
      if (faults && random_.Chance(0.02)) CrashSomething();
      clock_.Advance(milliseconds(100));
    }
  }

  size_t Ended() const {
    return static_cast<size_t>(std::count_if(pods_.begin(), pods_.end(), [&](const auto& pod) {
      return Phase(pod.name) == "Succeeded";
    }));
  }
  std::string Describe() const {
    std::string all;
    for (const auto& pod : pods_) {
      if (Phase(pod.name) == "Succeeded") continue;
      all += pod.name + " " + pod.resource + " " + Phase(pod.name) + "\n";
    }
    for (const Json& node : api_.All("nodes")) all += WriteJson(node) + "\n";
    return all;
  }
  const std::vector<std::string>& violations() const { return violations_; }

 private:
  struct VirtualPod {
    std::string name, resource;
    int count = 0;
    Duration run{};
    std::optional<Time> ends;
  };

  void AddMachine(const std::string& name) {
    machines_.push_back(std::make_unique<Machine>());
    Machine& machine = *machines_.back();
    machine.name = name;
    api_.Put({{"kind", "Node"},
              {"metadata",
               {{"name", name},
                {"labels",
                 {{"nos.nebuly.com/gpu-partitioning", "mig"},
                  {"nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB"},
                  {"nvidia.com/gpu.count", "2"}}}}},
              {"status", {{"allocatable", {{"cpu", "96"}, {"pods", "110"}}}}}});
    machine.kubelet->on_offer = [this, &machine] { ReportAllocatable(machine); };
    device::SimHooks hooks;
    hooks.spend = [this, &machine](Duration d) { machine.busy_until = clock_.Now() + d; };
    hooks.fault = [this](const device::SimAttempt&) {
      if (!faults_ || !random_.Chance(0.1)) return device::SimFault::kNone;
      return static_cast<device::SimFault>(1 + random_.Below(5));
    };
    // SimHooks::held is not set: the driver refuses only while a process runs, so the agent itself
    // must not destroy instances that pods hold.
    hooks.on_destroy = [this, &machine](const device::GpuInstance& instance) {
      if (machine.kubelet->Holds(instance.uuid)) violations_.push_back(instance.uuid);
    };
    const gpu::Model* model = Models().FindByName("A100-40GB");
    machine.gpus = std::make_unique<device::SimGpus>(
        std::vector<device::SimGpuSpec>(2, {model, ""}), name, std::move(hooks));
    RestartAgent(machine);
  }
  void RestartAgent(Machine& machine) {
    machine.runner.reset();
    machine.agent =
        std::make_unique<agent::Agent>(agent::AgentConfig(), machine.name, Models(), *machine.gpus,
                                       *machine.kubelet, *machine.kubelet);
    machine.runner =
        std::make_unique<reconcile::Runner>(*machine.agent, api_, reconcile::ForNode(machine.name));
  }
  void RestartPartitioner() {
    partitioner_runner_.reset();
    partitioner_ = std::make_unique<Partitioner>(PartitionerConfig(), framework_, Models());
    partitioner_runner_ = std::make_unique<reconcile::Runner>(*partitioner_, api_);
  }
  void RestartScheduler() {
    scheduler_runner_.reset();
    scheduler_ = std::make_unique<Scheduler>(
        SchedulerConfig(), std::vector<SchedulerProfile>{{"default-scheduler", &framework_}},
        Models());
    scheduler_runner_ = std::make_unique<reconcile::Runner>(*scheduler_, api_);
  }
  void CrashSomething() {
    const uint64_t which = random_.Below(2 + machines_.size());
    if (which == 0) return RestartPartitioner();
    if (which == 1) return RestartScheduler();
    RestartAgent(*machines_[which - 2]);
  }

  // Lost requests, lost answers and conflicts.
  std::optional<Result<kube::ApiResponse>> Fault(const kube::ApiRequest& request) {
    if (!faults_ || inside_ || !random_.Chance(0.1)) return std::nullopt;
    const uint64_t kind = random_.Below(3);
    if (kind == 0 && request.method == "PATCH") {
      return kube::ApiResponse{409, {{"reason", "Conflict"}, {"message", "injected"}}};
    }
    if (kind == 1) {
      inside_ = true;
      (void)api_.Do(request);
      inside_ = false;
    }
    return Result<kube::ApiResponse>(Status(Code::kDeadline, "injected"));
  }

  void Step() {
    partitioner_runner_->Step(clock_);
    scheduler_runner_->Step(clock_);
    for (const auto& machine : machines_) {
      if (machine->busy_until <= clock_.Now()) machine->runner->Step(clock_);
    }
    for (VirtualPod& pod : pods_) RunPod(pod);
  }

  // Acts as kubelet: admits, runs and ends pods. A pod without a device becomes pending again, as
  // if its controller had replaced it.
  void RunPod(VirtualPod& pod) {
    const std::string node(FindString(*api_.Find("pods", "ml/" + pod.name), "spec", "nodeName"));
    if (node.empty() || Phase(pod.name) == "Succeeded") return;
    kubelet::FakeKubelet& kubelet =
        *(*std::find_if(machines_.begin(), machines_.end(), [&](const auto& m) {
           return m->name == node;
         }))->kubelet;
    if (!pod.ends) {
      for (int i = 0; i < pod.count; ++i) {
        if (!kubelet.Admit("ml", pod.name, pod.resource).ok()) {
          kubelet.Remove("ml", pod.name);
          ++rejected_;
          return PutBack(pod);
        }
      }
      pod.ends = clock_.Now() + pod.run;
      SetPhase(pod.name, "Running");
    } else if (*pod.ends <= clock_.Now()) {
      kubelet.Remove("ml", pod.name);
      SetPhase(pod.name, "Succeeded");
    }
  }
  void PutBack(const VirtualPod& pod) {
    Json object = *api_.Find("pods", "ml/" + pod.name);
    api_.Remove("pods", "ml/" + pod.name);
    MakeObject(object, "spec").erase("nodeName");
    MakeObject(object, "metadata").erase("uid");
    MakeObject(object, "status") = {{"phase", "Pending"}};
    api_.Put(object);
  }
  void SetPhase(const std::string& name, std::string_view phase) {
    Json object = *api_.Find("pods", "ml/" + name);
    MakeObject(object, "status")["phase"] = phase;
    api_.Put(object);
  }
  std::string Phase(const std::string& name) const {
    return std::string(FindString(*api_.Find("pods", "ml/" + name), "status", "phase"));
  }
  void ReportAllocatable(const Machine& machine) {
    Json node = *api_.Find("nodes", machine.name);
    JsonObject& allocatable = MakeObject(node, "status", "allocatable");
    for (auto& [resource, count] : allocatable) {
      if (View(count.as_string()) != "96" && resource != "pods") count = "0";
    }
    std::map<std::string, int> counts;
    for (const auto& device : machine.kubelet->offer()) ++counts[device.resource];
    for (const auto& [resource, count] : counts) allocatable[resource] = std::to_string(count);
    api_.Put(node);
  }
  static std::string_view View(const boost::json::string& text) {
    return {text.data(), text.size()};
  }

  Random random_;
  ManualClock clock_{Time(seconds(1'800'000'000))};
  kube::FakeApi api_;
  scheduling::Framework framework_ = scheduling::Framework::Default();
  std::vector<std::unique_ptr<Machine>> machines_;
  std::vector<VirtualPod> pods_;
  std::unique_ptr<Partitioner> partitioner_;
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<reconcile::Runner> partitioner_runner_, scheduler_runner_;
  std::vector<std::string> violations_;
  bool faults_ = false, inside_ = false;

 public:
  int rejected_ = 0;
};

TEST(Loop, RunsPendingPodsOnNewSlices) {
  World world(1);
  world.RunFor(seconds(2), false);
  world.AddPod("7g.40gb", 1, seconds(20));
  world.AddPod("3g.20gb", 2, seconds(20));
  for (int i = 0; i < 7; ++i) world.AddPod("1g.5gb", 1, seconds(20));
  world.RunFor(seconds(60), false);
  EXPECT_EQ(world.Ended(), 9u) << world.Describe();
  EXPECT_EQ(world.rejected_, 0);
}

TEST(Loop, RepartitionsGpusWhenDemandChanges) {
  World world(2);
  for (int i = 0; i < 42; ++i) world.AddPod("1g.5gb", 1, seconds(10));
  world.RunFor(seconds(60), false);
  for (int i = 0; i < 6; ++i) world.AddPod("7g.40gb", 1, seconds(10));
  world.RunFor(minutes(2), false);
  EXPECT_EQ(world.Ended(), 48u) << world.Describe();
  EXPECT_EQ(world.rejected_, 0);
}

TEST(Loop, RunsAllPodsAfterFaultsStop) {
  const std::vector<std::string> profiles = {"1g.5gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"};
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(seed);
    World world(seed);
    Random random(seed + 1000);
    for (int wave = 0; wave < 10; ++wave) {
      for (int i = 0; i < 4; ++i) {
        world.AddPod(profiles[random.Below(profiles.size())], 1,
                     seconds(5 + static_cast<int>(random.Below(40))));
      }
      world.RunFor(seconds(10), true);
    }
    world.RunFor(minutes(10), false);
    EXPECT_EQ(world.Ended(), 40u) << world.Describe();
    EXPECT_TRUE(world.violations().empty());
  }
}

}  // namespace
}  // namespace nos::controllers
