#include "cluster/node_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codec/yaml.h"

namespace nos::cluster {
namespace {

using ::testing::HasSubstr;

Json Parsed(const std::string& yaml) { return ParseYaml(yaml)->front(); }

constexpr const char* kNeeded =
    "cpu: 96, memory: 1Ti, max: 4, nodeSelector: {pool: a}, scaleTargetRef: {apiVersion: "
    "cluster.x-k8s.io/v1beta1, kind: MachineDeployment, namespace: infra, name: gpu}";

Status Read(const std::string& spec, NodePool& pool) {
  return ReadNodePool(Parsed("metadata: {name: a100}\nspec: {" + spec + "}"), pool);
}

TEST(NodePoolTest, ReadsAllFields) {
  NodePool pool;
  const Status status = ReadNodePool(Parsed(R"(
apiVersion: nos.nebuly.com/v1alpha1
kind: NodePool
metadata: {name: a100-spot}
spec:
  gpu: {model: H100-80GB, count: 8, partitioning: hybrid, memory: 80Gi, timeSlices: 4}
  cpu: 96
  memory: 1Ti
  pods: 200
  resources: {rdma/hca: 4}
  labels: {zone: a}
  taints: [{key: nvidia.com/gpu, value: present, effect: NoSchedule}]
  min: 1
  max: 20
  price: "12.25"
  startSeconds: 240
  scaleTargetRef: {apiVersion: cluster.x-k8s.io/v1beta1, kind: MachineDeployment, namespace: infra,
                   name: gpu-spot}
  deleteAnnotation: cluster.x-k8s.io/delete-machine
  nodeSelector: {pool: a100-spot}
status: {nodes: 3, wanted: 5, conditions: [{type: Growing, status: "True"}]})"),
                                     pool);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(pool.gpu.model, "H100-80GB");
  EXPECT_EQ(pool.gpu.count, 8);
  EXPECT_EQ(pool.gpu.partitioning, SharingMode::kHybrid);
  EXPECT_EQ(pool.gpu.memory.Value(), int64_t{80} << 30);
  EXPECT_EQ(pool.gpu.time_slices, 4);
  EXPECT_EQ(pool.resources.at("cpu").Value(), 96);
  EXPECT_EQ(pool.resources.at("pods").Value(), 200);
  EXPECT_EQ(pool.resources.at("rdma/hca").Value(), 4);
  EXPECT_EQ(pool.labels, (StringMap{{"pool", "a100-spot"}, {"zone", "a"}}));
  EXPECT_EQ(pool.taints.at(0).key, "nvidia.com/gpu");
  EXPECT_EQ(pool.min, 1);
  EXPECT_EQ(pool.max, 20);
  EXPECT_EQ(MilliPriceOf(pool), 12'250);
  EXPECT_EQ(pool.start_seconds, 240);
  EXPECT_EQ(pool.target.kind, "MachineDeployment");
  EXPECT_EQ(pool.target.ns + "/" + pool.target.name, "infra/gpu-spot");
  EXPECT_EQ(pool.delete_annotation, kDeleteMachine);
  EXPECT_EQ(pool.nodes, 3);
  EXPECT_EQ(pool.wanted, 5);
  EXPECT_NE(FindCondition(pool.conditions, "Growing"), nullptr);
}

// max: 0 disables a NodePool without deleting it.
TEST(NodePoolTest, MaxMayBeZero) {
  NodePool pool;
  ASSERT_TRUE(
      Read("cpu: 1, memory: 1Gi, max: 0, nodeSelector: {pool: a}, signal: Pods", pool).ok());
  EXPECT_EQ(pool.max, 0);
}

TEST(NodePoolTest, AppliesDefaultsToOptionalFields) {
  NodePool pool;
  const Status status = Read(kNeeded, pool);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(pool.gpu.count, 0);
  EXPECT_EQ(pool.gpu.partitioning, SharingMode::kNone);
  EXPECT_EQ(pool.resources.at("pods").Value(), 110);
  EXPECT_EQ(pool.min, 0);
  EXPECT_EQ(pool.start_seconds, 300);
  EXPECT_EQ(MilliPriceOf(pool), 0);
  EXPECT_TRUE(pool.webhook.empty());
}

TEST(NodePoolTest, MatchesNodesByAllSelectorLabels) {
  NodePool pool;
  ASSERT_TRUE(Read("cpu: 1, memory: 1Gi, max: 1, nodeSelector: {pool: a, tier: gpu}, webhook: "
                   "{url: 'https://scaler.infra:8443/pools/a'}",
                   pool)
                  .ok());
  Node node;
  node.meta.labels = {{"pool", "a"}};
  EXPECT_FALSE(IsOf(pool, node));
  node.meta.labels["tier"] = "gpu";
  EXPECT_TRUE(IsOf(pool, node));
  node.meta.labels["pool"] = "b";
  EXPECT_FALSE(IsOf(pool, node));
  EXPECT_FALSE(IsOf(NodePool(), node));
}

struct Mistake {
  const char *spec, *message;
};

class NodePoolMistakeTest : public ::testing::TestWithParam<Mistake> {};

TEST_P(NodePoolMistakeTest, IsReportedWithItsField) {
  NodePool pool;
  const Status status = Read(GetParam().spec, pool);
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_THAT(status.message(), HasSubstr(GetParam().message)) << GetParam().spec;
}

#define NOS_TARGET "scaleTargetRef: {apiVersion: a.io/v1, kind: Set, name: s}"
#define NOS_POOL "cpu: 1, memory: 1Gi, max: 3, nodeSelector: {a: b}, "

INSTANTIATE_TEST_SUITE_P(
    All, NodePoolMistakeTest,
    ::testing::Values(
        Mistake{"", "spec.max: is missing"}, Mistake{"cpu: 0", "spec.cpu: must be more than 0"},
        Mistake{"memory: 0", "spec.memory: must be more than 0"},
        Mistake{"cpu: many", "spec.cpu: "}, Mistake{"cpu: -1", "spec.cpu: must not be negative"},
        Mistake{"cpu: 1, memory: 1Gi", "spec.max: is missing"},
        Mistake{"cpu: 1, memory: 1Gi, min: 2, max: 1", "spec.max: must be at least min (2)"},
        Mistake{"cpu: 1, memory: 1Gi, max: 10001", "spec.max: must be from 0 to 10000"},
        Mistake{"cpu: 1, memory: 1Gi, max: 1", "spec: needs one of scaleTargetRef"},
        Mistake{"cpu: 1, memory: 1Gi, max: 1, " NOS_TARGET ", webhook: {url: 'http://x'}",
                "and no two of them"},
        Mistake{"cpu: 1, memory: 1Gi, max: 1, " NOS_TARGET, "spec.nodeSelector: is missing"},
        Mistake{NOS_POOL "labels: {a: c}, " NOS_TARGET, "spec.labels: 'a' is 'c' here"},
        Mistake{NOS_POOL "labels: {'-': c}, " NOS_TARGET, "spec.labels: '-' is no label's name"},
        Mistake{NOS_POOL "labels: {x: 'a b'}, " NOS_TARGET, "spec.labels: 'a b' is no label's"},
        Mistake{NOS_POOL "taints: [{key: a, effect: Never}], " NOS_TARGET,
                "spec.taints[0]: effect 'Never' is none of"},
        Mistake{NOS_POOL "pods: 0, " NOS_TARGET, "spec.pods: must be from 1"},
        Mistake{NOS_POOL "price: 2000000, " NOS_TARGET, "spec.price: must be 1000000"},
        Mistake{NOS_POOL "startSeconds: -1, " NOS_TARGET, "spec.startSeconds: must be from 0"},
        Mistake{NOS_POOL "gpu: {count: 65}, " NOS_TARGET, "spec.gpu.count: must be from 0 to 64"},
        Mistake{NOS_POOL "gpu: {count: 1}, " NOS_TARGET, "spec.gpu: needs either model"},
        Mistake{NOS_POOL "gpu: {model: A30}, " NOS_TARGET, "spec.gpu.count: must be at least 1"},
        Mistake{NOS_POOL "gpu: {model: A30, product: x, count: 1}, " NOS_TARGET, "and not both"},
        Mistake{NOS_POOL "gpu: {partitioning: all}, " NOS_TARGET, "is none of none, mig, mps"},
        Mistake{NOS_POOL "gpu: {model: A30, count: 1, timeSlices: 2}, " NOS_TARGET,
                "spec.gpu.timeSlices: is for partitioning: hybrid"},
        Mistake{NOS_POOL "labels: {nos.nebuly.com/gpu-partitioning: mig}, " NOS_TARGET,
                "spec.gpu.partitioning: is none, but label"},
        Mistake{NOS_POOL "resources: {cpu: 2}, " NOS_TARGET, "'cpu' has a field of its own"},
        Mistake{NOS_POOL "resources: {pods: 2}, " NOS_TARGET, "'pods' has a field of its own"},
        Mistake{NOS_POOL "resources: {nvidia.com/gpu: 2}, " NOS_TARGET, "follows from gpu"},
        Mistake{NOS_POOL "resources: {nvidia.com/mig-1g.5gb: 2}, " NOS_TARGET, "follows from gpu"},
        Mistake{NOS_POOL "webhook: {url: 'ftp://x'}", "spec.webhook.url: 'ftp://x' is no http"},
        Mistake{NOS_POOL "webhook: {url: 'https://u:p@x/'}", "without a password"},
        Mistake{NOS_POOL "webhook: {url: 'https:///x'}", "spec.webhook.url"},
        Mistake{NOS_POOL "webhook: {url: 'http://x'}, deleteAnnotation: a", "deleteAnnotation: is"},
        Mistake{NOS_POOL "scaleTargetRef: {apiVersion: a/b/c, kind: Set, name: s}",
                "spec.scaleTargetRef.apiVersion: 'a/b/c'"},
        Mistake{NOS_POOL "scaleTargetRef: {apiVersion: v1, kind: Set, name: '../x'}",
                "spec.scaleTargetRef.name"},
        Mistake{NOS_POOL "scaleTargetRef: {apiVersion: v1, kind: a/b, name: x}",
                "spec.scaleTargetRef.kind"},
        Mistake{NOS_POOL "scaleTargetRef: {apiVersion: v1, kind: Set, namespace: A, name: x}",
                "spec.scaleTargetRef.namespace"},
        Mistake{NOS_POOL "deleteAnnotation: 'a b', " NOS_TARGET, "spec.deleteAnnotation: 'a b'"}));

TEST(NodePoolTest, LearnsOmittedFields) {
  NodePool pool;
  const std::string rest = "max: 3, nodeSelector: {a: b}, webhook: {url: 'http://x'}";
  ASSERT_TRUE(Read("cpu: 1, memory: 1Gi, " + rest, pool).ok());
  EXPECT_FALSE(pool.learns) << "no GPUs is what it says";
  ASSERT_TRUE(Read("cpu: 1, " + rest, pool).ok());
  EXPECT_TRUE(pool.learns);
  EXPECT_FALSE(pool.gpu_specified);
  EXPECT_FALSE(pool.taints_specified);
  EXPECT_FALSE(pool.resources.contains("pods"));
  ASSERT_TRUE(Read("gpu: {count: 0}, taints: [], " + rest, pool).ok());
  EXPECT_TRUE(pool.gpu_specified);
  EXPECT_TRUE(pool.taints_specified);
  // The properties of its nodes are not known yet.
  const Status labelled = Read("labels: {nos.nebuly.com/gpu-partitioning: mig}, " + rest, pool);
  EXPECT_TRUE(labelled.ok()) << labelled.message();
}

TEST(NodePoolTest, NeedsAName) {
  NodePool pool;
  EXPECT_EQ(ReadNodePool(Parsed(std::string("spec: {") + kNeeded + "}"), pool).message(),
            "metadata.name: is missing, or no object's");
}

}  // namespace
}  // namespace nos::cluster
