#include "sim/world/run/slice_webhook.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/log.h"
#include "cluster/gpu_requirements.h"
#include "gpu/product.h"
#include "sim/workload.h"
#include "sim/world.h"

namespace nos::sim {
namespace {

using std::chrono::seconds;
using testing::IsEmpty;

class SliceWebhookTest : public testing::Test {
 protected:
  SliceWebhookTest() { SetLogLevel(LogLevel::kError); }

  void Start(const std::vector<NodeSpec>& nodes) {
    for (const NodeSpec& node : nodes) ASSERT_TRUE(world.AddNode(node).ok());
    const Status booted = world.Boot();
    ASSERT_TRUE(booted.ok()) << booted.ToString();
    world.StartControllers();
  }
  void TearDown() override { EXPECT_THAT(world.violations(), IsEmpty()); }

  Result<Json> Create(const std::string& name, const std::string& memory, bool host_ipc) {
    PodSpec pod{.name = name};
    pod.annotations[std::string(cluster::kNeedMemory)] = memory;
    pod.host_ipc = host_ipc;
    return kube::Client(world.api()).Create(kube::kPods, "default", PodObject(pod));
  }
  std::string Chosen(const std::string& name) {
    const auto pod = world.FindPod(name);
    if (pod == nullptr) return "gone";
    const auto chosen = pod->meta.annotations.find(cluster::kChosenSlice);
    const std::string slice = chosen == pod->meta.annotations.end() ? "none" : chosen->second;
    return slice + (pod->phase == "Running" ? " runs" : "");
  }

  World world{WorldOptions(), gpu::Catalogue::Builtin()};
};

TEST_F(SliceWebhookTest, ChoosesSliceWithCapacityForRequirements) {
  Start({{.name = "mig", .gpus = {{"A100-40GB"}}},
         {.name = "mps", .gpus = {{"A100-40GB"}}, .mps = true}});
  ASSERT_TRUE(Create("shares", "30Gi", true).ok());
  ASSERT_TRUE(Create("again", "18Gi", true).ok());
  ASSERT_TRUE(Create("alone", "9Gi", false).ok());
  world.RunFor(seconds(60));
  EXPECT_EQ(Chosen("shares"), "nvidia.com/gpu-30gb runs");
  EXPECT_EQ(Chosen("again"), "nvidia.com/mig-3g.20gb runs") << "the shares are taken";
  EXPECT_EQ(Chosen("alone"), "nvidia.com/mig-1g.10gb runs") << "it cannot use shares";
  // Pods created since are taken into account.
  ASSERT_TRUE(Create("later", "9Gi", true).ok());
  world.RunFor(seconds(60));
  EXPECT_EQ(Chosen("later"), "nvidia.com/gpu-9gb runs");
}

TEST_F(SliceWebhookTest, RefusesImpossibleRequirements) {
  Start({{.name = "mig", .gpus = {{"A100-40GB"}}}});
  const auto refused = Create("huge", "100Gi", false);
  EXPECT_EQ(refused.status().message(),
            "admission webhook \"slices.nos.nebuly.com\" denied the request: no slice of GPUs that "
            "nos divides, on nodes that the pod may go to, meets the need (102400 MiB, 0/1000 of a "
            "GPU's compute); the largest is 40320 MiB (A100-40GB)");
  EXPECT_EQ(Chosen("huge"), "gone");
  const PodSpec plain{.name = "plain"};
  world.Submit(plain, world.Now());
  world.RunFor(seconds(5));
  EXPECT_EQ(Chosen("plain"), "none runs") << "who asks for nothing is not asked about";
}

// Within little more than a minute the sandbox's demo shows all sharing modes, including on the
// hybrid node.
TEST_F(SliceWebhookTest, DemoShowsAllSharingModes) {
  Start(ModesCluster());
  const Time began = world.Now();
  for (const PodSpec& pod : ModesWorkload(1)) world.Submit(pod, began + pod.arrival);
  std::set<std::string, std::less<>> ways, on_hybrid;
  for (int second = 0; second < 70; ++second) {
    world.RunFor(seconds(1));
    for (const auto& [name, machine] : world.machines()) {
      for (size_t gpu = 0; gpu < machine->gpu_count(); ++gpu) {
        for (const device::GpuInstance& instance : machine->Instances(gpu)) {
          if (machine->kubelet().Holder(instance.uuid) == nullptr) continue;
          const std::string way(gpu::SharingModeOfProfile(instance.profile));
          ways.insert(way);
          if (machine->kubelet().spec().hybrid) on_hybrid.insert(way);
        }
      }
    }
  }
  EXPECT_THAT(ways, testing::UnorderedElementsAre("MIG", "MPS", "time slices", "whole"));
  for (const char* way : {"MIG", "time slices", "whole"})
    EXPECT_TRUE(on_hybrid.contains(way)) << way;
  for (const char* name : {"web-1", "api-2", "note-6", "chat-4", "fit-2", "alone-1", "need-3"}) {
    const auto pod = world.FindPod(name);
    ASSERT_NE(pod, nullptr) << name;
    EXPECT_NE(pod->phase, "Pending") << name;
  }
  EXPECT_EQ(world.FindPod("greedy")->phase, "Pending");
  EXPECT_EQ(Chosen("alone-1"), "nvidia.com/mig-1g.10gb runs");
}

}  // namespace
}  // namespace nos::sim
