// Node pools of a virtual cluster: their infrastructure, and the autoscaler with the other
// controllers.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/log.h"
#include "sim/world.h"

namespace nos::sim {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::MatchesRegex;

class PoolsTest : public testing::Test {
 protected:
  PoolsTest() { SetLogLevel(LogLevel::kError); }

  static PoolSpec Pool(const std::string& name = "a100") {
    PoolSpec pool;
    pool.name = name;
    pool.node.gpus = {{"A100-40GB"}};
    pool.max = 4;
    return pool;
  }
  void Start(const PoolSpec& pool, WorldOptions options = {}) {
    world = std::make_unique<World>(std::move(options), gpu::Catalogue::Builtin());
    client = std::make_unique<kube::Client>(world->api());
    Ok(world->AddPool(pool));
    Ok(world->Boot());
  }
  static void Ok(const Status& status) { ASSERT_TRUE(status.ok()) << status.ToString(); }
  void TearDown() override {
    if (world != nullptr) {
      EXPECT_THAT(world->violations(), IsEmpty());
    }
  }

  Status Patch(const kube::Resource& resource, const std::string& name, const std::string& what,
               Json value, const std::string& subresource = "") {
    const std::string ns = resource.namespaced ? std::string(kInfraNamespace) : "";
    const Json patch = JsonObject{{what, std::move(value)}};
    return client->Patch(resource, ns, name, kube::PatchType::kMerge, patch, subresource).status();
  }
  void Scale(int replicas) {
    Ok(Patch(kMachineSets, "a100", "spec", JsonObject{{"replicas", replicas}}, "scale"));
    world->RunFor(seconds(1));
  }
  void Name(const kube::Resource& resource, const std::string& name) {
    const JsonObject annotations = {{cluster::kDeleteMachine, "true"}};
    Ok(Patch(resource, name, "metadata", JsonObject{{"annotations", annotations}}));
  }
  std::vector<std::string> Nodes() {
    std::vector<std::string> names;
    const auto nodes = world->Nodes();
    for (const auto& node : nodes) names.push_back(node->meta.name);
    return names;
  }
  PoolState State() { return world->infrastructure().States().at(0); }

  std::unique_ptr<World> world;
  std::unique_ptr<kube::Client> client;
};

TEST_F(PoolsTest, NodesJoinAfterTheStartTimeOfThePool) {
  Start(Pool());
  EXPECT_THAT(Nodes(), IsEmpty());
  Scale(2);
  EXPECT_EQ(State().coming, 2);
  world->RunFor(seconds(50));
  EXPECT_THAT(Nodes(), IsEmpty());
  world->RunFor(seconds(40));
  EXPECT_THAT(Nodes(), ElementsAre("a100-1", "a100-2"));
  const auto nodes = world->Nodes();
  EXPECT_EQ(nodes[0]->meta.labels.at(std::string(kPoolLabel)), "a100");
  EXPECT_TRUE(nodes[0]->meta.annotations.contains("nos.nebuly.com/status-layout-0"));
  const auto set = client->Get(kMachineSets, kInfraNamespace, "a100");
  ASSERT_TRUE(set.ok());
  EXPECT_EQ(Find(*set, "status", "replicas")->get_int64(), 2);
}

TEST_F(PoolsTest, InitialNodesExistFromTheStart) {
  PoolSpec pool = Pool();
  pool.nodes = 2;
  Start(pool);
  EXPECT_THAT(Nodes(), ElementsAre("a100-1", "a100-2"));
  EXPECT_EQ(State().wanted, 2);
}

TEST_F(PoolsTest, RemovesTheMarkedNodeOrElseTheNewest) {
  PoolSpec pool = Pool();
  pool.nodes = 3;
  Start(pool);
  Name(kube::kNodes, "a100-1");
  Scale(2);
  EXPECT_THAT(Nodes(), ElementsAre("a100-2", "a100-3"));
  Scale(3);
  Scale(2);  // before it has joined
  EXPECT_THAT(Nodes(), ElementsAre("a100-2", "a100-3"));
  Scale(1);
  EXPECT_THAT(Nodes(), ElementsAre("a100-2"));
}

TEST_F(PoolsTest, MachinesReferToNodesAndMarkThemForRemoval) {
  PoolSpec pool = Pool();
  pool.machines = true;
  pool.nodes = 1;
  Start(pool);
  Scale(2);
  world->RunFor(minutes(2));
  const auto nodes = world->Nodes();
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(nodes[0]->meta.annotations.at(std::string(kMachineName)), "a100-1");
  EXPECT_EQ(nodes[0]->meta.annotations.at(std::string(kMachineNamespace)), kInfraNamespace);
  const auto machine = client->Get(kMachines, kInfraNamespace, "a100-1");
  ASSERT_TRUE(machine.ok());
  EXPECT_EQ(FindString(*machine, "status", "nodeRef", "name"), "a100-1");
  Name(kMachines, "a100-1");
  Scale(1);
  EXPECT_THAT(Nodes(), ElementsAre("a100-2"));
  EXPECT_EQ(client->Get(kMachines, kInfraNamespace, "a100-1").status().code(), Code::kNotFound);
}

TEST_F(PoolsTest, FaultsDelayNodesOrKeepThemAway) {
  Start(Pool());
  Ok(world->infrastructure().SetFault("a100", PoolFault::kLate));
  Scale(1);
  world->RunFor(seconds(170));
  EXPECT_THAT(Nodes(), IsEmpty());
  world->RunFor(seconds(20));
  EXPECT_EQ(Nodes().size(), 1u);
  Ok(world->infrastructure().SetFault("a100", PoolFault::kNever));
  Scale(2);
  world->RunFor(minutes(60));
  EXPECT_EQ(Nodes().size(), 1u);
  Ok(world->infrastructure().SetFault("a100", PoolFault::kNone));
  world->RunFor(seconds(70));
  EXPECT_EQ(Nodes().size(), 2u);
  EXPECT_EQ(world->infrastructure().SetFault("none", PoolFault::kNone).code(), Code::kNotFound);
}

TEST_F(PoolsTest, FaultsDropEverySecondNodeOrAGpu) {
  PoolSpec pool = Pool();
  pool.node.gpus.assign(2, {"A100-40GB"});
  Start(pool);
  Ok(world->infrastructure().SetFault("a100", PoolFault::kPartly));
  Scale(2);
  world->RunFor(minutes(10));
  EXPECT_THAT(Nodes(), ElementsAre("a100-1"));
  Scale(1);
  Ok(world->infrastructure().SetFault("a100", PoolFault::kWrong));
  Scale(2);
  world->RunFor(minutes(2));
  EXPECT_THAT(Nodes(), ElementsAre("a100-1", "a100-3"));
  EXPECT_EQ(world->FindMachine("a100-1")->gpu_count(), 2u);
  EXPECT_EQ(world->FindMachine("a100-3")->gpu_count(), 1u);
}

TEST_F(PoolsTest, FaultRemovesAnotherNode) {
  PoolSpec pool = Pool();
  pool.nodes = 2;
  Start(pool);
  Ok(world->infrastructure().SetFault("a100", PoolFault::kOther));
  Name(kube::kNodes, "a100-1");
  Scale(1);
  EXPECT_THAT(Nodes(), ElementsAre("a100-1"));
}

TEST_F(PoolsTest, FaultRefusesOnlyTheScaledObjectOfThePool) {
  Start(Pool());
  const std::string path = "/apis/infra.nos.example/v1/namespaces/infra/machinesets/a100/scale";
  EXPECT_FALSE(world->infrastructure().Refuses(path));
  Ok(world->infrastructure().SetFault("a100", PoolFault::kRefused));
  EXPECT_TRUE(world->infrastructure().Refuses(path));
  EXPECT_FALSE(
      world->infrastructure().Refuses("/apis/infra.nos.example/v1/namespaces/infra/"
                                      "machinesets/other/scale"));
  EXPECT_FALSE(world->infrastructure().Refuses("/api/v1/nodes/a100-1"));
}

TEST_F(PoolsTest, ReplacesNodeDeletedByAnotherComponent) {
  PoolSpec pool = Pool();
  pool.nodes = 1;
  Start(pool);
  Ok(client->Delete(kube::kNodes, "", "a100-1"));
  world->RunFor(seconds(30));
  EXPECT_EQ(State().coming, 1);
  world->RunFor(minutes(1));
  EXPECT_THAT(Nodes(), ElementsAre("a100-2"));
}

TEST_F(PoolsTest, DoesNotReplaceReturningNodesOrReturnRemovedOnes) {
  PoolSpec pool = Pool();
  pool.nodes = 2;
  WorldOptions options;
  options.nodes_return = seconds(20);
  Start(pool, options);
  Ok(client->Delete(kube::kNodes, "", "a100-1"));
  world->RunFor(seconds(30));
  EXPECT_EQ(State().coming, 0);
  EXPECT_THAT(Nodes(), ElementsAre("a100-1", "a100-2"));
  Name(kube::kNodes, "a100-2");
  Scale(1);
  world->RunFor(minutes(5));
  EXPECT_THAT(Nodes(), ElementsAre("a100-1"));
}

TEST_F(PoolsTest, NodeHoursAreCounted) {
  PoolSpec pool = Pool();
  pool.nodes = 1;
  pool.price = Quantity::FromMilli(2500);
  Start(pool);
  const double before = State().node_hours;
  world->RunFor(minutes(60));
  EXPECT_NEAR(State().node_hours - before, 1, 0.001);
  Scale(0);
  const double all = State().node_hours;
  world->RunFor(minutes(60));
  EXPECT_NEAR(State().node_hours, all, 0.001);
  EXPECT_NEAR(State().cost, all * 2.5, 0.001);
  EXPECT_EQ(State().removed, 1);
}

TEST_F(PoolsTest, RecreatesEvictedPodsWithController) {
  PoolSpec pool = Pool();
  pool.nodes = 1;
  Start(pool);
  for (const char* name : {"owned", "alone"}) {
    PodSpec pod{.name = name};
    pod.node = "a100-1";
    if (pod.name == "owned") pod.owner = "job";
    world->Submit(pod, world->Now());
  }
  world->RunFor(seconds(10));
  for (const char* name : {"owned", "alone"}) {
    kube::ApiRequest request;
    request.method = "POST";
    request.path = fmt::format("/api/v1/namespaces/default/pods/{}/eviction", name);
    request.content_type = "application/json";
    request.body = JsonObject{{"apiVersion", "policy/v1"},
                              {"kind", "Eviction"},
                              {"metadata", JsonObject{{"name", name}, {"namespace", "default"}}}};
    ASSERT_TRUE(client->Send(request).ok());
  }
  world->RunFor(seconds(30));
  const auto successor = world->FindPod("owned");
  ASSERT_NE(successor, nullptr);
  EXPECT_EQ(successor->meta.name, "owned-r1");
  ASSERT_EQ(successor->meta.owners.size(), 1u);
  EXPECT_EQ(world->FindPod("alone"), nullptr);
  EXPECT_EQ(world->recreated(), 1);
}

TEST_F(PoolsTest, PoolFollowsItsNodePool) {
  PoolSpec pool = Pool("mixed");
  pool.node.gpus.assign(3, {"H100-80GB"});
  pool.node.hybrid = true;
  pool.node.cpu = Quantity::FromValue(12);
  pool.node.taints = {{"gpu", "yes", "NoSchedule"}};
  pool.min = 1;
  pool.price = Quantity::FromMilli(1250);
  pool.start = seconds(90);
  cluster::NodePool read;
  const Json object = NodePoolObject(pool);
  Ok(cluster::ReadNodePool(object, read));
  EXPECT_EQ(read.delete_annotation, cluster::kDeleteMachine);
  const auto again = PoolSpecOf(read, gpu::Catalogue::Builtin());
  ASSERT_TRUE(again.ok()) << again.status().ToString();
  EXPECT_EQ(again->node.gpus.size(), 3u);
  EXPECT_TRUE(again->node.hybrid);
  EXPECT_EQ(again->node.cpu, pool.node.cpu);
  EXPECT_EQ(again->node.taints.size(), 1u);
  EXPECT_EQ(again->min, 1);
  EXPECT_EQ(again->nodes, 1);
  EXPECT_EQ(again->max, 4);
  EXPECT_EQ(again->price, pool.price);
  EXPECT_EQ(again->start, pool.start);
  read.gpu.model = "Unknown";
  EXPECT_THAT(
      PoolSpecOf(read, gpu::Catalogue::Builtin()).status().message(),
      MatchesRegex("NodePool mixed: spec.gpu: no GPU model 'Unknown'; there are [-A-Z0-9GB, ]+"));
  pool.undescribed = true;
  Ok(cluster::ReadNodePool(NodePoolObject(pool), read));
  EXPECT_EQ(PoolSpecOf(read, gpu::Catalogue::Builtin()).status().message(),
            "NodePool mixed: spec.cpu and spec.memory: a virtual cluster makes its nodes and has "
            "none to learn from: give both (and gpu)");
}

// The autoscaler together with the other controllers.
class AutoscalingTest : public PoolsTest {
 protected:
  static WorldOptions Options() {
    WorldOptions options;
    options.autoscaler.emplace();
    options.autoscaler->shrink_after = minutes(2);
    return options;
  }
  void Submit(const std::string& name, const std::string& profile, const std::string& owner) {
    PodSpec pod{.name = name};
    pod.containers = {{{profile, 1}}};
    pod.owner = owner;
    world->Submit(pod, world->Now());
  }
  void Cordon(bool cordoned) {
    Ok(Patch(kube::kNodes, "n1", "spec", JsonObject{{"unschedulable", cordoned}}));
  }
};

// A node is requested, used, emptied by a move, and removed, whenever the autoscaler crashes.
TEST_F(AutoscalingTest, CrashAtAnyMomentGivesTheSameResult) {
  constexpr int kMoments = 16;
  for (int moment = 0; moment < kMoments; ++moment) {
    SCOPED_TRACE(fmt::format("moment {}", moment));
    world = std::make_unique<World>(Options(), gpu::Catalogue::Builtin());
    client = std::make_unique<kube::Client>(world->api());
    Ok(world->AddNode({.name = "n1", .gpus = {{"A100-40GB"}}}));
    Ok(world->AddPool(Pool()));
    Ok(world->Boot());
    Cordon(true);
    Submit("web", "2g.10gb", "web");
    world->StartControllers();
    world->RunFor(minutes(4));
    ASSERT_EQ(world->FindPod("web")->node_name, "a100-1");
    Cordon(false);
    // The move begins two minutes after the node became removable, and lasts for some seconds.
    world->RunFor(seconds(118 + moment));
    world->FindProcess("autoscaler")->Crash();
    world->RunFor(minutes(20));
    EXPECT_EQ(world->FindPod("web")->node_name, "n1");
    EXPECT_EQ(world->FindPod("web")->phase, "Running");
    EXPECT_EQ(State().nodes, 0);
    EXPECT_EQ(world->recreated(), 1);
    EXPECT_THAT(MoveChecker::Leftovers(world->Nodes(), world->Pods()), IsEmpty());
    EXPECT_THAT(world->violations(), IsEmpty());
  }
}

// A scale-down of this pool could remove any of its nodes.
TEST_F(AutoscalingTest, DoesNotShrinkPoolWithUnselectableNodesInUse) {
  PoolSpec pool = Pool();
  pool.unnamed = true;
  pool.nodes = 3;
  Start(pool, Options());
  world->StartControllers();
  for (const char* node : {"a100-2", "a100-3"}) {
    PodSpec pod{.name = fmt::format("on-{}", node)};
    pod.cpu = Quantity::FromValue(4);
    pod.node = node;
    world->Submit(pod, world->Now());
  }
  world->RunFor(minutes(30));
  for (const char* name : {"on-a100-2", "on-a100-3"}) {
    const auto pod = world->FindPod(name);
    ASSERT_NE(pod, nullptr);
    EXPECT_EQ(pod->meta.name, name) << "not made anew elsewhere";
    EXPECT_EQ(pod->phase, "Running");
  }
}

}  // namespace
}  // namespace nos::sim
