// What a pod's claims want of a node, worked out once for all nodes, and what they get there.
//
// Semantics: kube-scheduler's volume binder, and the matching of volumes in
// k8s.io/component-helpers storage/volume. Of volumes that are equally small the first by name is
// taken.
#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "cluster/snapshot.h"
#include "scheduling/plugin.h"
#include "scheduling/plugins/volume_binding/label_index.h"

namespace nos::scheduling {

// A claim whose volume is chosen together with the node.
struct WantedVolume {
  std::shared_ptr<const cluster::PersistentVolumeClaim> claim;
  std::string selected_node;  // is being provisioned there; "": nothing is decided
  // Volumes that are there: that which is kept for the claim, or all that it can take, the smallest
  // first.
  std::shared_ptr<const cluster::PersistentVolume> kept;
  std::vector<std::shared_ptr<const cluster::PersistentVolume>> candidates;
  LabelIndex candidates_near;
  // A volume that is made for it: where the class has a provisioner.
  std::shared_ptr<const cluster::StorageClass> storage;
  bool provisionable = false;
  bool tracks_capacity = false;  // only near one of these, which are large enough
  std::vector<std::shared_ptr<const cluster::CsiStorageCapacity>> capacities;
  LabelIndex capacities_near;
};

struct WantedVolumes {
  // Those that bound claims have; one that is not there ends them.
  std::vector<std::shared_ptr<const cluster::PersistentVolume>> bound;
  bool bound_missing = false;
  // First those with a selected node, then the smallest first.
  std::vector<WantedVolume> delayed;
  // Some volume that is there would do for one of them, if nobody had it.
  bool contested = false;
};

// Either what the pod wants, or why it has to wait whatever the node. The pod uses claims.
std::variant<WantedVolumes, Verdict> FindWantedVolumes(const cluster::Pod& pod,
                                                       const cluster::Surroundings& around);

// What the claims in `delayed` get on one node.
struct VolumeChoice {
  struct Binding {
    std::shared_ptr<const cluster::PersistentVolume> volume;
    std::shared_ptr<const cluster::PersistentVolumeClaim> claim;
  };
  std::vector<Binding> bindings;
  std::vector<std::shared_ptr<const cluster::PersistentVolumeClaim>> provisions;
};
// `choice` (if not null) gets it when the verdict fits.
Verdict ChooseVolumes(const WantedVolumes& wanted, const cluster::Node& node,
                      VolumeChoice* choice = nullptr);

}  // namespace nos::scheduling
