// Builders of claims and volumes for tests. All objects are in namespace "x" and have a uid and a
// resourceVersion.
//
//   Put(snapshot, ClaimOf("data", "fast", "5Gi"), VolumeOf("pv-1", "fast", "10Gi"));
//   const Pod pod = WithClaims(PodOf("p"), {"data"});
#pragma once

#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "cluster/snapshot.h"
#include "scheduling/plugin.h"

namespace nos::scheduling::testing {

cluster::PersistentVolumeClaim ClaimOf(std::string name, std::string storage_class = "",
                                       const std::string& size = "1Gi");
// The same, bound to the volume.
cluster::PersistentVolumeClaim BoundClaimOf(std::string name, std::string volume);
// Available, ReadWriteOnce. `zones`: the volume is reachable only from nodes whose label "zone" has
// one of these values.
cluster::PersistentVolume VolumeOf(std::string name, std::string storage_class = "",
                                   const std::string& size = "1Gi",
                                   std::vector<std::string> zones = {});
// WaitForFirstConsumer by default.
cluster::StorageClass StorageClassOf(std::string name, std::string provisioner = "d.io",
                                     bool waits_for_consumer = true);
// Adds a volume for each claim.
cluster::Pod WithClaims(cluster::Pod pod, const std::vector<std::string>& claims);
// Sets the pod's uid from its name and adds a generic ephemeral volume.
cluster::Pod WithEphemeral(cluster::Pod pod, std::string volume);
// The claim of the pod's ephemeral volume: "<pod>-<volume>".
cluster::PersistentVolumeClaim ClaimFor(const cluster::Pod& pod, const std::string& volume,
                                        std::string storage_class);

cluster::Table<cluster::PersistentVolumeClaim>& TableOf(cluster::ClusterContext& context,
                                                        const cluster::PersistentVolumeClaim*);
cluster::Table<cluster::PersistentVolume>& TableOf(cluster::ClusterContext& context,
                                                   const cluster::PersistentVolume*);
cluster::Table<cluster::StorageClass>& TableOf(cluster::ClusterContext& context,
                                               const cluster::StorageClass*);
cluster::Table<cluster::CsiNode>& TableOf(cluster::ClusterContext& context,
                                          const cluster::CsiNode*);
cluster::Table<cluster::CsiDriver>& TableOf(cluster::ClusterContext& context,
                                            const cluster::CsiDriver*);
cluster::Table<cluster::CsiStorageCapacity>& TableOf(cluster::ClusterContext& context,
                                                     const cluster::CsiStorageCapacity*);
cluster::Table<cluster::VolumeAttachment>& TableOf(cluster::ClusterContext& context,
                                                   const cluster::VolumeAttachment*);

// Sets objects, replacing objects with the same names.
template <typename... T>
void Put(cluster::ClusterSnapshot& snapshot, const T&... objects) {
  cluster::ClusterContext& context = snapshot.ChangeContext();
  const auto key = [](const cluster::ObjectMeta& meta) {
    return meta.ns.empty() ? meta.name : meta.ns + "/" + meta.name;
  };
  (TableOf(context, &objects).Set(key(objects.meta), std::make_shared<const T>(objects)), ...);
}

// `kind`: for example "PersistentVolume". Null: the object did not exist, or was removed.
template <typename T>
ClusterEvent ContextEvent(std::string_view kind, std::type_identity_t<const T*> before,
                          const T* after) {
  ClusterEvent event{ClusterEvent::Kind::kContext};
  event.context_kind = kind;
  if (before != nullptr) event.context_before = std::make_shared<const T>(*before);
  if (after != nullptr) event.context_after = std::make_shared<const T>(*after);
  return event;
}

}  // namespace nos::scheduling::testing
