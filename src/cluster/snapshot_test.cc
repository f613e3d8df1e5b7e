#include "cluster/snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/random.h"

namespace nos::cluster {
namespace {

using testing::ElementsAre;

using Annotations = StringMap;

std::shared_ptr<const Node> MakeNode(std::string name, int gpus,
                                     const Annotations& annotations = {}) {
  Node node;
  node.meta.name = std::move(name);
  node.meta.labels = {{std::string(kPartitioningLabel), "mig"},
                      {std::string(kCountLabel), std::to_string(gpus)},
                      {std::string(kProductLabel), "NVIDIA-A100-SXM4-40GB"}};
  for (const auto& [key, value] : annotations)
    node.meta.annotations[std::string(kPrefix) + key] = value;
  node.allocatable = {{"cpu", Quantity::FromValue(64)}, {"pods", Quantity::FromValue(110)}};
  return std::make_shared<const Node>(std::move(node));
}

std::shared_ptr<const Pod> MakePod(std::string name, std::string node, ResourceList requests) {
  Pod pod;
  pod.meta.ns = "x";
  pod.meta.name = std::move(name);
  pod.node_name = std::move(node);
  pod.phase = "Running";
  pod.containers.push_back({"main", std::move(requests), {}, false});
  return std::make_shared<const Pod>(std::move(pod));
}

ResourceList Mig(std::string_view profile, int count = 1) {
  return {{"nvidia.com/mig-" + std::string(profile), Quantity::FromValue(count)}};
}

ClusterSnapshot Build(const std::vector<std::shared_ptr<const Node>>& nodes,
                      const std::vector<std::shared_ptr<const Pod>>& pods = {}) {
  return ClusterSnapshot::Build(nodes, pods, gpu::Catalogue::Builtin());
}

std::vector<std::string> Texts(const NodeInfo& info) {
  std::vector<std::string> texts;
  for (const Gpu& gpu : info.gpus.gpus) {
    for (const Instance& instance : gpu.instances) {
      texts.push_back(std::to_string(gpu.index) + "/" +
                      gpu.model->PlacementName(instance.placement) + (instance.used ? "!" : "") +
                      instance.pod);
    }
  }
  return texts;
}

TEST(SnapshotTest, SortsNodesAndSumsTheirPods) {
  auto finished = std::make_shared<Pod>(*MakePod("done", "b", {{"cpu", Quantity::FromValue(50)}}));
  finished->phase = "Succeeded";
  const ClusterSnapshot snapshot =
      Build({MakeNode("b", 0), MakeNode("a", 0)},
            {MakePod("p2", "b", {{"cpu", Quantity::FromValue(2)}}),
             MakePod("p1", "b", {{"cpu", Quantity::FromMilli(500)}}), finished,
             MakePod("lost", "gone", {}), MakePod("waiting", "", {})});
  ASSERT_EQ(snapshot.size(), 2u);
  EXPECT_EQ(snapshot.node(0).node->meta.name, "a");
  const NodeInfo& b = *snapshot.Find("b");
  EXPECT_EQ(&b, &snapshot.node(1));
  EXPECT_EQ(b.requested.Get(kCpu), 2500);
  EXPECT_EQ(b.requested.Get(kPods), 2);
  EXPECT_EQ(b.allocatable.Get(kCpu), 64000);
  EXPECT_EQ(b.pods.at(0)->meta.name, "p1");
  EXPECT_EQ(snapshot.Find("c"), nullptr);
  EXPECT_EQ(ClusterSnapshot().Find("a"), nullptr);
  EXPECT_EQ(ClusterSnapshot().size(), 0u);
}

TEST(SnapshotTest, UsesTheLaterOfTwoObjectsWithOneName) {
  const ClusterSnapshot snapshot = Build({MakeNode("a", 1), MakeNode("a", 2)},
                                         {MakePod("p", "a", {{"cpu", Quantity::FromValue(1)}}),
                                          MakePod("p", "a", {{"cpu", Quantity::FromValue(3)}})});
  ASSERT_EQ(snapshot.size(), 1u);
  EXPECT_EQ(snapshot.node(0).gpus.gpus.size(), 2u);
  EXPECT_EQ(snapshot.node(0).requested.Get(kCpu), 3000);
  EXPECT_EQ(snapshot.node(0).requested.Get(kPods), 1);
}

TEST(SnapshotTest, PodsTakeReportedUsedInstancesFirst) {
  const Annotations status{{"status-layout-0", "1g.5gb@0:free,1g.5gb@1:used,1g.5gb@2:free"}};
  EXPECT_THAT(Texts(Build({MakeNode("a", 1, status)}, {MakePod("p", "a", Mig("1g.5gb"))}).node(0)),
              ElementsAre("0/1g.5gb@0", "0/1g.5gb@1!x/p", "0/1g.5gb@2"));
  EXPECT_THAT(Texts(Build({MakeNode("a", 1, status)},
                          {MakePod("q", "a", Mig("1g.5gb")), MakePod("p", "a", Mig("1g.5gb"))})
                        .node(0)),
              ElementsAre("0/1g.5gb@0!x/q", "0/1g.5gb@1!x/p", "0/1g.5gb@2"));
}

TEST(SnapshotTest, PodsHoldTheInstancesInTheStatus) {
  const auto node = MakeNode("n", 1,
                             {{"status-layout-0", "1g.5gb@0:used,1g.5gb@1:used,1g.5gb@5:used"},
                              {"status-holders-0", "1g.5gb@0=x/gone,1g.5gb@1=x/b,1g.5gb@5=x/a"}});
  const ClusterSnapshot snapshot =
      Build({node}, {MakePod("a", "n", Mig("1g.5gb")), MakePod("b", "n", Mig("1g.5gb"))});
  EXPECT_THAT(Texts(*snapshot.Find("n")),
              ElementsAre("0/1g.5gb@0!", "0/1g.5gb@1!x/b", "0/1g.5gb@5!x/a"));
  const ClusterSnapshot other =
      Build({node}, {MakePod("a", "n", Mig("3g.20gb")), MakePod("c", "n", Mig("1g.5gb", 2))});
  EXPECT_THAT(Texts(*other.Find("n")),
              ElementsAre("0/1g.5gb@0!x/c", "0/1g.5gb@1!x/c", "0/1g.5gb@5!"))
      << "a pod of that name asks for something else";
}

// Vacate frees the pod's instances; Return gives each pod its instance back.
TEST(SnapshotTest, VacateFreesTheInstancesOfThePod) {
  const auto node = MakeNode("n", 1,
                             {{"status-layout-0", "1g.5gb@0:used,1g.5gb@1:used,1g.5gb@5:used"},
                              {"status-holders-0", "1g.5gb@0=x/a,1g.5gb@1=x/c,1g.5gb@5=x/b"}});
  const auto a = MakePod("a", "n", Mig("1g.5gb")), b = MakePod("b", "n", Mig("1g.5gb")),
             c = MakePod("c", "n", Mig("1g.5gb"));
  ClusterSnapshot snapshot = Build({node}, {a, b, c});
  const std::vector<std::string> before = Texts(*snapshot.Find("n"));
  ClusterSnapshot unbound = snapshot;
  ASSERT_TRUE(unbound.Unbind(*b, "n").ok());
  EXPECT_THAT(Texts(*unbound.Find("n")),
              ElementsAre("0/1g.5gb@0!x/a", "0/1g.5gb@1!x/c", "0/1g.5gb@5!"))
      << "used until the agent says otherwise";
  const auto of_b = snapshot.Vacate(*b, "n"), of_c = snapshot.Vacate(*c, "n");
  ASSERT_TRUE(of_b.ok() && of_c.ok());
  EXPECT_THAT(Texts(*snapshot.Find("n")),
              ElementsAre("0/1g.5gb@0!x/a", "0/1g.5gb@1", "0/1g.5gb@5"));
  EXPECT_EQ(snapshot.Find("n")->pods.size(), 1u);
  EXPECT_EQ(snapshot.Vacate(*b, "n").status().code(), Code::kNotFound);
  ASSERT_TRUE(snapshot.Return(c, "n", *of_c).ok());
  ASSERT_TRUE(snapshot.Return(b, "n", *of_b).ok());
  EXPECT_EQ(Texts(*snapshot.Find("n")), before);
}

TEST(SnapshotTest, SlicesOfOnePodMaySpanGpus) {
  const ClusterSnapshot snapshot = Build(
      {MakeNode("a", 2,
                {{"status-layout-0", "3g.20gb@0:free"}, {"status-layout-1", "3g.20gb@4:free"}})},
      {MakePod("p", "a", Mig("3g.20gb", 2))});
  EXPECT_THAT(Texts(snapshot.node(0)), ElementsAre("0/3g.20gb@0!x/p", "1/3g.20gb@4!x/p"));
  EXPECT_FALSE(snapshot.node(0).gpus.gpus[0].assumed_starts);
}

TEST(SnapshotTest, AssumesUnreportedInstanceWhereTheSpecRequestsIt) {
  const ClusterSnapshot snapshot = Build({MakeNode("a", 2,
                                                   {{"status-layout-0", "1g.5gb@0:used"},
                                                    {"status-layout-1", "7g.40gb@0:free"},
                                                    {"spec-layout-0", "1g.5gb@0"},
                                                    {"spec-layout-1", "3g.20gb@4"}})},
                                         {MakePod("p", "a", Mig("3g.20gb"))});
  EXPECT_THAT(Texts(snapshot.node(0)), ElementsAre("0/1g.5gb@0!", "1/3g.20gb@4!x/p"));
  EXPECT_TRUE(snapshot.node(0).gpus.gpus[1].assumed_starts);
}

TEST(SnapshotTest, AssumesUnreportedInstanceBesideFreeOnesWithoutSpec) {
  const ClusterSnapshot snapshot = Build(
      {MakeNode("a", 2,
                {{"status-layout-0", "7g.40gb@0:free"}, {"status-layout-1", "1g.5gb@0:free"}})},
      {MakePod("p", "a", Mig("3g.20gb", 2)), MakePod("q", "a", Mig("7g.40gb"))});
  EXPECT_THAT(Texts(snapshot.node(0)),
              ElementsAre("0/3g.20gb@0!x/p", "1/1g.5gb@0", "1/3g.20gb@4!x/p"));
  EXPECT_THAT(snapshot.node(0).gpus.problems,
              ElementsAre("pod x/q holds 1 of nvidia.com/mig-7g.40gb, but no GPU of the node shows "
                          "or has room for them all"));
}

TEST(SnapshotTest, ForkDoesNotChangeTheOriginal) {
  std::vector<std::shared_ptr<const Node>> nodes;
  nodes.reserve(200);
  for (int i = 0; i < 200; ++i) {
    nodes.push_back(MakeNode("n" + std::to_string(1000 + i), 1,
                             {{"status-layout-0", "1g.5gb@0:used,1g.5gb@1:free"}}));
  }
  const ClusterSnapshot original = Build(nodes);
  ClusterSnapshot fork = original;
  ASSERT_TRUE(fork.Bind(MakePod("p", "", Mig("1g.5gb")), "n1130").ok());
  EXPECT_THAT(Texts(*original.Find("n1130")), ElementsAre("0/1g.5gb@0!", "0/1g.5gb@1"));
  EXPECT_THAT(Texts(*fork.Find("n1130")), ElementsAre("0/1g.5gb@0!", "0/1g.5gb@1!x/p"));
  EXPECT_EQ(fork.Find("n1130")->requested.Get(kPods), 1);
  EXPECT_EQ(original.Find("n1130")->requested.Get(kPods), 0);
  for (size_t i = 0; i < original.size(); ++i) {
    EXPECT_EQ(&original.node(i) == &fork.node(i), i != 130) << i;
  }
  EXPECT_EQ(fork.Bind(MakePod("p", "", {}), "gone").code(), Code::kNotFound);
}

TEST(SnapshotTest, AddsNodesInOrderWithoutChangingForks) {
  ClusterSnapshot snapshot;
  std::vector<ClusterSnapshot> forks;
  const auto name = [](int i) { return "n" + std::to_string(1000 + i); };
  const auto set = [&](int i) {
    auto node = std::make_shared<Node>();
    node->meta.name = name(i);
    snapshot.SetNode(node);
    if (i % 20 == 0) forks.push_back(snapshot);
  };
  for (int i = 1; i < 150; ++i) set(i);
  set(0);
  for (int i = 150; i < 200; ++i) set(i);
  for (const ClusterSnapshot& one : forks) {
    EXPECT_FALSE(one.IndexOf(name(static_cast<int>(one.size()) + 1)).has_value());
  }
  ASSERT_EQ(snapshot.size(), 200u);
  for (size_t i = 0; i < snapshot.size(); ++i) {
    EXPECT_EQ(snapshot.node(i).node->meta.name, name(static_cast<int>(i)));
    EXPECT_EQ(snapshot.IndexOf(name(static_cast<int>(i))), i);
  }
}

TEST(SnapshotTest, SetGpusChangesAllocatable) {
  ClusterSnapshot snapshot = Build({MakeNode("a", 1, {{"status-layout-0", "7g.40gb@0:free"}})});
  const Node repartitioned =
      *MakeNode("a", 1, {{"status-layout-0", "3g.20gb@0:free,3g.20gb@4:free"}});
  ASSERT_TRUE(snapshot.SetGpus("a", ReadNodeGpus(repartitioned, gpu::Catalogue::Builtin())).ok());
  EXPECT_EQ(snapshot.node(0).allocatable.Get(InternResource("nvidia.com/mig-3g.20gb")), 2);
  EXPECT_EQ(snapshot.node(0).allocatable.Get(InternResource("nvidia.com/mig-7g.40gb")), 0);
  EXPECT_EQ(snapshot.node(0).allocatable.Get(kCpu), 64000);
  EXPECT_EQ(snapshot.SetGpus("b", {}).code(), Code::kNotFound);
}

std::vector<int> Indexes(const NodeInfo& info) {
  std::vector<int> indexes;
  for (const Gpu& gpu : info.gpus.gpus) indexes.push_back(gpu.index);
  return indexes;
}

std::shared_ptr<const Node> WithWholeGpus(const std::shared_ptr<const Node>& node, int count) {
  Node more = *node;
  more.allocatable[std::string(kWholeGpuResource)] = Quantity::FromValue(count);
  return std::make_shared<const Node>(std::move(more));
}

ResourceList Whole(int count) {
  return {{std::string(kWholeGpuResource), Quantity::FromValue(count)}};
}

std::vector<int> Fixed(const NodeInfo& info) {
  std::vector<int> indexes;
  for (const Gpu& gpu : info.gpus.gpus) {
    if (gpu.fixed) indexes.push_back(gpu.index);
  }
  return indexes;
}

TEST(SnapshotTest, DoesNotRepartitionGpusThatPodsMayHoldWhole) {
  // The agent does not report GPU 0, as for a GPU that is held whole; GPU 2 is empty or has MIG
  // off.
  const auto node = WithWholeGpus(
      MakeNode("a", 3, {{"status-layout-1", "7g.40gb@0:free"}, {"status-layout-2", ""}}), 2);
  const auto held = [&](int count) {
    return Build({node}, {MakePod("p", "a", Whole(count))}).node(0);
  };
  EXPECT_THAT(Indexes(held(1)), ElementsAre(1, 2));
  EXPECT_THAT(Fixed(held(1)), ElementsAre()) << "the pod's GPU is the unreported one";
  EXPECT_THAT(held(1).gpus.problems,
              testing::Contains("pods hold whole GPUs here (nvidia.com/gpu: 1): the 1 that may be "
                                "theirs are not partitioned"));
  EXPECT_EQ(held(1).allocatable.Get(InternResource(kWholeGpuResource)), 1) << "its own";
  EXPECT_THAT(Indexes(held(2)), ElementsAre(1, 2));
  EXPECT_THAT(Fixed(held(2)), ElementsAre(2)) << "one pod's GPU is not reported yet";
  EXPECT_THAT(held(2).gpus.problems, ElementsAre("pods hold whole GPUs here (nvidia.com/gpu: 2): "
                                                 "the 2 that may be theirs are not partitioned"));
  EXPECT_EQ(held(2).allocatable.Get(InternResource(kWholeGpuResource)), 2);
  EXPECT_THAT(Fixed(held(0)), ElementsAre()) << "nobody holds any";
}

TEST(SnapshotTest, GpuWithOnlyAssumedInstancesMayBeHeldWhole) {
  const auto node = WithWholeGpus(MakeNode("a", 1, {{"status-layout-0", ""}}), 1);
  const NodeInfo info =
      Build({node}, {MakePod("p", "a", Whole(1)), MakePod("q", "a", Mig("1g.5gb"))}).node(0);
  EXPECT_THAT(Fixed(info), ElementsAre(0));
}

TEST(SnapshotTest, PartitionableGpusAreNotAllocatableAsWholeGpus) {
  const ResourceId whole = InternResource(kWholeGpuResource);
  const auto free = [&](const std::shared_ptr<const Node>& node) {
    const NodeInfo info = Build({node}).node(0);
    EXPECT_EQ(info.gpus.gpus.size(), info.gpus.managed ? 2u : 0u);
    return info.allocatable.Get(whole);
  };
  EXPECT_EQ(free(WithWholeGpus(MakeNode("a", 2), 2)), 0);
  EXPECT_EQ(free(WithWholeGpus(MakeNode("a", 2), 5)), 3);
  EXPECT_EQ(free(WithWholeGpus(MakeNode("a", 2, {{"status-layout-0", ""}}), 1)), 0);
  EXPECT_EQ(
      free(WithWholeGpus(MakeNode("a", 2, {{"status-layout-0", ""}, {"status-layout-1", ""}}), 1)),
      0)
      << "either may have its MIG mode off";
  EXPECT_EQ(free(WithWholeGpus(MakeNode("a", 2,
                                        {{"status-layout-0", "7g.40gb@0:free"},
                                         {"status-layout-1", "7g.40gb@0:free"}}),
                               1)),
            1);
  EXPECT_THAT(Build({WithWholeGpus(MakeNode("a", 2), 2)}).node(0).gpus.problems,
              ElementsAre("0 of its 2 GPUs can serve pods that request nvidia.com/gpu: nos may "
                          "partition the 2 without a known instance"));
  Node unmanaged = *MakeNode("a", 2);
  unmanaged.meta.labels.erase(std::string(kPartitioningLabel));
  EXPECT_EQ(free(WithWholeGpus(std::make_shared<const Node>(std::move(unmanaged)), 2)), 2);
}

TEST(SnapshotTest, HugeRequestsTerminate) {
  const Quantity most = *Quantity::Parse("9223372036854775807");
  const ClusterSnapshot snapshot =
      Build({MakeNode("a", 1)}, {MakePod("p", "a", {{"nvidia.com/mig-1g.5gb", most}})});
  EXPECT_EQ(Texts(snapshot.node(0)).size(), 7u);
  EXPECT_EQ(snapshot.node(0).gpus.problems.size(), 1u);
}

// The complete content of a snapshot as text.
std::vector<std::string> Everything(const ClusterSnapshot& snapshot) {
  std::vector<std::string> lines;
  for (size_t i = 0; i < snapshot.size(); ++i) {
    const NodeInfo& info = snapshot.node(i);
    std::string line = info.node->meta.name + " " + info.node->meta.resource_version + " " +
                       std::to_string(info.scored.cpu) + " " + std::to_string(info.scored.memory) +
                       " " + std::to_string(info.with_affinity) + " " +
                       std::to_string(info.with_required_anti_affinity);
    std::map<std::string, int64_t> amounts;
    for (const auto& [id, amount] : info.requested.entries()) amounts[ResourceName(id)] = amount;
    for (const auto& [name, amount] : amounts) line += " " + name + "=" + std::to_string(amount);
    std::set<std::string> pods;
    for (const auto& pod : info.pods) pods.insert(pod->Key() + "@" + pod->meta.resource_version);
    for (const std::string& pod : pods) line += " " + pod;
    for (const std::string& text : Texts(info)) line += " " + text;
    std::multiset<int> ports;
    for (const HostPort& port : info.ports) ports.insert(port.port);
    for (const int port : ports) line += " :" + std::to_string(port);
    lines.push_back(std::move(line));
    EXPECT_EQ(snapshot.Find(info.node->meta.name), &info);
  }
  return lines;
}

// A snapshot after single changes equals a snapshot built from the final state.
TEST(SnapshotTest, SingleChangesMatchFullBuild) {
  Random random(11);
  std::map<std::string, std::shared_ptr<const Node>> nodes;
  std::map<std::string, std::shared_ptr<const Pod>> pods;
  ClusterSnapshot snapshot = Build({});
  const auto pick = [&](const auto& from) {
    return std::next(from.begin(), static_cast<ptrdiff_t>(random.Below(from.size())))->second;
  };
  for (int step = 0; step < 3000; ++step) {
    const ClusterSnapshot before = snapshot;
    const std::vector<std::string> text = step % 10 == 0 ? Everything(before) : Everything({});
    switch (random.Below(6)) {
      case 0: {
        auto node = std::make_shared<Node>(
            *MakeNode("n" + std::to_string(random.Below(100)), static_cast<int>(random.Below(2))));
        node->meta.resource_version = std::to_string(step);
        nodes[node->meta.name] = node;
        snapshot.SetNode(node);
        break;
      }
      case 1: {
        if (nodes.empty() || random.Below(4) != 0) break;
        const std::string name = pick(nodes)->meta.name;
        snapshot.RemoveNode(name);
        nodes.erase(name);
        std::erase_if(pods, [&](const auto& item) { return item.second->node_name == name; });
        break;
      }
      case 2: {
        if (pods.empty()) break;
        const auto pod = pick(pods);
        ASSERT_TRUE(snapshot.Unbind(*pod, pod->node_name).ok());
        ASSERT_EQ(snapshot.Unbind(*pod, pod->node_name).code(), Code::kNotFound);
        pods.erase(pod->Key());
        break;
      }
      case 3: {
        if (pods.empty()) break;
        auto pod = std::make_shared<Pod>(*pick(pods));
        pod->meta.resource_version = std::to_string(step);
        if (random.Below(2) == 0) pod->containers[0].requests["cpu"] = Quantity::FromValue(step);
        pods[pod->Key()] = pod;
        ASSERT_TRUE(snapshot.UpdatePod(pod).ok());
        break;
      }
      default: {
        if (nodes.empty()) break;
        const auto node = pick(nodes);
        auto pod = std::make_shared<Pod>(*MakePod("p" + std::to_string(step), node->meta.name,
                                                  {{"cpu", Quantity::FromValue(1)}}));
        if (random.Below(2) == 0) {
          pod->containers[0].host_ports = {{static_cast<int32_t>(random.Below(3)), "", "TCP"}};
        }
        if (random.Below(2) == 0) pod->pod_affinity.preferred.push_back({1, {}});
        if (random.Below(2) == 0) pod->pod_anti_affinity.required.emplace_back();
        pods[pod->Key()] = pod;
        ASSERT_TRUE(snapshot.Bind(pod, node->meta.name).ok());
      }
    }
    if (step % 10 != 0) continue;
    std::vector<std::shared_ptr<const Node>> all_nodes;
    for (const auto& [name, node] : nodes) all_nodes.push_back(node);
    std::vector<std::shared_ptr<const Pod>> all_pods;
    for (const auto& [name, pod] : pods) all_pods.push_back(pod);
    ASSERT_EQ(Everything(snapshot), Everything(Build(all_nodes, all_pods))) << step;
    ASSERT_EQ(Everything(before), text);  // the fork does not see the changes
  }
}

TEST(SnapshotTest, AddsAndRemovesManyNodesAtOnce) {
  ClusterSnapshot snapshot = Build({MakeNode("b", 1)}, {MakePod("p", "b", {})});
  const ClusterSnapshot before = snapshot;
  snapshot.AddNodes({MakeNode("c", 2), MakeNode("a/new-0", 1), MakeNode("a", 0)});
  ASSERT_EQ(snapshot.size(), 4U);
  EXPECT_EQ(snapshot.node(0).node->meta.name, "a");
  EXPECT_EQ(snapshot.node(1).node->meta.name, "a/new-0");
  EXPECT_EQ(snapshot.Find("b")->pods.size(), 1U);
  EXPECT_EQ(snapshot.Find("c")->gpus.gpus.size(), 2U);
  snapshot.KeepNodes([](const NodeInfo& info) { return !info.pods.empty(); });
  ASSERT_EQ(snapshot.size(), 1U);
  EXPECT_NE(snapshot.Find("b"), nullptr);
  EXPECT_EQ(snapshot.Find("c"), nullptr);
  EXPECT_EQ(before.size(), 1U);
  ClusterSnapshot empty;
  empty.AddNodes({MakeNode("a", 1)});
  EXPECT_EQ(empty.size(), 1U);
}

TEST(SnapshotTest, CountsPodsWithoutContainersAndSharedHostPorts) {
  auto pod = std::make_shared<Pod>(*MakePod("p", "a", {}));
  pod->containers.clear();
  EXPECT_EQ(Build({MakeNode("a", 0)}, {pod}).node(0).scored, ScoredRequests());
  pod->containers = {{"c", {}, {}, false, "", {{80, "", "TCP"}}}};
  pod->init_containers = {{"once", {}, {}, false, "", {{81, "", "TCP"}}},
                          {"sidecar", {}, {}, true, "", {{82, "", "UDP"}}}};
  EXPECT_THAT(HostPortsOf(*pod), ElementsAre(HostPort{80, "", "TCP"}, HostPort{82, "", "UDP"}));
  ClusterSnapshot snapshot = Build({MakeNode("a", 0)}, {pod});
  auto twin = std::make_shared<Pod>(*pod);
  twin->meta.name = "q";
  ASSERT_TRUE(snapshot.Bind(twin, "a").ok());
  EXPECT_EQ(snapshot.node(0).ports.size(), 4U);
  ASSERT_TRUE(snapshot.Unbind(*pod, "a").ok());
  EXPECT_THAT(snapshot.node(0).ports,
              ElementsAre(HostPort{80, "", "TCP"}, HostPort{82, "", "UDP"}));
}

TEST(SnapshotTest, RemovingPodWithSaturatedRequestsRestoresSums) {
  auto honest = MakePod("honest", "a", {{"memory", Quantity::FromValue(int64_t{6} << 30)}});
  auto huge = MakePod("huge", "a", {{"memory", Quantity::FromValue(INT64_MAX)}});
  for (const bool vacated : {false, true}) {
    ClusterSnapshot snapshot = Build({MakeNode("a", 0)}, {honest, huge});
    const Status gone =
        vacated ? snapshot.Vacate(*huge, "a").status() : snapshot.Unbind(*huge, "a");
    ASSERT_TRUE(gone.ok());
    EXPECT_EQ(snapshot.node(0).requested.Get(kMemory), int64_t{6} << 30);
    EXPECT_EQ(snapshot.node(0).scored, ScoredRequestsOf(*honest));
  }
}

TEST(HostPortsTest, PortOnEveryAddressConflictsWithAnyAddress) {
  const HostPorts taken = {{80, "", "TCP"}, {81, "1.1.1.1", "TCP"}, {81, "3.3.3.3", "TCP"}};
  EXPECT_TRUE(IsTaken({80, "2.2.2.2", "TCP"}, taken));
  EXPECT_FALSE(IsTaken({80, "", "UDP"}, taken));
  EXPECT_TRUE(IsTaken({81, "", "TCP"}, taken));
  EXPECT_TRUE(IsTaken({81, "3.3.3.3", "TCP"}, taken));
  EXPECT_FALSE(IsTaken({81, "2.2.2.2", "TCP"}, taken));
  EXPECT_FALSE(IsTaken({82, "", "TCP"}, taken));
}

TEST(SnapshotTest, ForksHaveTheirOwnClusterContext) {
  ClusterSnapshot snapshot = Build({});
  EXPECT_TRUE(snapshot.context().namespaces.rows().empty());
  EXPECT_EQ(snapshot.ShareContext(), nullptr) << "nobody has looked";
  snapshot.ChangeContext().namespaces.Set("a", std::make_shared<const Namespace>());
  ClusterSnapshot fork = snapshot;
  fork.ChangeContext().namespaces.Set("a", nullptr);
  EXPECT_NE(snapshot.context().namespaces.Find("a"), nullptr);
  EXPECT_EQ(fork.context().namespaces.Find("a"), nullptr);
  const auto shared = snapshot.ShareContext();
  snapshot.ChangeContext().namespaces.Set("a", nullptr);
  EXPECT_NE(shared->namespaces.Find("a"), nullptr);
}

}  // namespace
}  // namespace nos::cluster
