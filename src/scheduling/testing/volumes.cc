#include "scheduling/testing/volumes.h"

#include "cluster/volumes.h"

namespace nos::scheduling::testing {

using namespace cluster;

namespace {

template <typename T>
T Named(std::string name) {
  T object;
  object.meta.uid = "uid of " + name;
  object.meta.name = std::move(name);
  object.meta.resource_version = "1";
  return object;
}

}  // namespace

PersistentVolumeClaim ClaimOf(std::string name, std::string storage_class,
                              const std::string& size) {
  auto claim = Named<PersistentVolumeClaim>(std::move(name));
  claim.meta.ns = "x";
  claim.access_modes = {"ReadWriteOnce"};
  claim.storage_class = std::move(storage_class);
  claim.storage = Quantity::Parse(size).value();
  claim.phase = "Pending";
  return claim;
}

PersistentVolumeClaim BoundClaimOf(std::string name, std::string volume) {
  auto claim = ClaimOf(std::move(name));
  claim.volume_name = std::move(volume);
  claim.meta.annotations[std::string(kBindCompleted)] = "yes";
  claim.phase = "Bound";
  return claim;
}

PersistentVolume VolumeOf(std::string name, std::string storage_class, const std::string& size,
                          std::vector<std::string> zones) {
  auto volume = Named<PersistentVolume>(std::move(name));
  volume.access_modes = {"ReadWriteOnce"};
  volume.storage_class = std::move(storage_class);
  volume.storage = Quantity::Parse(size).value();
  volume.phase = "Available";
  if (!zones.empty()) {
    volume.node_terms = {NodeSelectorTerm{{{"zone", "In", std::move(zones)}}, {}}};
  }
  return volume;
}

StorageClass StorageClassOf(std::string name, std::string provisioner, bool waits_for_consumer) {
  auto storage = Named<StorageClass>(std::move(name));
  storage.provisioner = std::move(provisioner);
  storage.waits_for_consumer = waits_for_consumer;
  return storage;
}

Pod WithClaims(Pod pod, const std::vector<std::string>& claims) {
  for (const std::string& claim : claims) {
    pod.volumes.push_back({"v-" + claim, Volume::Kind::kClaim, claim});
  }
  return pod;
}

Pod WithEphemeral(Pod pod, std::string volume) {
  pod.meta.uid = "uid of " + pod.meta.name;
  pod.volumes.push_back({std::move(volume), Volume::Kind::kEphemeral});
  return pod;
}

PersistentVolumeClaim ClaimFor(const Pod& pod, const std::string& volume,
                               std::string storage_class) {
  auto claim = ClaimOf(pod.meta.name + "-" + volume, std::move(storage_class));
  claim.meta.owners = {{"v1", "Pod", pod.meta.name, pod.meta.uid, true}};
  return claim;
}

Table<PersistentVolumeClaim>& TableOf(ClusterContext& context, const PersistentVolumeClaim*) {
  return context.claims;
}
Table<PersistentVolume>& TableOf(ClusterContext& context, const PersistentVolume*) {
  return context.volumes;
}
Table<StorageClass>& TableOf(ClusterContext& context, const StorageClass*) {
  return context.storage_classes;
}
Table<CsiNode>& TableOf(ClusterContext& context, const CsiNode*) { return context.csi_nodes; }
Table<CsiDriver>& TableOf(ClusterContext& context, const CsiDriver*) { return context.csi_drivers; }
Table<CsiStorageCapacity>& TableOf(ClusterContext& context, const CsiStorageCapacity*) {
  return context.csi_capacities;
}
Table<VolumeAttachment>& TableOf(ClusterContext& context, const VolumeAttachment*) {
  return context.attachments;
}

}  // namespace nos::scheduling::testing
