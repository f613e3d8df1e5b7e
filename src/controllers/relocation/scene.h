// Relocations as found in the caches: marked nodes and placeholders, grouped by relocation id.
// Internal to relocations.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "controllers/relocation/placeholder.h"
#include "controllers/relocations.h"
#include "reconcile/reconciler.h"

namespace nos::controllers {

struct Place {
  std::shared_ptr<const cluster::Pod> pod;  // the placeholder
  PlaceFor what;
  std::shared_ptr<const cluster::Pod> moved;  // null: no pod of that uid exists

  // The pod still runs on its old node, as far as is known.
  bool Remains() const { return moved && !moved->meta.deleted && !moved->Finished(); }
  // The kubelet has admitted it.
  bool IsHeld() const { return pod->node_name == what.to && pod->phase == "Running"; }
};

struct Moving {
  std::string id;
  std::shared_ptr<const cluster::Node> node;  // the marked node; null: none
  std::optional<Removal> mark;
  std::vector<Place> places;  // by name, without placeholders that are being deleted

  // Evictions may have begun.
  bool Held() const;
  // The earliest known time of the relocation.
  Time Since() const;
  // The node to be emptied. Empty: the relocation is for a pod.
  std::string NodeName() const;
  std::string ForPod() const { return places.empty() ? "" : places.front().what.for_pod; }
  // No placeholder was lost.
  bool Complete() const;
};

struct MovingScene {
  std::map<std::string, Moving> moving;  // by id
  // Placeholders to be deleted and why, and marked nodes with unusable annotations and why.
  std::vector<std::pair<std::shared_ptr<const cluster::Pod>, std::string>> bad_places;
  std::vector<std::pair<std::shared_ptr<const cluster::Node>, std::string>> bad_marks;
  std::map<std::string, std::vector<std::shared_ptr<const cluster::Pod>>> on;  // marked nodes
  // Pods by "namespace/uid" of their controller, for the controllers of moved pods; oldest first.
  std::map<std::string, std::vector<std::shared_ptr<const cluster::Pod>>> made_by;
};

// Labels in other namespaces than those of the configuration are ignored. Relocations beyond a
// limit are handled later.
MovingScene LookAtRelocations(const reconcile::Listers& view, const RelocationConfig& config);

// True if the pod must leave the node before it is removed. It may be terminating there.
bool HasToGoFirst(const cluster::Pod& pod, const planning::MobilityRules& rules);

}  // namespace nos::controllers
