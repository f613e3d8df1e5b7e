// Volume requirements of a pod's claims, computed once for all nodes, and the volumes chosen for a
// node.
//
// Semantics: kube-scheduler's volume binder, and the matching of volumes in
// k8s.io/component-helpers storage/volume. Among equally small volumes, the first by
// name is chosen.
#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "cluster/snapshot.h"
#include "scheduling/plugin.h"
#include "scheduling/plugins/volume_binding/label_index.h"

namespace nos::scheduling {

// A claim whose volume is chosen together with the node (WaitForFirstConsumer).
struct WantedVolume {
  std::shared_ptr<const cluster::PersistentVolumeClaim> claim;
  std::string selected_node;  // provisioning has started for this node; "": not decided
  // Existing volumes: the one reserved for the claim, or all that match, smallest first.
  std::shared_ptr<const cluster::PersistentVolume> kept;
  std::vector<std::shared_ptr<const cluster::PersistentVolume>> candidates;
  LabelIndex candidates_near;
  // Provisioning a new volume, if the class has a provisioner.
  std::shared_ptr<const cluster::StorageClass> storage;
  bool provisionable = false;
  // Provisioning requires one of `capacities`, which are large enough, to match the node.
  bool tracks_capacity = false;
  std::vector<std::shared_ptr<const cluster::CsiStorageCapacity>> capacities;
  LabelIndex capacities_near;
};

struct WantedVolumes {
  // Volumes of bound claims. The list ends at the first volume that does not exist.
  std::vector<std::shared_ptr<const cluster::PersistentVolume>> bound;
  bool bound_missing = false;
  // Claims with a selected node first, then smallest first.
  std::vector<WantedVolume> delayed;
  // An existing volume would match one of them if no other claim had it.
  bool contested = false;
};

// Returns the requirements, or why the pod fits no node. REQUIRES: the pod uses claims.
std::variant<WantedVolumes, Verdict> FindWantedVolumes(const cluster::Pod& pod,
                                                       const cluster::ClusterContext& context);

// Volumes for the claims in `delayed` on one node.
struct VolumeChoice {
  struct Binding {
    std::shared_ptr<const cluster::PersistentVolume> volume;
    std::shared_ptr<const cluster::PersistentVolumeClaim> claim;
  };
  std::vector<Binding> bindings;
  std::vector<std::shared_ptr<const cluster::PersistentVolumeClaim>> provisions;
};
// Fills `choice`, if not null, when the verdict fits.
Verdict ChooseVolumes(const WantedVolumes& wanted, const cluster::Node& node,
                      VolumeChoice* choice = nullptr);

}  // namespace nos::scheduling
