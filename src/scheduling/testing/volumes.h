// Short ways to write claims and volumes in tests. All in namespace "x", with a uid and a
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
// The same, fully bound.
cluster::PersistentVolumeClaim BoundClaimOf(std::string name, std::string volume);
// Available, ReadWriteOnce. `zones`: only nodes with one of these as their label "zone" reach it.
cluster::PersistentVolume VolumeOf(std::string name, std::string storage_class = "",
                                   const std::string& size = "1Gi",
                                   std::vector<std::string> zones = {});
// WaitForFirstConsumer, unless told otherwise.
cluster::StorageClass StorageClassOf(std::string name, std::string provisioner = "d.io",
                                     bool waits_for_consumer = true);
// The pod with a volume for each claim.
cluster::Pod WithClaims(cluster::Pod pod, const std::vector<std::string>& claims);
// With the uid of its name, and a generic ephemeral volume.
cluster::Pod WithEphemeral(cluster::Pod pod, std::string volume);
// A claim made for it: "<pod>-<volume>".
cluster::PersistentVolumeClaim ClaimFor(const cluster::Pod& pod, const std::string& volume,
                                        std::string storage_class);

cluster::Table<cluster::PersistentVolumeClaim>& TableOf(cluster::Surroundings& around,
                                                        const cluster::PersistentVolumeClaim*);
cluster::Table<cluster::PersistentVolume>& TableOf(cluster::Surroundings& around,
                                                   const cluster::PersistentVolume*);
cluster::Table<cluster::StorageClass>& TableOf(cluster::Surroundings& around,
                                               const cluster::StorageClass*);
cluster::Table<cluster::CsiNode>& TableOf(cluster::Surroundings& around, const cluster::CsiNode*);
cluster::Table<cluster::CsiDriver>& TableOf(cluster::Surroundings& around,
                                            const cluster::CsiDriver*);
cluster::Table<cluster::CsiStorageCapacity>& TableOf(cluster::Surroundings& around,
                                                     const cluster::CsiStorageCapacity*);
cluster::Table<cluster::VolumeAttachment>& TableOf(cluster::Surroundings& around,
                                                   const cluster::VolumeAttachment*);

// Puts objects in the place of those of their names.
template <typename... T>
void Put(cluster::ClusterSnapshot& snapshot, const T&... objects) {
  cluster::Surroundings& around = snapshot.ChangeAround();
  const auto key = [](const cluster::ObjectMeta& meta) {
    return meta.ns.empty() ? meta.name : meta.ns + "/" + meta.name;
  };
  (TableOf(around, &objects).Set(key(objects.meta), std::make_shared<const T>(objects)), ...);
}

// `kind`: "PersistentVolume"... Null: there was, or is, none.
template <typename T>
ClusterEvent AroundEvent(std::string_view kind, std::type_identity_t<const T*> before,
                         const T* after) {
  ClusterEvent event{ClusterEvent::Kind::kAround};
  event.around = kind;
  if (before != nullptr) event.around_before = std::make_shared<const T>(*before);
  if (after != nullptr) event.around_after = std::make_shared<const T>(*after);
  return event;
}

}  // namespace nos::scheduling::testing
