// Relocations as they stand in the caches: marked nodes and placeholders, put together by their
// ids. Internal to relocations.
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
#include "reconcile/reconciler.h"
#include "controllers/relocations.h"

namespace nos::controllers {

struct Place {
  std::shared_ptr<const cluster::Pod> pod;  // the placeholder
  PlaceFor what;
  std::shared_ptr<const cluster::Pod> moved;  // null: no pod of that uid is there

  // The pod runs on, as far as is known, where it was.
  bool Remains() const { return moved && !moved->meta.deleted && !moved->Finished(); }
  // Its node has admitted it.
  bool IsHeld() const { return pod->node_name == what.to && pod->phase == "Running"; }
};

struct Moving {
  std::string id;
  std::shared_ptr<const cluster::Node> node;  // with the mark; null: none has it
  std::optional<Removal> mark;
  std::vector<Place> places;  // by name, without those that are being deleted

  // Evictions may have begun.
  bool Held() const;
  // Since when it is known: who compares it with other times has one that is never later.
  Time Since() const;
  // Of a node: which; "": it is for a pod.
  std::string NodeName() const;
  std::string ForPod() const { return places.empty() ? "" : places.front().what.for_pod; }
  // None of its placeholders has got lost.
  bool Complete() const;
};

struct MovingScene {
  std::map<std::string, Moving> moving;  // by id
  // Placeholders and marked nodes that say nothing that can be used, and why.
  std::vector<std::pair<std::shared_ptr<const cluster::Pod>, std::string>> bad_places;
  std::vector<std::pair<std::shared_ptr<const cluster::Node>, std::string>> bad_marks;
  std::map<std::string, std::vector<std::shared_ptr<const cluster::Pod>>> on;  // marked nodes
  // Pods that a controller made, by "namespace/uid of it", for controllers of moved pods; oldest
  // first.
  std::map<std::string, std::vector<std::shared_ptr<const cluster::Pod>>> made_by;
};

// `ns`: where placeholders are. Labels elsewhere mean nothing. Of very many relocations some are
// left for later.
MovingScene LookAtRelocations(const reconcile::View& view, std::string_view ns);

// What is on a node, or ends there, and would not go with it.
bool HasToGoFirst(const cluster::Pod& pod, const planning::MobilityRules& rules);

}  // namespace nos::controllers
