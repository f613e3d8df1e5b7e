// Files that describe a virtual cluster: accepted content, and the errors for other content.
#include <gtest/gtest.h>

#include "sim/cluster_file.h"
#include "sim/workload.h"

namespace nos::sim {
namespace {

std::string Refusal(std::string_view text) {
  return ReadWorkload(text, "w.yaml").status().message();
}

TEST(WorkloadFileTest, ReadsPodsWithArrivalsInOrder) {
  const auto workload = ReadWorkload(R"(
kind: Pod
metadata: {name: late, annotations: {sim.nos.nebuly.com/arrival-seconds: "2.5"}}
spec: {containers: [{name: c, image: i}]}
---
kind: List
items:
- {kind: Pod, metadata: {name: first}, spec: {containers: [{name: c, image: i}]}}
)",
                                     "w.yaml");
  ASSERT_TRUE(workload.ok()) << workload.status().ToString();
  ASSERT_EQ(workload->size(), 2u);
  EXPECT_EQ(FindString((*workload)[0].object, "metadata", "name"), "first");
  EXPECT_EQ((*workload)[1].at, Duration(std::chrono::milliseconds(2500)));
  EXPECT_EQ(FindString((*workload)[1].object, "metadata", "namespace"), "default");
}

TEST(WorkloadFileTest, ObjectsThatPodsReferToComeFirst) {
  const auto workload = ReadWorkload(R"(
apiVersion: v1
kind: Pod
metadata: {name: a, namespace: team}
spec: {priorityClassName: high, containers: [{name: c, image: i}]}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 100
---
apiVersion: v1
kind: Namespace
metadata: {name: team}
)",
                                     "w.yaml");
  ASSERT_TRUE(workload.ok()) << workload.status().ToString();
  ASSERT_EQ(workload->size(), 3u);
  EXPECT_EQ(FindString((*workload)[2].object, "kind"), "Pod");
}

TEST(WorkloadFileTest, RefusesObjectsThatTheServerRefusesWithTheirField) {
  const std::string refusal = Refusal(R"(
kind: Pod
metadata: {name: good}
spec: {containers: [{name: c, image: i}]}
---
kind: List
items:
- kind: Pod
  metadata: {name: a}
  spec:
    containers:
    - name: c
      image: i
      resources: {limits: {nvidia.com/mig-1g.5gb: "1"}, requests: {nvidia.com/mig-1g.5gb: "2"}}
)");
  EXPECT_EQ(refusal,
            "w.yaml: document 2, item 1: Pod a: the API server refuses it: Pod \"a\" is invalid: "
            "spec.containers[0].resources.requests: Invalid value: \"2\": must be equal to "
            "nvidia.com/mig-1g.5gb limit of 1");
}

TEST(WorkloadFileTest, RefusesFilesWithoutRunnablePods) {
  EXPECT_EQ(Refusal(""), "w.yaml: there is no Pod in it, so nothing would run");
  EXPECT_EQ(Refusal("kind: Namespace\nmetadata: {name: n}"),
            "w.yaml: there is no Pod in it, so nothing would run");
  EXPECT_EQ(Refusal("{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}}"),
            "w.yaml: document 1: Deployment web: kind: nothing in the sandbox acts on a "
            "Deployment; write the pods themselves (kind: Pod), and PriorityClass, Namespace, "
            "ElasticQuota, NodePool or ResourceClaim where they need one");
  EXPECT_EQ(Refusal("metadata: {name: web}"),
            "w.yaml: document 1: kind: is missing, so this is no Kubernetes object");
  EXPECT_EQ(Refusal("[1]"), "w.yaml: document 1: this is not a Kubernetes object");
}

TEST(WorkloadFileTest, ClaimsComeBeforePodsInTheDefaultNamespace) {
  const auto workload = ReadWorkload(R"(
kind: Pod
metadata: {name: a}
spec:
  resourceClaims: [{name: c, resourceClaimTemplateName: small}]
  containers: [{name: c, image: i, resources: {claims: [{name: c}]}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: small}
spec: {spec: {devices: {requests: [{name: r, exactly: {deviceClassName: mig.nvidia.com}}]}}}
)",
                                     "w.yaml");
  ASSERT_TRUE(workload.ok()) << workload.status().ToString();
  ASSERT_EQ(workload->size(), 2u);
  EXPECT_EQ(FindString((*workload)[0].object, "kind"), "ResourceClaimTemplate");
  EXPECT_EQ(FindString((*workload)[0].object, "metadata", "namespace"), "default");
}

TEST(WorkloadFileTest, NodePoolsComeBeforePods) {
  const auto workload = ReadWorkload(R"(
kind: Pod
metadata: {name: a}
spec: {containers: [{name: c, image: i}]}
---
apiVersion: nos.nebuly.com/v1alpha1
kind: NodePool
metadata: {name: a100}
spec: {cpu: 8, memory: 16Gi, max: 2, nodeSelector: {pool: a}, webhook: {url: "http://x"}}
)",
                                     "w.yaml");
  ASSERT_TRUE(workload.ok()) << workload.status().ToString();
  ASSERT_EQ(workload->size(), 2u);
  EXPECT_EQ(FindString((*workload)[0].object, "kind"), "NodePool");
}

TEST(WorkloadFileTest, RefusesInvalidTimesAndDuplicateNames) {
  EXPECT_EQ(Refusal("kind: Pod\nmetadata: {name: a, annotations: "
                    "{sim.nos.nebuly.com/run-seconds: soon}}"),
            "w.yaml: document 1: Pod a: metadata.annotations[sim.nos.nebuly.com/run-seconds]: "
            "expected seconds, got 'soon'");
  const std::string pod =
      "kind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c, image: i}]}\n";
  EXPECT_EQ(Refusal(pod + "---\n" + pod),
            "w.yaml: document 2: Pod a: metadata.name: there is one of this name already");
}

TEST(ClusterFileTest, RefusesNodesThatTheServerRefuses) {
  const auto read = [](std::string_view text) {
    return ReadCluster(text, "c.yaml", gpu::Catalogue::Builtin()).status().message();
  };
  const std::string node = "apiVersion: v1\nkind: Node\nmetadata: {name: a}\n";
  EXPECT_EQ(read(node + "---\n" + node),
            "c.yaml: Node a: it is given twice; give every object once");
  EXPECT_EQ(read("apiVersion: v1\nkind: Node\nmetadata: {name: A_b}\n"),
            "c.yaml: Node A_b: the API server refuses it: Node \"A_b\" is invalid: metadata.name: "
            "Invalid value: \"A_b\": a lowercase RFC 1123 subdomain must consist of lower case "
            "alphanumeric characters, '-' or '.', and must start and end with an alphanumeric "
            "character (e.g. 'example.com')");
}

TEST(ClusterFileTest, ReadsNodesThatShareGpusByMps) {
  const auto nodes = ReadCluster(R"(
apiVersion: v1
kind: Node
metadata:
  name: ours
  labels: {nos.nebuly.com/gpu-partitioning: mps, nvidia.com/gpu.count: "1", nvidia.com/gpu.product: Tesla-T4}
  annotations: {nos.nebuly.com/status-model-0: MPS-14GB, nos.nebuly.com/status-layout-0: "10gb@3:used"}
---
apiVersion: v1
kind: Node
metadata:
  name: new
  labels: {nos.nebuly.com/gpu-partitioning: mps, nvidia.com/gpu.count: "1", nvidia.com/gpu.product: NVIDIA-A100-SXM4-40GB}
)",
                                 "c.yaml", gpu::Catalogue::Builtin());
  ASSERT_TRUE(nodes.ok()) << nodes.status().ToString();
  ASSERT_EQ(nodes->size(), 2u);
  const NodeSpec& ours = (*nodes)[0];
  EXPECT_TRUE(ours.mps && ours.managed);
  ASSERT_EQ(ours.gpus.size(), 1u);
  EXPECT_EQ(ours.gpus[0].model, "MPS-14GB");
  ASSERT_EQ(ours.gpus[0].instances.size(), 1u);
  EXPECT_EQ(ours.gpus[0].instances[0].placement, "10gb@3");
  EXPECT_TRUE(ours.gpus[0].instances[0].used);
  EXPECT_TRUE((*nodes)[1].mps);
  EXPECT_EQ((*nodes)[1].gpus[0].model, "NVIDIA-A100-SXM4-40GB");
}

// The agent reads labels with the older prefix too.
TEST(ClusterFileTest, ReadsPartitioningLabelsWithOlderPrefix) {
  const auto nodes = ReadCluster(R"(
apiVersion: v1
kind: Node
metadata:
  name: shared
  labels: {n8s.nebuly.ai/gpu-partitioning: mps, nvidia.com/gpu.count: "1", nvidia.com/gpu.product: NVIDIA-A100-SXM4-40GB}
---
apiVersion: v1
kind: Node
metadata:
  name: partitioned
  labels: {n8s.nebuly.ai/auto-mig-enabled: "true", nvidia.com/gpu.count: "1", nvidia.com/gpu.product: NVIDIA-A100-SXM4-40GB}
)",
                                 "c.yaml", gpu::Catalogue::Builtin());
  ASSERT_TRUE(nodes.ok()) << nodes.status().ToString();
  ASSERT_EQ(nodes->size(), 2u);
  for (const NodeSpec& node : *nodes) {
    EXPECT_TRUE(node.managed) << node.name;
    EXPECT_EQ(node.mps, node.name == "shared");
  }
}

}  // namespace
}  // namespace nos::sim
