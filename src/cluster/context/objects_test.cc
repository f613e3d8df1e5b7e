#include "cluster/context.h"

#include <gtest/gtest.h>

#include "codec/yaml.h"

namespace nos::cluster {
namespace {

template <typename T>
T Read(const std::string& yaml, Status (*read)(JsonSource, T&)) {
  const auto documents = ParseYaml(yaml);
  EXPECT_TRUE(documents.ok()) << documents.status().message();
  T object;
  const Status status = read(documents->front(), object);
  EXPECT_TRUE(status.ok()) << status.message();
  return object;
}

TEST(ClusterContextTest, ReadsClaimsAndVolumes) {
  const auto claim = Read(R"(
metadata: {name: data, namespace: a}
spec:
  accessModes: [ReadWriteOncePod]
  storageClassName: ""
  volumeName: pv-1
  volumeMode: Block
  resources: {requests: {storage: 5Gi}}
  selector: {matchLabels: {tier: fast}}
status: {phase: Bound})",
                          ReadClaim);
  EXPECT_EQ(claim.access_modes, std::vector<std::string>{"ReadWriteOncePod"});
  EXPECT_EQ(claim.storage_class, "");
  EXPECT_EQ(claim.volume_name, "pv-1");
  EXPECT_EQ(claim.volume_mode, "Block");
  EXPECT_EQ(claim.storage.Value(), int64_t{5} << 30);
  EXPECT_EQ(claim.selector->match_labels.at("tier"), "fast");
  EXPECT_EQ(claim.phase, "Bound");
  EXPECT_FALSE(Read("metadata: {name: c}", ReadClaim).storage_class.has_value());

  const auto volume = Read(R"(
metadata: {name: pv-1, labels: {topology.kubernetes.io/zone: z}}
spec:
  capacity: {storage: 10Gi}
  accessModes: [ReadWriteOnce]
  storageClassName: fast
  claimRef: {namespace: a, name: data, uid: u}
  csi: {driver: d.io, volumeHandle: h}
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: z, operator: Exists}]}]}})",
                           ReadVolume);
  EXPECT_EQ(volume.storage.Value(), int64_t{10} << 30);
  EXPECT_EQ(volume.claim_ns + "/" + volume.claim_name + " " + volume.claim_uid, "a/data u");
  EXPECT_EQ(volume.csi_driver + " " + volume.csi_handle, "d.io h");
  EXPECT_EQ(volume.node_terms->at(0).match_expressions.at(0).op, "Exists");
  EXPECT_EQ(volume.storage_class, "fast");
}

TEST(ClusterContextTest, ReadsStorageClassesAndDrivers) {
  const auto storage = Read(R"(
metadata: {name: s}
provisioner: d.io
volumeBindingMode: WaitForFirstConsumer
allowedTopologies: [{matchLabelExpressions: [{key: zone, values: [a, b]}]}])",
                            ReadStorageClass);
  EXPECT_TRUE(storage.waits_for_consumer);
  EXPECT_EQ(storage.provisioner, "d.io");
  EXPECT_EQ(storage.allowed_topologies.at(0).at(0).op, "In");
  EXPECT_EQ(storage.allowed_topologies.at(0).at(0).values.size(), 2U);
  EXPECT_FALSE(Read("metadata: {name: s}", ReadStorageClass).waits_for_consumer);
  const auto node = Read(R"(
metadata: {name: n}
spec: {drivers: [{name: d.io, nodeID: x, topologyKeys: [zone], allocatable: {count: 3}}, {name: e}]})",
                         ReadCsiNode);
  EXPECT_EQ(node.drivers.at(0).count, 3);
  EXPECT_FALSE(node.drivers.at(1).count.has_value());
  EXPECT_TRUE(
      Read("{metadata: {name: d}, spec: {storageCapacity: true}}", ReadCsiDriver).tracks_capacity);
  const auto capacity = Read(
      "{metadata: {name: c, namespace: x}, storageClassName: s, capacity: 1Gi, nodeTopology: {}}",
      ReadCsiStorageCapacity);
  EXPECT_EQ(capacity.capacity->Value(), int64_t{1} << 30);
  EXPECT_TRUE(capacity.node_topology.has_value());
  EXPECT_FALSE(capacity.maximum_volume_size.has_value());
  const auto attachment = Read(
      "{metadata: {name: v}, spec: {attacher: d, nodeName: n, source: {persistentVolumeName: p}}}",
      ReadVolumeAttachment);
  EXPECT_EQ(attachment.attacher + attachment.node + attachment.volume, "dnp");
}

TEST(ClusterContextTest, ReadsObjectsThatSelectPods) {
  const auto service =
      Read("{metadata: {name: s}, spec: {selector: {app: web}}}", ReadEqualitySelector);
  EXPECT_EQ(service.selector->match_labels.at("app"), "web");
  EXPECT_FALSE(Read("{metadata: {name: s}, spec: {}}", ReadEqualitySelector).selector.has_value());
  const auto set =
      Read("{metadata: {name: s}, spec: {selector: {matchLabels: {app: web}}}}", ReadLabelSelector);
  EXPECT_EQ(set.selector->match_labels.at("app"), "web");
  const auto budget = Read(R"(
metadata: {name: b, namespace: x}
spec: {selector: {}}
status: {disruptionsAllowed: 2, disruptedPods: {p: "2026-01-01T00:00:00Z"}})",
                           ReadBudget);
  EXPECT_TRUE(budget.selector.has_value());
  EXPECT_EQ(budget.disruptions_allowed, 2);
  EXPECT_EQ(budget.disrupted_pods, std::vector<std::string>{"p"});
}

TEST(ClusterContextTest, ReadsGangs) {
  const auto group = Read(R"(
metadata: {name: g, namespace: x}
spec: {minMember: 4, minResources: {cpu: 2}, scheduleTimeoutSeconds: 10})",
                          ReadPodGroup);
  EXPECT_EQ(group.min_member, 4);
  EXPECT_EQ(group.schedule_timeout_seconds, 10);
  const auto workload = Read(R"(
metadata: {name: w}
spec: {podGroups: [{name: a, policy: {gang: {minCount: 3}}}, {name: b, policy: {basic: {}}}]})",
                             ReadWorkload);
  EXPECT_EQ(workload.groups.at(0).min_count, 3);
  EXPECT_FALSE(workload.groups.at(1).min_count.has_value());
}

TEST(ClusterContextTest, ReportsInvalidFields) {
  Workload workload;
  const auto documents = ParseYaml("{metadata: {name: w}, spec: {podGroups: [{name: 3}]}}");
  EXPECT_EQ(ReadWorkload(documents->front(), workload).message(),
            "spec.podGroups[0].name: must be a string, not a number");
  EXPECT_EQ(Read("metadata: {name: x, labels: {a: b}}", ReadNamespace).meta.labels.at("a"), "b");
  Namespace without_name;
  EXPECT_EQ(ReadNamespace(ParseYaml("metadata: {}")->front(), without_name).message(),
            "metadata.name: is missing");
}

TEST(ClusterContextTest, SettingNullRemovesTheRow) {
  Table<Namespace> table;
  table.Set("a", std::make_shared<const Namespace>());
  EXPECT_NE(table.Find("a"), nullptr);
  table.Set("a", nullptr);
  EXPECT_EQ(table.Find("a"), nullptr);
}

TEST(ClusterContextTest, CopiesOfTablesAreIndependent) {
  Table<Namespace> table;
  table.Set("a", std::make_shared<const Namespace>());
  Table<Namespace> copy = table;
  EXPECT_EQ(copy.Share("a"), table.Share("a"));
  copy.Set("b", table.Share("a"));
  copy.Set("a", nullptr);
  EXPECT_NE(table.Find("a"), nullptr);
  EXPECT_EQ(table.Find("b"), nullptr);
  EXPECT_EQ(copy.rows().size(), 1U);
}

TEST(AddContextTest, AddsObjectsToTheirTables) {
  ClusterContext context;
  const Json claim = {{"metadata", {{"name", "c"}}}};
  EXPECT_TRUE(*AddContext("v1", "PersistentVolumeClaim", claim, context));
  EXPECT_NE(context.claims.Find("default/c"), nullptr);
  EXPECT_FALSE(AddContext("v1", "PersistentVolumeClaim", claim, context).ok()) << "twice";
  EXPECT_TRUE(*AddContext("storage.k8s.io/v1", "StorageClass", claim, context));
  EXPECT_NE(context.storage_classes.Find("c"), nullptr);
  EXPECT_FALSE(*AddContext("v1", "StorageClass", claim, context)) << "of another group";
  EXPECT_FALSE(*AddContext("scheduling.volcano.sh/v1beta1", "PodGroup", claim, context));
  EXPECT_FALSE(AddContext("v1", "Service", Json(JsonObject()), context).ok());
}

}  // namespace
}  // namespace nos::cluster
