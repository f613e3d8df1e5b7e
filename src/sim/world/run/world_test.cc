// The virtual cluster from the view of a kubectl user.
#include "sim/world.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/log.h"
#include "sim/cluster_file.h"
#include "sim/world/checks/satisfiable.h"
#include "sim/world/node/invariants.h"

namespace nos::sim {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using testing::Contains;
using testing::IsEmpty;

class WorldTest : public testing::Test {
 protected:
  WorldTest() { SetLogLevel(LogLevel::kError); }

  void Start(const std::vector<NodeSpec>& nodes, bool controllers) {
    world = std::make_unique<World>(WorldOptions(), gpu::Catalogue::Builtin());
    for (const NodeSpec& node : nodes) {
      const Status added = world->AddNode(node);
      ASSERT_TRUE(added.ok()) << added.ToString();
    }
    const Status booted = world->Boot();
    ASSERT_TRUE(booted.ok()) << booted.ToString();
    if (controllers) world->StartControllers();
  }
  void TearDown() override {
    if (world != nullptr) {
      EXPECT_EQ(world->violations().size(), expected_violations);
    }
  }

  static NodeSpec Node(std::vector<InstanceSpec> instances, int gpus = 1) {
    NodeSpec node{.name = "n1"};
    node.gpus.assign(static_cast<size_t>(gpus), GpuSpec{"A100-40GB"});
    node.gpus[0].instances = std::move(instances);
    return node;
  }
  static PodSpec Pod(const std::string& name, const std::string& profile, int count = 1) {
    return {.name = name, .containers = {{{profile, count}}}};
  }
  void Create(const PodSpec& pod) {
    world->Submit(pod, world->Now());
    world->RunFor(std::chrono::milliseconds(1));
  }
  std::string Phase(const std::string& name) {
    const auto pod = world->FindPod(name);
    return pod == nullptr ? "gone" : pod->phase;
  }
  int64_t Allocatable(std::string_view resource) {
    const auto& allocatable = world->Nodes().at(0)->allocatable;
    const auto found = allocatable.find(resource);
    return found == allocatable.end() ? -1 : found->second.Value();
  }
  Status Delete(const std::string& name) {
    return kube::Client(world->api()).Delete(kube::kPods, "default", name);
  }

  std::unique_ptr<World> world;
  size_t expected_violations = 0;
};

TEST_F(WorldTest, BootsWithUsedInstancesHeldByTheirPods) {
  Start({Node({{"3g.20gb@4", true, "a"}, {"1g.5gb@0", true, "a"}, {"2g.10gb@2", false, ""}})},
        false);
  EXPECT_EQ(Phase("a"), "Running");
  const auto& pods = world->FindMachine("n1")->kubelet().pods();
  ASSERT_EQ(pods.size(), 1u);
  EXPECT_EQ(pods.begin()->second.devices.size(), 2u);
  EXPECT_EQ(Allocatable("nvidia.com/mig-2g.10gb"), 1);
}

TEST_F(WorldTest, PodRunsForItsTimeAndFreesItsDevices) {
  Start({Node({{"1g.5gb@0"}})}, false);
  PodSpec pod = Pod("a", "1g.5gb");
  pod.node = "n1";
  pod.run = seconds(30);
  Create(pod);
  EXPECT_EQ(Phase("a"), "Pending");
  world->RunFor(seconds(3));
  EXPECT_EQ(Phase("a"), "Running");
  const Machine& machine = *world->FindMachine("n1");
  const std::string device = machine.gpus()->Truth(0)[0].uuid;
  EXPECT_NE(machine.kubelet().Holder(device), nullptr);
  world->RunFor(seconds(31));
  EXPECT_EQ(Phase("a"), "Succeeded");
  EXPECT_EQ(machine.kubelet().Holder(device), nullptr);
}

TEST_F(WorldTest, KubeletKeepsForeignPodConditions) {
  Start({Node({{"1g.5gb@0"}})}, false);
  PodSpec pod = Pod("a", "1g.5gb");
  pod.node = "n1";
  Create(pod);
  world->RunFor(seconds(1));
  const Time scheduled = world->FindPod("a")->FindCondition("PodScheduled")->last_transition;
  const Json patch = {
      {"status", {{"conditions", JsonArray{{{"type", "DisruptionTarget"}, {"status", "True"}}}}}}};
  ASSERT_TRUE(kube::Client(world->api())
                  .Patch(kube::kPods, "default", "a", kube::PatchType::kStrategic, patch, "status")
                  .ok());
  world->RunFor(seconds(5));
  const auto running = world->FindPod("a");
  ASSERT_EQ(running->phase, "Running");
  EXPECT_NE(running->FindCondition("DisruptionTarget"), nullptr);
  EXPECT_EQ(running->FindCondition("PodScheduled")->last_transition, scheduled);
}

TEST_F(WorldTest, PodResourcesOmitDevicesOfInitContainers) {
  Start({Node({{"1g.5gb@0"}, {"1g.5gb@1"}})}, false);
  PodSpec pod = Pod("a", "1g.5gb");
  pod.node = "n1";
  pod.init = {{"1g.5gb", 2}};
  pod.init_run = seconds(30);
  Create(pod);
  world->RunFor(seconds(20));
  VirtualNode& kubelet = world->FindMachine("n1")->kubelet();
  const auto held = [&] { return kubelet.pods().begin()->second.devices.size(); };
  EXPECT_EQ(held(), 2u);
  EXPECT_EQ(kubelet.List()->size(), 1u);
  EXPECT_EQ(world->FindPod("a")->FindCondition("Initialized")->status, "False");
  world->RunFor(seconds(20));
  EXPECT_EQ(Phase("a"), "Running");
  EXPECT_EQ(world->FindPod("a")->FindCondition("Initialized")->status, "True");
  EXPECT_EQ(held(), 1u);
}

TEST_F(WorldTest, PodOnTemporarilyLostGpuKeepsRunning) {
  Start({Node({})}, true);
  Create(Pod("a", "3g.20gb"));
  world->RunFor(minutes(1));
  ASSERT_EQ(Phase("a"), "Running");
  world->FindMachine("n1")->LoseGpu(0);
  world->RunFor(minutes(1));
  Create(Pod("b", "3g.20gb"));
  world->RunFor(minutes(1));
  EXPECT_EQ(Phase("b"), "Pending");
  world->FindMachine("n1")->RestoreGpu(0);
  world->RunFor(minutes(2));
  EXPECT_EQ(Phase("a"), "Running");
  EXPECT_EQ(Phase("b"), "Running");
}

TEST_F(WorldTest, NodeRenewsItsLeaseUntilItIsDeleted) {
  const auto lease = [&](const std::string& node) {
    kube::Client client(world->api());
    return client.Get(kube::kLeases, "kube-node-lease", node);
  };
  const auto renewed = [&] {
    return ParseTime(FindString(*lease("n1"), "spec", "renewTime")).value_or(Time());
  };
  Start({Node({})}, false);
  ASSERT_TRUE(lease("n1").ok()) << lease("n1").status().ToString();
  EXPECT_EQ(FindString(*lease("n1"), "spec", "holderIdentity"), "n1");
  EXPECT_EQ(*Find(*lease("n1"), "spec", "leaseDurationSeconds"), 40);
  for (int i = 0; i < 5; ++i) {
    world->RunFor(seconds(7));
    EXPECT_LE(world->Now() - renewed(), seconds(10));
  }
  world->FindMachine("n1")->Reboot();
  const Time before = renewed();
  world->RunFor(seconds(40));
  EXPECT_EQ(renewed(), before) << "nobody renews it while the node is down";
  world->RunFor(seconds(20));
  EXPECT_GT(renewed(), before);
  kube::Client client(world->api());
  EXPECT_TRUE(client.Delete(kube::kNodes, "", "n1").ok());
  world->RunFor(seconds(60));
  EXPECT_EQ(lease("n1").status().code(), Code::kNotFound);
}

TEST_F(WorldTest, DeletedPodStopsThenDisappears) {
  Start({Node({{"1g.5gb@0"}})}, false);
  PodSpec pod = Pod("a", "1g.5gb");
  pod.node = "n1";
  Create(pod);
  world->RunFor(seconds(5));
  ASSERT_TRUE(Delete("a").ok());
  EXPECT_EQ(Phase("a"), "Running");
  EXPECT_TRUE(world->FindPod("a")->meta.deleted);
  world->RunFor(seconds(5));
  EXPECT_EQ(Phase("a"), "gone");
}

TEST_F(WorldTest, PodWithoutDeviceFailsAndGetsASuccessor) {
  Start({Node({{"1g.5gb@0"}})}, false);
  PodSpec pod = Pod("a", "1g.5gb", 2);
  pod.node = "n1";
  Create(pod);
  world->RunFor(seconds(2));
  const auto pods = world->Pods();
  ASSERT_EQ(pods.size(), 2u);
  EXPECT_EQ(pods[0]->phase, "Failed");
  EXPECT_EQ(pods[0]->reason, "UnexpectedAdmissionError");
  EXPECT_EQ(pods[1]->meta.name, "a-r1");
  EXPECT_EQ(pods[1]->node_name, "");
}

TEST_F(WorldTest, NodeRefusesPodBeyondItsCpu) {
  NodeSpec node = Node({});
  node.cpu = Quantity::FromValue(2);
  Start({node}, false);
  for (const char* name : {"a", "b"}) {
    PodSpec pod{.name = name};
    pod.cpu = Quantity::FromMilli(1500);
    pod.node = "n1";
    Create(pod);
  }
  world->RunFor(seconds(3));
  EXPECT_EQ(Phase("a"), "Running");
  EXPECT_EQ(world->Pods().at(1)->reason, "OutOfcpu");
}

TEST_F(WorldTest, PodsOfADeletedNodeMoveToAnother) {
  NodeSpec second = Node({});
  second.name = "n2";
  Start({Node({}), second}, true);
  Create(Pod("a", "3g.20gb"));
  world->RunFor(minutes(1));
  const std::string node = world->FindPod("a")->node_name;
  ASSERT_TRUE(kube::Client(world->api()).Delete(kube::kNodes, "", node).ok());
  world->RunFor(minutes(2));
  EXPECT_EQ(world->machines().size(), 1u);
  EXPECT_EQ(Phase("a"), "Running");
  EXPECT_NE(world->FindPod("a")->node_name, node);
}

TEST_F(WorldTest, InvariantsDetectBrokenState) {
  Start({Node({{"1g.5gb@0", true, "a"}})}, false);
  Machine& machine = *world->FindMachine("n1");
  EXPECT_THAT(CheckMachine(machine, world->Now()), IsEmpty());
  machine.gpus()->Reboot();  // without the kubelet's knowledge
  EXPECT_EQ(CheckMachine(machine, world->Now()).size(), 1u);
  machine.kubelet().Reboot();
  EXPECT_THAT(CheckMachine(machine, world->Now()), IsEmpty());
}

TEST_F(WorldTest, InvariantsDetectPrematureDestruction) {
  Start({Node({{"1g.5gb@0", false, ""}, {"1g.5gb@1", false, ""}})}, false);
  Machine& machine = *world->FindMachine("n1");
  const auto offered = machine.kubelet().devices().offered();
  const std::vector<device::GpuInstance> instances = machine.gpus()->Truth(0);
  kube::Client client(world->api());
  ApiTruth truth = TruthOf(client, "n1").value();
  const kubelet::OfferedDevice taken{"nvidia.com/mig-1g.5gb", instances[0].uuid};
  const auto withdrawn = [&] {
    return fmt::format("{}", fmt::join(CheckWithdrawal(machine, taken, truth), ";"));
  };
  const auto destroyed = [&] {
    return fmt::format("{}", fmt::join(CheckDestruction(machine, instances[0], truth), ";"));
  };
  const std::string destruction = "n1: 1g.5gb@0 on GPU 0 was destroyed while ";
  const std::string withdrawal =
      "n1: nvidia.com/mig-1g.5gb " + taken.device_id + " was withdrawn while ";
  EXPECT_EQ(destroyed(), destruction + "the kubelet may hand it out");

  const auto other = std::find_if(offered.begin(), offered.end(), [&](const auto& device) {
    return device.device_id != instances[0].uuid;
  });
  ASSERT_TRUE(machine.kubelet().Offer({*other}).ok());
  expected_violations = 1;  // at that very moment
  EXPECT_EQ(withdrawn(), withdrawal + "the node object counts it");
  truth.node.allocatable["nvidia.com/mig-1g.5gb"] = Quantity::FromValue(1);
  EXPECT_EQ(withdrawn(), "");
  EXPECT_EQ(destroyed(), "");

  cluster::Pod waits = *cluster::DecodePod(PodObject(Pod("a", "1g.5gb")));
  waits.meta.uid = "not admitted";
  truth.pods = {waits};
  EXPECT_EQ(withdrawn() + destroyed(), "");  // the other share serves the pod
  truth.pods.push_back(waits);
  EXPECT_EQ(withdrawn(), withdrawal + "pods bound here wait for 2 and only 1 others are free");
  EXPECT_EQ(destroyed(),
            destruction +
                "pods bound here wait for 2 of nvidia.com/mig-1g.5gb and only 1 others are free");
}

TEST_F(WorldTest, InvariantsDetectBindingAgainstTaint) {
  NodeSpec node = Node({});
  node.taints = {{"dedicated", "team", "NoSchedule"}};
  Start({node}, false);
  kube::Client client(world->api());
  const auto bind = [&](PodSpec pod) {
    Create(pod);
    EXPECT_TRUE(client.Bind("default", pod.name, "n1", "").ok());
    world->RunFor(seconds(1));
    return world->violations().size();
  };
  EXPECT_EQ(bind({.name = "friend", .tolerations = {{"dedicated", "Exists", "", ""}}}), 0u);
  EXPECT_EQ(bind({.name = "stranger"}), 1u);

  const auto taint = [&](const JsonArray& taints) {
    const JsonObject patch = {{"spec", JsonObject{{"taints", taints}}}};
    EXPECT_TRUE(client.Patch(kube::kNodes, "", "n1", kube::PatchType::kMerge, patch).ok());
    world->RunFor(seconds(1));
  };
  taint({});
  taint(TaintsJson(node.taints));
  EXPECT_EQ(bind({.name = "decided-before"}), 1u);
  world->RunFor(kFaultsLinger);
  EXPECT_EQ(bind({.name = "decided-after"}), 2u);
  expected_violations = 2;
}

// The PodGroup has a smaller minMember than the checker expects.
TEST_F(WorldTest, InvariantsDetectPartiallyBoundGang) {
  Start({Node({})}, false);
  kube::Client client(world->api());
  ASSERT_TRUE(DefinePodGroups(client).ok());
  ASSERT_TRUE(PutPodGroup(client, "g", 2).ok());
  world->checks().gangs().Expect("default/g", 3);
  world->StartControllers();
  const auto create = [&](const std::string& name) {
    Create({.name = name, .labels = {{std::string(kPodGroupLabel), "g"}}});
    world->RunFor(seconds(5));
  };
  create("a");
  EXPECT_EQ(Phase("a"), "Pending");
  EXPECT_THAT(world->violations(), IsEmpty());
  create("b");
  EXPECT_EQ(Phase("b"), "Running");
  EXPECT_THAT(world->violations(),
              Contains("gang default/g: 2 of its pods are bound, and 3 must be"));
  expected_violations = world->violations().size();
}

TEST_F(WorldTest, SatisfiabilityCheckTriesEveryPlacement) {
  Start({Node({{"1g.5gb@2", true, "a"}, {"3g.20gb@4", false, ""}}, 2)}, false);
  const auto node = world->Nodes().at(0);
  const auto holder = world->FindPod("a");
  const CheckedNode checked{node.get(), world->FindMachine("n1"), {holder.get()}};
  const auto could = [&](const PodSpec& spec, bool empty) {
    const cluster::Pod pod = *cluster::DecodePod(PodObject(spec));
    return CouldRun({&pod}, checked, empty);
  };
  EXPECT_TRUE(could(Pod("p", "7g.40gb"), false));
  EXPECT_FALSE(could(Pod("p", "7g.40gb", 2), false));
  EXPECT_TRUE(could(Pod("p", "7g.40gb", 2), true));
  EXPECT_TRUE(could(Pod("p", "3g.20gb", 3), false));
  EXPECT_FALSE(could(Pod("p", "3g.20gb", 4), false));
  EXPECT_FALSE(could(Pod("p", "9g.90gb"), true));

  const cluster::Pod half = *cluster::DecodePod(PodObject(Pod("p", "3g.20gb")));
  EXPECT_TRUE(CouldRunTogether({&half, &half, &half}, {checked}));
  EXPECT_FALSE(CouldRunTogether({&half, &half, &half, &half}, {checked}));
}

TEST(ClusterFileTest, ReadsNodesOfKubectl) {
  const auto specs = ReadCluster(R"(
kind: List
items:
- kind: Node
  metadata:
    name: gpu-1
    labels: {nvidia.com/gpu.product: NVIDIA-A30, nvidia.com/gpu.count: "2",
             nos.nebuly.com/gpu-partitioning: mig, zone: a}
    annotations: {nos.nebuly.com/status-layout-1: "2g.12gb@2:used,1g.6gb@0:free", mine: x}
  spec: {unschedulable: true}
  status: {capacity: {cpu: "8", memory: 32Gi, pods: "50"}}
)",
                                 "nodes.yaml", gpu::Catalogue::Builtin());
  ASSERT_TRUE(specs.ok()) << specs.status().ToString();
  const NodeSpec& node = specs->at(0);
  EXPECT_EQ(node.cpu, Quantity::FromValue(8));
  EXPECT_EQ(node.max_pods, 50);
  EXPECT_TRUE(node.unschedulable);
  ASSERT_EQ(node.gpus.size(), 2u);
  EXPECT_THAT(node.gpus[0].instances, IsEmpty());
  ASSERT_EQ(node.gpus[1].instances.size(), 2u);
  EXPECT_EQ(node.annotations.size(), 1u);
  EXPECT_FALSE(ReadCluster("kind: Pod\nmetadata: {name: a}", "x", gpu::Catalogue::Builtin()).ok());
}

}  // namespace
}  // namespace nos::sim
