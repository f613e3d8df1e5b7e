// A node with two A100-40GB, its kubelet, and an agent that may crash at any time.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "device/sim_gpus.h"
#include "kube/testing/fake_api.h"
#include "kubelet/testing/fake_kubelet.h"
#include "reconcile/node_write.h"
#include "reconcile/plan_result.h"
#include "reconcile/runner.h"
#include "reconcile/testing/event_texts.h"
#include "reconcile/testing/scene.h"

#include "agent/node_agent.h"

namespace nos::agent {

using std::chrono::milliseconds;
using std::chrono::seconds;

inline constexpr const char* kNode = "gpu-1";

inline Json BoundPod(const std::string& name, const std::string& uid, JsonArray init,
                     JsonArray containers) {
  return {{"kind", "Pod"},
          {"metadata", {{"namespace", "ml"}, {"name", name}, {"uid", uid}}},
          {"spec",
           {{"nodeName", kNode},
            {"initContainers", std::move(init)},
            {"containers", std::move(containers)}}},
          {"status", {{"phase", "Pending"}}}};
}

inline Json Asking(const std::string& name, const std::string& n) {
  return {{"name", name}, {"resources", {{"limits", {{"nvidia.com/mig-1g.5gb", n}}}}}};
}

struct FakeCgroups final : kubelet::PodCgroups {
  Result<std::map<std::string, bool>> Read() override { return pods; }
  Result<std::map<std::string, bool>> pods = Status(Code::kNotFound, "not to be seen");
};

class AgentTest : public ::testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(reconcile::testing::EventsWithoutVerb(api_), ""); }
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
    // No SimHooks::held: the driver refuses only while a process runs, so the agent itself must be
    // careful.
    hooks.on_destroy = [this](const device::GpuInstance& instance) {
      ++destroyed_;
      EXPECT_FALSE(kubelet_.Holds(instance.uuid)) << "destroyed a used instance";
      EXPECT_FALSE(expect_withdrawn_ && kubelet_.Offers(instance.uuid))
          << "destroyed an offered instance";
    };
    return hooks;
  }

  void Restart() { Restart(gpus_); }
  void Restart(device::Backend& gpus, const SharingOptions& sharing = {}) {
    AgentExtras extras{&health_, &metrics_};
    extras.modes = AllSharingModes(sharing);
    extras.handover = [this] { return handover_; };
    extras.cgroups = &cgroups_;
    runner_.reset();
    agent_ = std::make_unique<Agent>(config_, kNode, *catalogue_, gpus, kubelet_, kubelet_, extras);
    runner_ = std::make_unique<reconcile::Runner>(*agent_, api_, reconcile::ForNode(kNode));
  }

  void ReportAllocatable() {
    std::map<std::string, int> counts = {{"nvidia.com/mig-1g.5gb", 0},
                                         {"nvidia.com/mig-7g.40gb", 0}};
    for (const auto& device : kubelet_.offer()) counts[device.resource] += device.healthy ? 1 : 0;
    reconcile::testing::PutAllocatable(api_, kNode, counts);
  }

  // Runs the agent for this time.
  void Run(Duration time = seconds(30)) {
    EXPECT_TRUE(reconcile::testing::RunFor(*runner_, clock_, time))
        << "the agent does not come to rest";
  }

  // Sets the requested partitioning of the node's GPUs.
  void Label(const std::string& mode) {
    Json node = *api_.Find("nodes", kNode);
    MakeObject(node, "metadata", "labels")["nos.nebuly.com/gpu-partitioning"] = mode;
    api_.Put(node);
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
  // Runs the agent for this time after the plan.
  void Apply(const std::string& id, const std::map<int, std::string>& layouts,
             Duration time = seconds(60)) {
    Plan(id, layouts);
    Run(time);
  }
  // Plans, pods and restarts of the agent at random. No device that a pod holds disappears. A pod
  // may get the devices for which `may_get` is true.
  void RunAtRandom(Random& random, uint64_t seed, const std::vector<std::string>& layouts,
                   const std::function<bool(const kubelet::OfferedDevice&)>& may_get,
                   const std::function<void()>& restart) {
    const auto layout = [&] { return layouts[random.Below(layouts.size())]; };
    std::map<std::string, std::string> held;  // pod -> device
    for (int step = 0; step < 6; ++step) {
      Apply(std::to_string(1000 * (seed + 1) + static_cast<uint64_t>(step)),
            {{0, layout()}, {1, layout()}}, milliseconds(random.Below(40'000)));
      for (const auto& device : kubelet_.offer()) {
        const bool taken = std::ranges::any_of(
            held, [&](const auto& entry) { return entry.second == device.device_id; });
        if (taken || !may_get(device) || !random.Chance(0.35)) continue;
        const std::string pod = "p" + std::to_string(step) + "-" + std::to_string(held.size());
        held[pod] = device.device_id;
        Hold(pod, device.resource.substr(std::string("nvidia.com/").size()), device.device_id);
      }
      if (random.Chance(0.3)) restart();
      Run(milliseconds(random.Below(20'000)));
      for (const auto& [pod, device] : held) {
        ASSERT_TRUE(kubelet_.Offers(device)) << device << " of " << pod << " disappeared";
      }
      std::erase_if(held, [&](const auto& entry) {
        const bool ends = random.Chance(0.5);
        if (ends) End(entry.first);
        return ends;
      });
    }
    for (const auto& [pod, device] : held) End(pod);
  }
  // Codes of what kept the agent from carrying out its last plan.
  std::vector<std::string> Obstacles() {
    std::vector<std::string> codes;
    const auto result = reconcile::ReadPlanResult(Annotation("partitioning-result"));
    if (!result.ok()) return {"no result"};
    for (const gpu::Obstacle& obstacle : result->obstacles) codes.push_back(obstacle.code);
    return codes;
  }
  // The layouts that the node reports.
  std::vector<std::string> Layouts() {
    return {Annotation("status-layout-0"), Annotation("status-layout-1")};
  }
  int CountEvents(std::string_view reason) { return reconcile::testing::CountEvents(api_, reason); }
  std::string Annotation(const std::string& key) {
    return reconcile::testing::NodeAnnotation(api_, kNode, key);
  }
  void Bind(const std::string& name, const std::string& profile) {
    reconcile::testing::PutBoundPod(api_, name, kNode, profile, "Pending");
  }
  // A running pod that holds one "nvidia.com/<resource>".
  void Hold(const std::string& pod, const std::string& resource, const std::string& device) {
    Json object =
        BoundPod(pod, pod + "-uid", {},
                 {{{"name", "c"}, {"resources", {{"limits", {{"nvidia.com/" + resource, "1"}}}}}}});
    object.as_object()["status"] = {
        {"phase", "Running"}, {"conditions", JsonArray{{{"type", "Ready"}, {"status", "True"}}}}};
    api_.Put(object);
    kubelet_.Assign({"ml", pod, "c", "nvidia.com/" + resource, device});
  }
  void End(const std::string& pod) {
    kubelet_.Remove("ml", pod);
    api_.Remove("pods", "ml/" + pod);
  }
  // The kubelet takes its devices for free at once, and its containers may still run.
  void DeleteByForce(const std::string& pod) {
    kubelet_.Remove("ml", pod);
    api_.RemoveByForce("ml/" + pod);
  }
  int64_t Allocatable(const std::string& profile) {
    return reconcile::AllocatableOf(cluster::DecodeNode(*api_.Find("nodes", kNode)).value(),
                                    "nvidia.com/mig-" + profile);
  }
  // Sets the pod's status as its kubelet does when it admits the pod.
  void Admitted(const std::string& name) {
    Json pod = *api_.Find("pods", "ml/" + name);
    MakeObject(pod, "status")["conditions"] =
        JsonArray{JsonObject{{"type", "Ready"}, {"status", "False"}}};
    api_.Put(pod);
  }
  std::string Events() { return reconcile::testing::EventsOf(api_); }
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
  FakeCgroups cgroups_;
  std::function<device::SimFault(const device::SimAttempt&)> fault_;
  int destroyed_ = 0;
  bool kubelet_reports_ = true;
  bool expect_withdrawn_ = true;
  device::SimGpus gpus_{{{gpu::Catalogue::Builtin().FindByName("A100-40GB"), ""},
                         {gpu::Catalogue::Builtin().FindByName("A100-40GB"), ""}},
                        kNode,
                        Hooks()};
  AgentConfig config_;
  const gpu::Catalogue* catalogue_ = &gpu::Catalogue::Builtin();
  device::GpuHealth health_;
  Metrics metrics_;
  std::optional<reconcile::WantedCondition> handover_;
  std::unique_ptr<Agent> agent_;
  std::unique_ptr<reconcile::Runner> runner_;
};

}  // namespace nos::agent
