#include "cluster/node_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codec/yaml.h"

namespace nos::cluster {
namespace {

using ::testing::ElementsAre;
using ::testing::Key;

class NodeTemplateTest : public ::testing::Test {
 protected:
  NodeTemplateTest() {
    pool_.meta.name = "a";
    pool_.labels = pool_.node_selector = {{"pool", "a"}};
    pool_.learns = true;
    pool_.gpu_specified = pool_.taints_specified = false;
  }
  cluster::Node& Node(const std::string& name, const std::string& cpu = "8",
                      const std::string& memory = "32Gi") {
    auto node = std::make_shared<cluster::Node>();
    node->meta.name = name;
    node->meta.labels = {{"pool", "a"}, {"kubernetes.io/hostname", name}};
    node->conditions = {{"Ready", "True", "", "", {}}};
    node->allocatable = {{"cpu", *Quantity::Parse(cpu)},
                         {"memory", *Quantity::Parse(memory)},
                         {"pods", Quantity::FromValue(110)}};
    nodes_.push_back(node);
    return *node;
  }
  cluster::Node& GpuNode(const std::string& name, const std::string& partitioning) {
    cluster::Node& node = Node(name);
    node.meta.labels["nvidia.com/gpu.product"] = "NVIDIA-H100-80GB-HBM3";
    node.meta.labels["nvidia.com/gpu.count"] = "8";
    node.meta.labels["nvidia.com/gpu.memory"] = "81559";
    if (!partitioning.empty()) node.meta.labels["nos.nebuly.com/gpu-partitioning"] = partitioning;
    return node;
  }
  cluster::Pod& Pod(const std::string& node, const std::string& owner, const std::string& cpu) {
    auto pod = std::make_shared<cluster::Pod>();
    pod->node_name = node;
    pod->phase = "Running";
    pod->meta.owners = {{"v1", owner, "x", "x", true}};
    pod->containers.emplace_back();
    pod->containers[0].requests = {{"cpu", *Quantity::Parse(cpu)}};
    pods_.push_back(pod);
    return *pod;
  }
  std::optional<NodeTemplate> Learned() const { return RecordTemplate(pool_, nodes_, pods_); }
  // The cpu of the learned template; "" if there is none.
  std::string Cpu() const {
    const auto known = Learned();
    return known ? known->resources.at("cpu").ToString() : "";
  }

  NodePool pool_;
  std::vector<std::shared_ptr<const cluster::Node>> nodes_;
  std::vector<std::shared_ptr<const cluster::Pod>> pods_;
};

TEST_F(NodeTemplateTest, LearnsNothingWithoutNodes) {
  EXPECT_FALSE(Learned());
  Node("other").meta.labels["pool"] = "b";
  EXPECT_FALSE(Learned());
  EXPECT_FALSE(IsDescribed(WithTemplate(pool_)));
  EXPECT_EQ(
      WhyNotDescribed(),
      "has no node yet to learn from: give spec.cpu and spec.memory (and spec.gpu), or one node");
}

TEST_F(NodeTemplateTest, LearnsOnlyFromNodesThatAcceptPods) {
  Node("a").conditions[0].status = "Unknown";
  Node("b").unschedulable = true;
  Node("c").meta.deleted = Time{};
  for (const char* key :
       {"node.kubernetes.io/not-ready", "ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted",
        "node.cluster.x-k8s.io/uninitialized", "ebs.csi.aws.com/agent-not-ready"}) {
    Node(key).taints = {{key, "", "NoSchedule"}};
  }
  EXPECT_EQ(Cpu(), "");
  Node("z").taints = {{"DeletionCandidateOfClusterAutoscaler", "1", "PreferNoSchedule"}};
  EXPECT_EQ(Cpu(), "8");
  EXPECT_TRUE(Learned()->taints.empty());
}

TEST_F(NodeTemplateTest, SubtractsDaemonSetAndStaticPods) {
  Node("n").allocatable["rdma/hca"] = Quantity::FromValue(4);
  Pod("n", "DaemonSet", "500m");
  Pod("n", "Node", "250m");
  Pod("n", "ReplicaSet", "4");
  Pod("m", "DaemonSet", "1");
  Pod("n", "DaemonSet", "2").phase = "Failed";
  const auto known = Learned();
  ASSERT_TRUE(known);
  EXPECT_EQ(known->resources.at("cpu").ToString(), "7250m");
  EXPECT_EQ(known->resources.at("pods").Value(), 108);
  EXPECT_EQ(known->resources.at("rdma/hca").Value(), 4);
}

TEST_F(NodeTemplateTest, ExcludesGpuResourcesFromResources) {
  cluster::Node& node = GpuNode("n", "mig");
  node.allocatable["nvidia.com/mig-1g.10gb"] = Quantity::FromValue(7);
  node.allocatable["nvidia.com/gpu"] = Quantity::FromValue(8);
  const auto known = Learned();
  ASSERT_TRUE(known);
  EXPECT_THAT(known->resources, ElementsAre(Key("cpu"), Key("memory"), Key("pods")));
  EXPECT_EQ(known->gpu.product, "NVIDIA-H100-80GB-HBM3");
  EXPECT_EQ(known->gpu.count, 8);
  EXPECT_EQ(known->gpu.partitioning, SharingMode::kMig);
  EXPECT_EQ(known->gpu.memory.Value(), int64_t{81559} << 20);
  EXPECT_THAT(known->labels, ElementsAre(Key("pool"))) << "the others follow from its GPUs";
}

TEST_F(NodeTemplateTest, CountsAllocatableWholeGpus) {
  GpuNode("n", "").allocatable["nvidia.com/gpu"] = Quantity::FromValue(6);
  EXPECT_EQ(Learned()->gpu.count, 6);
  nodes_.clear();
  GpuNode("n", "");
  EXPECT_EQ(Learned()->gpu, PoolGpus()) << "its device plugin gives none";
}

TEST_F(NodeTemplateTest, ReadsTimeSlicesFromTheAgentsStatus) {
  cluster::Node& node = GpuNode("n", "hybrid");
  EXPECT_EQ(Learned()->gpu.time_slices, 0);
  node.meta.annotations["nos.nebuly.com/status-model-0"] = "H100-80GB+GPU+TIME-4";
  EXPECT_EQ(Learned()->gpu.time_slices, 4);
  node.meta.annotations["nos.nebuly.com/status-model-0"] = "H100-80GB+GPU+TIME-999";
  EXPECT_EQ(Learned()->gpu.time_slices, 7);
}

TEST_F(NodeTemplateTest, IgnoresNodesWithoutGpuLabels) {
  Node("n").meta.labels["nos.nebuly.com/gpu-partitioning"] = "mig";
  EXPECT_FALSE(Learned());
}

TEST_F(NodeTemplateTest, KeepsLabelsThatAllNodesShare) {
  const auto label = [](cluster::Node& node, const char* zone) {
    node.meta.labels["topology.kubernetes.io/zone"] = zone;
    node.meta.labels["tier"] = "gpu";
    node.meta.labels["example.com/machine"] = node.meta.name;
    node.meta.labels["nvidia.com/mig-1g.5gb.count"] = "7";
  };
  label(Node("n1"), "z1");
  EXPECT_THAT(Learned()->labels,
              ElementsAre(Key("pool"), Key("tier"), Key("topology.kubernetes.io/zone")));
  label(Node("n2"), "z2");
  pool_.learned = Learned();
  EXPECT_THAT(pool_.learned->labels, ElementsAre(Key("pool"), Key("tier")));
  nodes_.pop_back();
  EXPECT_THAT(Learned()->labels, ElementsAre(Key("pool"), Key("tier")))
      << "the next node may be in the other zone again";
}

TEST_F(NodeTemplateTest, KeepsPermanentTaints) {
  Node("n").taints = {{"nvidia.com/gpu", "present", "NoSchedule"},
                      {"dedicated", "ml", "NoExecute"},
                      {"soft", "", "PreferNoSchedule"}};
  EXPECT_THAT(Learned()->taints, ElementsAre(Taint{"dedicated", "ml", "NoExecute"},
                                             Taint{"nvidia.com/gpu", "present", "NoSchedule"}));
}

TEST_F(NodeTemplateTest, UsesMostCommonShapeAndMinimumOfAlikeNodes) {
  Node("c", "8", "32Gi");
  Node("b", "8", "31Gi");
  Node("a", "64", "256Gi");
  const auto known = Learned();
  ASSERT_TRUE(known);
  EXPECT_EQ(known->resources.at("cpu").Value(), 8);
  EXPECT_EQ(known->resources.at("memory").ToBinaryString(), "31Gi");
  nodes_.erase(nodes_.begin());
  EXPECT_EQ(Cpu(), "64") << "of as many the first by name";
}

TEST_F(NodeTemplateTest, KeepsStoredTemplateWhileANodeMatchesIt) {
  Node("big", "64");
  pool_.learned = Learned();
  Node("a", "8");
  Node("b", "8");
  EXPECT_EQ(Cpu(), "64");
  nodes_.erase(nodes_.begin());
  EXPECT_EQ(Cpu(), "8");
  nodes_.clear();
  EXPECT_EQ(Cpu(), "64") << "with no node it is what is remembered";
}

TEST_F(NodeTemplateTest, SpecTakesPrecedence) {
  GpuNode("n", "mig").meta.labels["tier"] = "gpu";
  pool_.learned = Learned();
  pool_.resources = {{"cpu", Quantity::FromValue(4)}};
  pool_.labels["tier"] = "mine";
  NodePool made = WithTemplate(pool_);
  EXPECT_TRUE(IsDescribed(made));
  EXPECT_EQ(made.gpu.count, 8);
  EXPECT_EQ(made.resources.at("cpu").Value(), 4);
  EXPECT_EQ(made.resources.at("memory").ToBinaryString(), "32Gi");
  EXPECT_EQ(made.labels.at("tier"), "mine");
  pool_.gpu_specified = true;
  EXPECT_EQ(WithTemplate(pool_).gpu.count, 0);
  pool_.learns = false;
  made = WithTemplate(pool_);
  EXPECT_FALSE(made.resources.contains("memory"));
}

TEST_F(NodeTemplateTest, DescribesEachPoolByItsOwnNodes) {
  NodePool second = pool_;
  second.meta.name = "b";
  Node("n");
  const auto made =
      Described({std::make_shared<const NodePool>(pool_), std::make_shared<const NodePool>(second)},
                nodes_, pods_);
  ASSERT_EQ(made.size(), 2U);
  EXPECT_TRUE(IsDescribed(*made[0]));
  EXPECT_FALSE(IsDescribed(*made[1])) << "the node is the first's";
}

// The NodePool as the API server would return it with this template.
NodePool ReadBack(const Json& known) {
  Json object = ParseYaml(
                    "metadata: {name: a}\nspec: {max: 1, nodeSelector: {pool: a}, webhook: "
                    "{url: 'http://x'}}")
                    ->front();
  MakeObject(object, "status")["template"] = known;
  NodePool pool;
  const Status status = ReadNodePool(object, pool);
  EXPECT_TRUE(status.ok()) << status.message();
  return pool;
}

TEST_F(NodeTemplateTest, TemplateSurvivesRoundTrip) {
  cluster::Node& node = GpuNode("n", "hybrid");
  node.meta.annotations["nos.nebuly.com/status-model-0"] = "H100-80GB+GPU+TIME-4";
  node.taints = {{"nvidia.com/gpu", "", "NoSchedule"}};
  node.allocatable["ephemeral-storage"] = *Quantity::Parse("1500m");
  const auto known = Learned();
  ASSERT_TRUE(known);
  EXPECT_EQ(ReadBack(JsonOf(*known)).learned, known);
}

TEST_F(NodeTemplateTest, PatchRemovesMissingFields) {
  Node("n").meta.labels["tier"] = "gpu";
  const auto known = Learned();
  nodes_.clear();
  Node("n", "16");
  const auto to = Learned();
  const Json patch = PatchOf(known, to);
  EXPECT_EQ(WriteJson(patch), R"({"cpu":"16","labels":{"tier":null}})");
  EXPECT_EQ(PatchOf(std::nullopt, to), JsonOf(*to));
  EXPECT_TRUE(PatchOf(known, std::nullopt).is_null());
}

TEST_F(NodeTemplateTest, UnusableTemplateIsIgnoredAndReplaced) {
  for (const char* yaml :
       {"{}", "cpu: 1", "{cpu: 1, memory: -1}", "{cpu: 1, memory: 1, labels: {'-': x}}",
        "{cpu: 1, memory: 1, resources: {nvidia.com/gpu: 8}}",
        "{cpu: 1, memory: 1, resources: {nvidia.com/mig-1g.5gb: 8}}",
        "{cpu: 1, memory: 1, pods: 1000000}", "{cpu: 1, memory: 1, taints: [{key: a}]}",
        "{cpu: 1, memory: 1, gpu: {count: 1, partitioning: mig}}",
        "{cpu: 1, memory: 1, labels: {nos.nebuly.com/gpu-partitioning: mps}}"}) {
    const NodePool pool = ReadBack(ParseYaml(yaml)->front());
    EXPECT_EQ(pool.learned, NodeTemplate()) << yaml;
    EXPECT_FALSE(IsDescribed(WithTemplate(pool))) << yaml;
    EXPECT_FALSE(RecordTemplate(pool, {}, {})) << yaml;
    EXPECT_TRUE(PatchOf(pool.learned, NodeTemplate{{}, {{"cpu", Quantity()}}, {}, {}}).is_null());
  }
}

}  // namespace
}  // namespace nos::cluster
