#include "cluster/objects.h"

#include <gtest/gtest.h>

#include "cluster/resources.h"
#include "codec/yaml.h"

namespace nos::cluster {
namespace {

Result<Objects> Read(std::string_view text) { return ReadObjects(text, "file.yaml"); }

Pod ReadPod(std::string_view yaml) {
  const auto objects = Read(yaml);
  EXPECT_TRUE(objects.ok()) << objects.status().ToString();
  return objects.ok() && objects->pods.size() == 1 ? objects->pods.front() : Pod{};
}

std::string ErrorOf(std::string_view text) {
  const auto objects = Read(text);
  EXPECT_FALSE(objects.ok());
  EXPECT_EQ(objects.status().code(), Code::kInvalid);
  return objects.status().message();
}

// A Pod as kubectl prints it, with unknown fields at every level.
constexpr std::string_view kPod = R"(
apiVersion: v1
kind: Pod
metadata:
  annotations: {note: "7"}
  creationTimestamp: "2026-01-02T03:04:05Z"
  deletionTimestamp: "2026-01-02T04:04:05Z"
  generateName: web-
  labels: {app: web}
  managedFields: [{manager: kubectl, fieldsV1: {"f:spec": {}}}]
  name: web-1
  namespace: team-a
  ownerReferences:
  - {apiVersion: apps/v1, blockOwnerDeletion: true, controller: true, kind: ReplicaSet, name: web, uid: u1}
  resourceVersion: "123"
  uid: abc
spec:
  affinity:
    nodeAffinity:
      preferredDuringSchedulingIgnoredDuringExecution:
      - preference: {matchExpressions: [{key: zone, operator: In, values: [a]}]}
        weight: 10
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
        - matchExpressions: [{key: gpu, operator: Exists}]
          matchFields: [{key: metadata.name, operator: In, values: [n1]}]
    podAffinity: {whatever: [1]}
  containers:
  - image: x
    name: main
    resources:
      limits: {nvidia.com/mig-1g.5gb: 1, memory: 1Gi}
      requests: {cpu: 500m, memory: 1Gi, nvidia.com/mig-1g.5gb: "1"}
  - name: side
    resources: {requests: {cpu: 0.25}}
  initContainers:
  - {name: proxy, restartPolicy: Always, resources: {requests: {cpu: 100m}}}
  nodeName: n1
  nodeSelector: {disk: ssd}
  overhead: {cpu: 10m}
  priority: 1000
  priorityClassName: high
  schedulerName: nos-scheduler
  schedulingGates: [{name: example.com/wait}]
  tolerations:
  - {effect: NoExecute, key: node.kubernetes.io/not-ready, operator: Exists, tolerationSeconds: 300}
status:
  conditions:
  - {lastProbeTime: null, lastTransitionTime: "2026-01-02T03:04:06Z", message: no, reason: Unschedulable, status: "False", type: PodScheduled}
  nominatedNodeName: n2
  phase: Pending
)";

TEST(DecodePodTest, ReadsAllUsedFields) {
  const Pod pod = ReadPod(kPod);
  EXPECT_EQ(pod.Key(), "team-a/web-1");
  EXPECT_EQ(pod.meta.uid, "abc");
  EXPECT_EQ(pod.meta.resource_version, "123");
  EXPECT_EQ(pod.meta.labels, (StringMap{{"app", "web"}}));
  EXPECT_EQ(pod.meta.annotations, (StringMap{{"note", "7"}}));
  EXPECT_EQ(FormatTime(pod.meta.created), "2026-01-02T03:04:05Z");
  EXPECT_TRUE(pod.meta.deleted.has_value());
  ASSERT_EQ(pod.meta.owners.size(), 1u);
  EXPECT_EQ(pod.meta.owners[0].kind, "ReplicaSet");
  EXPECT_TRUE(pod.meta.owners[0].controller);
  EXPECT_EQ(pod.node_name, "n1");
  EXPECT_EQ(pod.scheduler_name, "nos-scheduler");
  EXPECT_EQ(pod.priority_class, "high");
  EXPECT_EQ(pod.priority, 1000);
  EXPECT_EQ(pod.node_selector, (StringMap{{"disk", "ssd"}}));
  const NodeAffinity affinity = pod.node_affinity.value_or(NodeAffinity{});
  const std::vector<NodeSelectorTerm> required =
      affinity.required.value_or(std::vector<NodeSelectorTerm>{});
  EXPECT_EQ(required.at(0).match_fields.at(0).values.at(0), "n1");
  EXPECT_EQ(affinity.preferred.at(0).weight, 10);
  EXPECT_EQ(pod.tolerations.at(0).op, "Exists");
  EXPECT_EQ(pod.containers.size(), 2u);
  EXPECT_TRUE(pod.init_containers.at(0).restart_always);
  EXPECT_EQ(pod.scheduling_gates, std::vector<std::string>{"example.com/wait"});
  EXPECT_EQ(pod.nominated_node, "n2");
  ASSERT_NE(pod.FindCondition("PodScheduled"), nullptr);
  EXPECT_EQ(pod.FindCondition("PodScheduled")->reason, "Unschedulable");
  EXPECT_EQ(pod.FindCondition("Ready"), nullptr);
}

TEST(DecodePodTest, AppliesDefaultsOfTheApiServer) {
  const auto json = ParseJson(R"({"metadata":{"name":"a","creationTimestamp":null},"spec":null})");
  const Pod pod = *DecodePod(*json);
  EXPECT_EQ(pod.Key(), "default/a");
  EXPECT_EQ(pod.scheduler_name, "default-scheduler");
  EXPECT_EQ(pod.phase, "Pending");
  EXPECT_FALSE(pod.Finished());
}

TEST(DecodeNodeTest, ReadsAllUsedFields) {
  const auto objects = Read(R"(
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {zone: a}}
spec: {unschedulable: true, taints: [{key: k, value: v, effect: NoSchedule, timeAdded: null}]}
status:
  allocatable: {cpu: "8", memory: 32Gi, pods: 110, nvidia.com/mig-1g.5gb: "7"}
  capacity: {cpu: 8}
  conditions: [{type: Ready, status: "True"}]
  nodeInfo: {kubeletVersion: v1.34.0}
)");
  ASSERT_TRUE(objects.ok()) << objects.status().ToString();
  const Node& node = objects->nodes.at(0);
  EXPECT_TRUE(node.unschedulable);
  EXPECT_EQ(node.taints.at(0).effect, "NoSchedule");
  EXPECT_EQ(node.allocatable.at("memory").Value(), int64_t{32} << 30);
  EXPECT_EQ(node.allocatable.at("pods").Value(), 110);
  EXPECT_EQ(node.capacity.at("cpu").MilliValue(), 8000);
  EXPECT_EQ(node.conditions.at(0).type, "Ready");
}

TEST(ReadObjectsTest, ReadsListsSingleObjectsAndSeveralDocuments) {
  const auto objects = Read(R"(
apiVersion: v1
kind: List
metadata: {resourceVersion: ""}
items:
- {apiVersion: v1, kind: Node, metadata: {name: n1}}
- {apiVersion: v1, kind: Pod, metadata: {name: a, namespace: x}, spec: {containers: [{}]}}
- {apiVersion: v1, kind: Service, metadata: {name: s}}
- {apiVersion: longhorn.io/v1beta2, kind: Node, metadata: {name: not-ours}, spec: []}
---
---
apiVersion: v1
kind: PodList
items: [{metadata: {name: b, namespace: x}, spec: {containers: [{}]}}]
---
apiVersion: v1
kind: Pod
metadata: {name: c}
spec: {containers: [{}]}
)");
  ASSERT_TRUE(objects.ok()) << objects.status().ToString();
  ASSERT_EQ(objects->pods.size(), 3u);
  EXPECT_EQ(objects->pods[1].Key(), "x/b");
  EXPECT_EQ(objects->nodes.size(), 1u);
  EXPECT_EQ(objects->ignored, 2u);
}

TEST(ReadObjectsTest, ReadsJsonOfKubectl) {
  const auto objects = Read(R"({"apiVersion":"v1","kind":"List","items":[
      {"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"},
       "status":{"allocatable":{"cpu":2.5,"memory":1024}}}]})");
  ASSERT_TRUE(objects.ok()) << objects.status().ToString();
  EXPECT_EQ(objects->nodes.at(0).allocatable.at("cpu").MilliValue(), 2500);
  EXPECT_TRUE(Read("").ok());
  EXPECT_TRUE(Read("{kind: List}").ok());
}

TEST(ReadObjectsTest, ErrorsNameFileDocumentItemAndField) {
  EXPECT_EQ(ErrorOf("---\n{kind: Node, metadata: {name: n}}\n---\nkind: List\nitems:\n"
                    "- {kind: Node, metadata: {name: n}}\n"
                    "- kind: Pod\n  metadata: {name: b, namespace: a}\n"
                    "  spec: {containers: [{name: x}, {resources: {requests: {cpu: x}}}]}\n"),
            "file.yaml: document 2, item 2 (Pod a/b): spec.containers[1].resources.requests[cpu]: "
            "'x' is not a quantity (examples: 500m, 2, 16Gi)");
  EXPECT_EQ(ErrorOf("{kind: Pod, metadata: {name: 7}}"),
            "file.yaml: document 1 (Pod without a name): metadata.name: must be a string, not a "
            "number");
  EXPECT_EQ(ErrorOf("{kind: Node, metadata: {name: n, labels: {a: 1}}}"),
            "file.yaml: document 1 (Node n): metadata.labels[a]: must be a string, not a number");
  EXPECT_EQ(ErrorOf("{kind: Node, metadata: {}}"),
            "file.yaml: document 1 (Node without a name): metadata.name: is missing");
  EXPECT_EQ(ErrorOf("{kind: Pod, metadata: {name: a}, spec: {containers: {}}}"),
            "file.yaml: document 1 (Pod a): spec.containers: must be a list, not an object");
  EXPECT_EQ(ErrorOf("{kind: Pod, metadata: {name: a}, spec: {priority: 9999999999}}"),
            "file.yaml: document 1 (Pod a): spec.priority: does not fit into 32 bits");
  EXPECT_EQ(ErrorOf("{kind: Pod, metadata: {name: a}, spec: {overhead: {cpu: -1}}}"),
            "file.yaml: document 1 (Pod a): spec.overhead[cpu]: must not be negative");
  EXPECT_EQ(ErrorOf("a: 1"),
            "file.yaml: document 1: kind: is missing, so this is not a Kubernetes object");
  EXPECT_EQ(ErrorOf("{kind: List, items: 3}"), "file.yaml: document 1: items: must be a list");
  EXPECT_NE(ErrorOf("{\"kind\": ").find("file.yaml: JSON"), std::string::npos);
  EXPECT_EQ(ErrorOf("a: ["),
            "file.yaml: YAML document 1, line 1, column 1: end of sequence flow not found");
  EXPECT_NE(ErrorOf("{kind: Pod, metadata: {name: a, creationTimestamp: soon}}")
                .find("metadata.creationTimestamp"),
            std::string::npos);
}

int64_t Cpu(std::string_view spec) {
  const Pod pod = ReadPod("kind: Pod\nmetadata: {name: a}\nspec:\n" + std::string(spec));
  return ResourceVector::From(PodRequests(pod)).Get(kCpu);
}

TEST(PodRequestsTest, SumsContainersAndUsesLimitsForMissingRequests) {
  const ResourceList total = PodRequests(ReadPod(kPod));
  EXPECT_EQ(total.at("cpu").MilliValue(), 500 + 250 + 100 + 10);
  EXPECT_EQ(total.at("nvidia.com/mig-1g.5gb").Value(), 1);
  EXPECT_EQ(total.at("memory").Value(), int64_t{1} << 30);
  EXPECT_EQ(Cpu("  containers: [{resources: {limits: {cpu: 2}}}]"), 2000);
  EXPECT_EQ(Cpu("  containers: [{resources: {limits: {cpu: 2}, requests: {cpu: 1}}}]"), 1000);
}

TEST(PodRequestsTest, InitContainersCountOneByOneWithEarlierSidecars) {
  const std::string main = "  containers: [{resources: {requests: {cpu: 2}}}]\n";
  const std::string one = "{resources: {requests: {cpu: 1}}}";
  const std::string three = "{resources: {requests: {cpu: 3}}}";
  const std::string sidecar = "{restartPolicy: Always, resources: {requests: {cpu: 1}}}";
  const auto with = [&](const std::string& init) {
    return Cpu(main + "  initContainers: [" + init + "]");
  };
  EXPECT_EQ(with(one + "," + one), 2000);
  EXPECT_EQ(with(three), 3000);
  EXPECT_EQ(with(sidecar), 3000);
  EXPECT_EQ(with(sidecar + "," + three), 4000);
  EXPECT_EQ(with(three + "," + sidecar), 3000);
  EXPECT_EQ(with(sidecar + "," + three + "," + sidecar), 4000);
  EXPECT_EQ(Cpu(main + "  overhead: {cpu: 1}\n  initContainers: [" + three + "]"), 4000);
}

TEST(PodRequestsTest, PodLevelResourcesReplaceTheSum) {
  const std::string main = "  containers: [{resources: {requests: {cpu: 2, x.com/d: 1}}}]\n";
  EXPECT_EQ(Cpu(main + "  resources: {requests: {cpu: 5}}"), 5000);
  EXPECT_EQ(Cpu(main + "  resources: {limits: {cpu: 5}}"), 2000);
  EXPECT_EQ(Cpu("  containers: [{name: a}]\n  resources: {limits: {cpu: 5}}"), 5000);
  EXPECT_EQ(Cpu(main + "  resources: {requests: {cpu: 5}}\n  overhead: {cpu: 1}"), 6000);
}

TEST(ResourceVectorTest, AddsSubtractsAndDropsZero) {
  const auto make = [](const ResourceList& list) { return ResourceVector::From(list); };
  ResourceVector a =
      make({{"cpu", Quantity::FromMilli(1500)}, {"x.com/gpu", Quantity::FromValue(2)}});
  const ResourceVector b =
      make({{"cpu", Quantity::FromMilli(500)}, {"memory", Quantity::FromValue(9)}});
  a.Add(b);
  EXPECT_EQ(a.Get(kCpu), 2000);
  EXPECT_EQ(a.Get(kMemory), 9);
  a.Subtract(b);
  EXPECT_EQ(a.entries().size(), 2u);
  EXPECT_EQ(a, make({{"x.com/gpu", Quantity::FromValue(2)},
                     {"cpu", Quantity::FromMilli(1500)},
                     {"pods", Quantity()}}));
  EXPECT_EQ(ResourceName(InternResource("x.com/gpu")), "x.com/gpu");
  EXPECT_TRUE(IsSliceResource(InternResource("nvidia.com/mig-1g.5gb")));
  EXPECT_FALSE(IsSliceResource(InternResource("nvidia.com/gpu")));
}

TEST(ResourceVectorTest, SumsSaturate) {
  const Quantity most = *Quantity::Parse("9223372036854775807");
  ResourceVector a = ResourceVector::From({{"memory", most + most}});
  EXPECT_EQ(a.Get(kMemory), INT64_MAX);
  a.Add(a);
  EXPECT_EQ(a.Get(kMemory), INT64_MAX);
}

TEST(DecodePodTest, ReadsAffinityAndAntiAffinity) {
  const auto documents = ParseYaml(R"(
metadata: {name: p}
spec:
  affinity:
    podAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
      - labelSelector: {matchLabels: {app: db}}
        namespaces: [x]
        namespaceSelector: {}
        topologyKey: zone
    podAntiAffinity:
      preferredDuringSchedulingIgnoredDuringExecution:
      - {weight: 7, podAffinityTerm: {topologyKey: host}}
  topologySpreadConstraints:
  - {maxSkew: 2, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, minDomains: 3,
     labelSelector: {matchLabels: {app: web}}, nodeTaintsPolicy: Honor, matchLabelKeys: [v]}
  containers:
  - name: main
    image: web:1
    ports: [{containerPort: 80}, {containerPort: 81, hostPort: 8081, hostIP: 10.0.0.1, protocol: UDP}]
  volumes:
  - {name: a, persistentVolumeClaim: {claimName: data, readOnly: true}}
  - {name: b, ephemeral: {volumeClaimTemplate: {}}}
  - {name: c, gcePersistentDisk: {pdName: d}}
  - {name: e, rbd: {monitors: [m], image: i, readOnly: true}}
  - {name: f, emptyDir: {}}
  - {name: g, emptyDir: {medium: Memory}}
  - {name: h, hostPath: {path: /data}}
  preemptionPolicy: Never
  resourceClaims: [{name: gpu}]
  workloadRef: {name: w, podGroup: g, podGroupReplicaKey: r}
  schedulingGroup: {podGroupName: s}
status: {startTime: "2026-01-01T00:00:00Z"})");
  const auto pod = DecodePod(documents->front());
  ASSERT_TRUE(pod.ok()) << pod.status().message();
  const PodAffinityTerm& near = pod->pod_affinity.required.at(0);
  EXPECT_EQ(near.selector->match_labels.at("app"), "db");
  EXPECT_EQ(near.namespaces, std::vector<std::string>{"x"});
  EXPECT_TRUE(near.namespace_selector.has_value());
  EXPECT_EQ(near.topology_key, "zone");
  const PreferredPodTerm& far = pod->pod_anti_affinity.preferred.at(0);
  EXPECT_EQ(far.weight, 7);
  EXPECT_FALSE(far.term.selector.has_value());
  const TopologySpreadConstraint& spread = pod->spread.at(0);
  EXPECT_EQ(spread.max_skew, 2);
  EXPECT_EQ(spread.min_domains, 3);
  EXPECT_EQ(spread.node_affinity_policy, "Honor");
  EXPECT_EQ(spread.node_taints_policy, "Honor");
  EXPECT_EQ(spread.match_label_keys, std::vector<std::string>{"v"});
  const Container& container = pod->containers.at(0);
  EXPECT_EQ(container.image, "web:1");
  ASSERT_EQ(container.host_ports.size(), 1U);
  EXPECT_EQ(container.host_ports[0].port, 8081);
  EXPECT_EQ(container.host_ports[0].ip + container.host_ports[0].protocol, "10.0.0.1UDP");
  ASSERT_EQ(pod->volumes.size(), 7U);
  using enum Volume::Kind;
  EXPECT_EQ(pod->volumes[0].kind, kClaim);
  EXPECT_EQ(pod->volumes[0].source, "data");
  EXPECT_EQ(pod->volumes[1].kind, kEphemeral);
  EXPECT_EQ(pod->volumes[2].kind, kGcePersistentDisk);
  EXPECT_EQ(pod->volumes[3].source, "rbd/i");
  EXPECT_TRUE(pod->volumes[3].read_only);
  EXPECT_EQ(pod->volumes[4].kind, kOther);
  EXPECT_TRUE(pod->volumes[4].local);
  EXPECT_FALSE(pod->volumes[5].local);
  EXPECT_TRUE(pod->volumes[6].local);
  EXPECT_FALSE(pod->volumes[0].local);
  EXPECT_EQ(pod->preemption_policy, "Never");
  ASSERT_EQ(pod->claims.size(), 1U);
  EXPECT_EQ(pod->workload->name + pod->workload->pod_group + pod->workload->replica_key, "wgr");
  EXPECT_EQ(pod->scheduling_group, "s");
  EXPECT_TRUE(pod->started.has_value());
}

// The cpu that the pod counts with.
Quantity Resized(const std::string& spec, const std::string& status) {
  const auto documents = ParseYaml(
      "metadata: {name: p}\nspec: {containers: [{name: main, resources: {requests: {cpu: " + spec +
      "}}}]}\nstatus: {" + status + "}");
  const auto pod = DecodePod(documents->front());
  EXPECT_TRUE(pod.ok()) << pod.status().message();
  return PodRequests(*pod)["cpu"];
}

TEST(DecodePodTest, CountsAllocatedResourcesDuringResize) {
  const auto cpu = [](int64_t cores) { return Quantity::FromValue(cores); };
  const std::string held =
      "containerStatuses: [{name: main, allocatedResources: {cpu: 3}, resources: {requests: {cpu: "
      "2}}}]";
  EXPECT_EQ(Resized("1", held), cpu(3)) << "not given back yet";
  EXPECT_EQ(Resized("5", held), cpu(5)) << "not had yet";
  const std::string reason = ", conditions: [{type: PodResizePending, status: 'True', reason: ";
  EXPECT_EQ(Resized("5", held + reason + "Deferred}]"), cpu(5));
  EXPECT_EQ(Resized("5", held + reason + "Infeasible}]"), cpu(3)) << "never to be had";
  EXPECT_EQ(Resized("1", "containerStatuses: [{name: main, allocatedResources: {cpu: 3}}]"), cpu(1))
      << "its node does not report it";
  EXPECT_EQ(Resized("1", "containerStatuses: [{name: other, resources: {requests: {cpu: 3}}}]"),
            cpu(1));
}

TEST(DecodePodTest, EndsWithTheLastContainer) {
  const auto ended = [](const std::string& status) -> std::string {
    const auto documents = ParseYaml("metadata: {name: p}\nstatus: {" + status + "}");
    const auto pod = DecodePod(documents->front());
    EXPECT_TRUE(pod.ok()) << pod.status().message();
    return pod->ended ? FormatTime(*pod->ended) : "";
  };
  const auto end = [](const std::string& at, int code) {
    return "{name: c, state: {terminated: {exitCode: " + std::to_string(code) +
           ", finishedAt: " + (at.empty() ? "null" : "\"2026-01-01T00:00:" + at + "Z\"") + "}}}";
  };
  EXPECT_EQ(ended("containerStatuses: [" + end("05", 0) + ", " + end("09", 1) + ", " +
                  end("07", 0) + "]"),
            "2026-01-01T00:00:09Z");
  EXPECT_EQ(ended("containerStatuses: [" + end("", 0) + ", {name: d, state: {running: {}}}]"), "");
  // Init containers that succeeded ended before the pod's work began.
  EXPECT_EQ(ended("initContainerStatuses: [" + end("03", 0) + "]"), "");
  EXPECT_EQ(ended("initContainerStatuses: [" + end("03", 0) + ", " + end("04", 2) + "]"),
            "2026-01-01T00:00:04Z");
}

TEST(DecodePodTest, ResizesSidecarsButNotOtherInitContainers) {
  const auto documents = ParseYaml(R"(
metadata: {name: p}
spec:
  initContainers:
  - {name: once, resources: {requests: {cpu: 1}}}
  - {name: sidecar, restartPolicy: Always, resources: {requests: {cpu: 1}}}
  containers: [{name: main, resources: {requests: {cpu: 1}}}]
status:
  initContainerStatuses:
  - {name: once, resources: {requests: {cpu: 50}}}
  - {name: sidecar, resources: {requests: {cpu: 4}}})");
  const auto pod = DecodePod(documents->front());
  ASSERT_TRUE(pod.ok());
  EXPECT_EQ(PodRequests(*pod)["cpu"], Quantity::FromValue(5));
}

TEST(DecodeNodeTest, ReadsImages) {
  const auto documents = ParseYaml(
      "{metadata: {name: n}, status: {images: [{names: [a, b], sizeBytes: 5000000000}]}}");
  const auto node = DecodeNode(documents->front());
  ASSERT_TRUE(node.ok());
  ASSERT_EQ(node->images.size(), 2U);
  for (const NodeImage& image : node->images) {
    EXPECT_EQ(image.bytes, 5'000'000'000);
    EXPECT_TRUE(image.name == ImageId("a") || image.name == ImageId("b"));
  }
}

TEST(ScoredRequestsTest, MissingRequestsCountWithDefaults) {
  Pod pod;
  pod.containers.resize(2);
  pod.containers[0].requests = {{"cpu", *Quantity::Parse("1")}};
  EXPECT_EQ(ScoredRequestsOf(pod), (ScoredRequests{1100, int64_t{400} << 20}));
  EXPECT_EQ(ScoredRequestsOf(Pod{}), ScoredRequests{});
}

TEST(DecodePodTest, ReadsResourceClaimsWithTheirStatus) {
  const Pod pod = ReadPod(R"(
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: a}
spec:
  containers: [{name: main, image: i}]
  resourceClaims:
  - {name: shared, resourceClaimName: team-gpu}
  - {name: own, resourceClaimTemplateName: small}
  - {name: later, resourceClaimTemplateName: small}
  - {name: none, resourceClaimTemplateName: small}
status:
  resourceClaimStatuses:
  - {name: own, resourceClaimName: p-own-x1}
  - {name: none}
  - {name: shared, resourceClaimName: somebody-elses}
)");
  EXPECT_EQ(pod.claims, (std::vector<PodClaim>{{"shared", "team-gpu", "", false},
                                               {"own", "p-own-x1", "small", false},
                                               {"later", "", "small", false},
                                               {"none", "", "small", true}}));
}

TEST(DecodePodTest, ReadsResourceClaimsWhoseStatusComesFirst) {
  Pod pod;
  const Status read = nos::cluster::ReadPod(
      *ParseJson(
          R"({"status": {"resourceClaimStatuses": [{"name": "own", "resourceClaimName": "c"}]},
                     "spec": {"resourceClaims": [{"name": "own", "resourceClaimTemplateName": "t"}]},
                     "metadata": {"name": "p"}})"),
      pod);
  ASSERT_TRUE(read.ok()) << read.message();
  EXPECT_EQ(pod.claims, (std::vector<PodClaim>{{"own", "c", "t", false}}));
}

}  // namespace
}  // namespace nos::cluster
