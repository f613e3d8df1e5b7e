// The cluster context: objects beside pods and nodes that a scheduler reads, such as namespaces,
// volumes, objects that select pods, and disruption budgets. Field names and meanings follow
// k8s.io/api. Plain data, in tables.
//
//   ClusterContext context;
//   context.claims.Set("default/data", std::make_shared<const PersistentVolumeClaim>(claim));
//   const auto* claim = context.claims.Find("default/data");
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/elastic_quota.h"
#include "cluster/node_pool.h"
#include "cluster/objects.h"

// Dynamic Resource Allocation: dra/objects.h, dra/device_index.h.
namespace nos::dra {
struct ResourceSlice;
struct DeviceClass;
struct ResourceClaim;
struct DeviceTaintRule;
class DeviceIndex;
}  // namespace nos::dra

namespace nos::cluster {

struct Namespace {
  ObjectMeta meta;  // nos reads its labels
};

// v1.PersistentVolumeClaim
struct PersistentVolumeClaim {
  ObjectMeta meta;
  std::vector<std::string> access_modes;     // spec.accessModes
  std::optional<std::string> storage_class;  // absent: not set; "": explicitly none
  std::string volume_name;  // spec.volumeName: the volume that it is, or will be, bound to
  std::string volume_mode = "Filesystem";       // or Block
  std::optional<LabelSelector> selector;        // selects PersistentVolumes
  Quantity storage;                             // requested
  std::string phase;                            // Pending, Bound, Lost
  std::optional<std::string> attributes_class;  // volumeAttributesClassName
};

// v1.PersistentVolume
struct PersistentVolume {
  ObjectMeta meta;
  std::vector<std::string> access_modes;
  std::string storage_class, volume_mode = "Filesystem", phase;
  Quantity storage;
  // spec.claimRef; no name: not claimed. An empty uid: reserved for the claim of this name.
  std::string claim_ns, claim_name, claim_uid;
  std::optional<std::vector<NodeSelectorTerm>> node_terms;  // spec.nodeAffinity.required
  std::string csi_driver, csi_handle;                       // for CSI volumes
  std::string attributes_class;
};

// storage.k8s.io/v1 StorageClass
struct StorageClass {
  ObjectMeta meta;
  std::string provisioner;
  bool waits_for_consumer = false;  // volumeBindingMode: WaitForFirstConsumer
  // allowedTopologies: alternatives; each requires all its labels.
  std::vector<std::vector<SelectorRequirement>> allowed_topologies;
};

// storage.k8s.io/v1 CSINode: has the name of its node.
struct CsiNode {
  ObjectMeta meta;
  struct Driver {
    std::string name, node_id;
    std::vector<std::string> topology_keys;
    std::optional<int32_t> count;  // maximum of attached volumes; absent: no limit
  };
  std::vector<Driver> drivers;
};

// storage.k8s.io/v1 CSIDriver
struct CsiDriver {
  ObjectMeta meta;
  bool tracks_capacity = false;  // storageCapacity
};

// storage.k8s.io/v1 CSIStorageCapacity
struct CsiStorageCapacity {
  ObjectMeta meta;
  std::string storage_class;
  std::optional<LabelSelector> node_topology;  // absent: matches no node
  std::optional<Quantity> capacity, maximum_volume_size;
};

// storage.k8s.io/v1 VolumeAttachment
struct VolumeAttachment {
  ObjectMeta meta;
  std::string attacher, node, volume;  // `volume`: the name of a PersistentVolume
};

// Objects that select the pods of one application by labels: Service and ReplicationController
// (both by equality), ReplicaSet, StatefulSet.
struct PodOwner {
  ObjectMeta meta;
  std::optional<LabelSelector> selector;  // absent, or empty for a Service: selects no pod
};

// policy/v1 PodDisruptionBudget
struct PodDisruptionBudget {
  ObjectMeta meta;
  std::optional<LabelSelector> selector;  // absent: selects no pod; empty: every pod of the
                                          // namespace
  int32_t disruptions_allowed = 0;
  std::vector<std::string> disrupted_pods;  // names of pods whose disruption is in progress and
                                            // already counted
};

// scheduling.x-k8s.io/v1alpha1 PodGroup (sigs.k8s.io/scheduler-plugins)
struct PodGroup {
  ObjectMeta meta;
  int32_t min_member = 1;
  ResourceList min_resources;
  std::optional<int32_t> schedule_timeout_seconds;
};

// scheduling.k8s.io PodGroup, since Kubernetes 1.36. min_count: minimum of a gang; absent: its pods
// are scheduled one by one (policy basic).
struct SchedulingGroup {
  ObjectMeta meta;
  std::optional<int32_t> min_count;
  // spec.resourceClaims, since Kubernetes 1.36: the group as a whole uses them, and not each of its
  // pods. `claim` is empty if they are made from a template.
  std::vector<PodClaim> claims;
};

// scheduling.k8s.io Workload, in Kubernetes 1.35 only: pod groups by name. min_count: minimum of a
// gang; absent: the group's pods are scheduled one by one.
struct Workload {
  ObjectMeta meta;
  struct Group {
    std::string name;
    std::optional<int32_t> min_count;
  };
  std::vector<Group> groups;
};

// Objects of one kind by key ("ns/name", or "name" for cluster-scoped kinds), sorted by key. Copies
// share the rows until one of them changes.
template <typename T>
class Table {
 public:
  using Object = std::shared_ptr<const T>;
  using Rows = std::map<std::string, Object, std::less<>>;

  // Null if there is no such object.
  const T* Find(std::string_view key) const { return Share(key).get(); }
  const Object& Share(std::string_view key) const {
    static const Object none;
    const auto found = rows().find(key);
    return found == rows().end() ? none : found->second;
  }
  // True if one is an unchanged copy of the other.
  bool IsCopyOf(const Table& other) const { return rows_ == other.rows_; }
  const Rows& rows() const {
    static const Rows none;
    return rows_ == nullptr ? none : *rows_;
  }
  // A null object removes the key.
  void Set(const std::string& key, Object object) {
    if (rows_ == nullptr) {
      rows_ = std::make_shared<Rows>();
    } else if (rows_.use_count() > 1) {
      rows_ = std::make_shared<Rows>(*rows_);
    }
    if (object == nullptr) {
      rows_->erase(key);
    } else {
      (*rows_)[key] = std::move(object);
    }
  }

 private:
  std::shared_ptr<Rows> rows_;
};

struct ClusterContext {
  Table<Namespace> namespaces;
  Table<PersistentVolumeClaim> claims;
  Table<PersistentVolume> volumes;
  Table<StorageClass> storage_classes;
  Table<CsiNode> csi_nodes;
  Table<CsiDriver> csi_drivers;
  Table<CsiStorageCapacity> csi_capacities;
  Table<VolumeAttachment> attachments;
  Table<PodOwner> services, replication_controllers, replica_sets, stateful_sets;
  Table<PodDisruptionBudget> budgets;
  Table<PodGroup> pod_groups;
  Table<SchedulingGroup> scheduling_groups;
  Table<Workload> workloads;
  Table<ElasticQuota> quotas, composite_quotas;
  Table<NodePool> pools;
  // resource.k8s.io
  Table<dra::ResourceSlice> device_slices;
  Table<dra::DeviceClass> device_classes;
  Table<dra::ResourceClaim> device_claims;
  Table<dra::DeviceTaintRule> device_taint_rules;
  // The devices of these slices and their use, if a component follows them; shared by all copies.
  std::shared_ptr<dra::DeviceIndex> devices;
};

// Like ReadPod: unknown fields are ignored, a known field of the wrong type is an error with its
// path.
Status ReadNamespace(JsonSource json, Namespace& to);
Status ReadClaim(JsonSource json, PersistentVolumeClaim& to);
Status ReadVolume(JsonSource json, PersistentVolume& to);
Status ReadStorageClass(JsonSource json, StorageClass& to);
Status ReadCsiNode(JsonSource json, CsiNode& to);
Status ReadCsiDriver(JsonSource json, CsiDriver& to);
Status ReadCsiStorageCapacity(JsonSource json, CsiStorageCapacity& to);
Status ReadVolumeAttachment(JsonSource json, VolumeAttachment& to);
Status ReadEqualitySelector(JsonSource json, PodOwner& to);  // Service, ReplicationController
Status ReadLabelSelector(JsonSource json, PodOwner& to);     // ReplicaSet, StatefulSet
Status ReadBudget(JsonSource json, PodDisruptionBudget& to);
Status ReadPodGroup(JsonSource json, PodGroup& to);
Status ReadSchedulingGroup(JsonSource json, SchedulingGroup& to);
Status ReadWorkload(JsonSource json, Workload& to);

// The API names of the objects in one of the tables.
struct ContextKind {
  std::string_view group, version, plural, kind;
  bool namespaced;
};
// Calls visit(ContextKind, reader, member of ClusterContext) for each table but those of
// resource.k8s.io (dra::ForEachDeviceKind).
template <typename Visit>
void ForEachContextKind(Visit visit) {
  using S = ClusterContext;
  const std::string_view storage = "storage.k8s.io", apps = "apps";
  visit({"", "v1", "namespaces", "Namespace", false}, ReadNamespace, &S::namespaces);
  visit({"", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", true}, ReadClaim, &S::claims);
  visit({"", "v1", "persistentvolumes", "PersistentVolume", false}, ReadVolume, &S::volumes);
  visit({storage, "v1", "storageclasses", "StorageClass", false}, ReadStorageClass,
        &S::storage_classes);
  visit({storage, "v1", "csinodes", "CSINode", false}, ReadCsiNode, &S::csi_nodes);
  visit({storage, "v1", "csidrivers", "CSIDriver", false}, ReadCsiDriver, &S::csi_drivers);
  visit({storage, "v1", "csistoragecapacities", "CSIStorageCapacity", true}, ReadCsiStorageCapacity,
        &S::csi_capacities);
  visit({storage, "v1", "volumeattachments", "VolumeAttachment", false}, ReadVolumeAttachment,
        &S::attachments);
  visit({"", "v1", "services", "Service", true}, ReadEqualitySelector, &S::services);
  visit({"", "v1", "replicationcontrollers", "ReplicationController", true}, ReadEqualitySelector,
        &S::replication_controllers);
  visit({apps, "v1", "replicasets", "ReplicaSet", true}, ReadLabelSelector, &S::replica_sets);
  visit({apps, "v1", "statefulsets", "StatefulSet", true}, ReadLabelSelector, &S::stateful_sets);
  visit({"policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", true}, ReadBudget,
        &S::budgets);
  visit({"scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup", true}, ReadPodGroup,
        &S::pod_groups);
  // All served versions have the same objects. Source: Kubernetes 1.36 has the first, 1.37 the
  // others.
  for (const std::string_view version : {"v1alpha2", "v1alpha3", "v1beta1"}) {
    visit({"scheduling.k8s.io", version, "podgroups", "PodGroup", true}, ReadSchedulingGroup,
          &S::scheduling_groups);
  }
  visit({"scheduling.k8s.io", "v1alpha1", "workloads", "Workload", true}, ReadWorkload,
        &S::workloads);
  visit({kQuotaGroup, kQuotaVersion, "elasticquotas", kElasticQuota, true}, ReadElasticQuota,
        &S::quotas);
  visit({kQuotaGroup, kQuotaVersion, "compositeelasticquotas", kCompositeQuota, true},
        ReadCompositeElasticQuota, &S::composite_quotas);
  visit({kPoolGroup, kPoolVersion, kNodePools, kNodePool, false}, ReadNodePool, &S::pools);
}

// Reads an object of one of these kinds, in this version, and adds it to its table. False if it is
// of no such kind. Error: kInvalid, also if the table already has it.
Result<bool> AddContext(std::string_view api_version, std::string_view kind, JsonSource json,
                        ClusterContext& to);

}  // namespace nos::cluster
