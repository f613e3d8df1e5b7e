#include "controllers/relocation/scene.h"

#include <algorithm>
#include <tuple>

namespace nos::controllers {
namespace {

constexpr size_t kMaxRelocations = 1000;

// Null: there are too many already.
Moving* Enter(MovingScene& scene, const std::string& id) {
  const auto known = scene.moving.find(id);
  if (known != scene.moving.end()) return &known->second;
  if (scene.moving.size() >= kMaxRelocations) return nullptr;
  Moving& fresh = scene.moving[id];
  fresh.id = id;
  return &fresh;
}

void EnterNode(const std::shared_ptr<const cluster::Node>& node, MovingScene& scene) {
  const auto text = node->meta.annotations.find(kRemoval);
  if (text == node->meta.annotations.end()) return;
  auto removal = ReadRemoval(text->second);
  if (!removal.ok()) {
    scene.bad_marks.emplace_back(node, removal.status().message());
    return;
  }
  Moving* moving = Enter(scene, removal->id);
  if (moving == nullptr) return;
  if (moving->node != nullptr) {
    scene.bad_marks.emplace_back(node, "node " + moving->node->meta.name + " has the same id");
    return;
  }
  moving->node = node;
  moving->mark = *std::move(removal);
  scene.on[node->meta.name];
}

void EnterPlace(const std::shared_ptr<const cluster::Pod>& pod, const reconcile::Listers& view,
                MovingScene& scene) {
  if (pod->meta.deleted) return;
  const auto text = pod->meta.annotations.find(kPlaceFor);
  auto what = text == pod->meta.annotations.end()
                  ? Result<PlaceFor>(Invalid("the annotation is missing"))
                  : ReadPlaceFor(text->second);
  if (!what.ok()) {
    scene.bad_places.emplace_back(pod, what.status().message());
    return;
  }
  Moving* moving = Enter(scene, what->id);
  if (moving == nullptr) return;
  auto moved = view.pods.Get(what->pod);
  if (moved != nullptr && moved->meta.uid != what->uid) moved = nullptr;
  if (!what->owner.empty()) {
    scene.made_by[what->pod.substr(0, what->pod.find('/') + 1) + what->owner];
  }
  moving->places.push_back({pod, *std::move(what), std::move(moved)});
}

}  // namespace

bool Moving::Held() const {
  return !places.empty() && std::ranges::all_of(places, [](const Place& place) {
    return place.what.held.has_value();
  });
}

Time Moving::Since() const {
  Time since = mark ? mark->since : Time::max();
  for (const Place& place : places) since = std::min(since, place.what.since);
  return since;
}

std::string Moving::NodeName() const {
  if (node != nullptr) return node->meta.name;
  return places.empty() || !ForPod().empty() ? "" : places.front().what.from;
}

bool Moving::Complete() const {
  std::set<std::string_view> known;
  for (const Place& place : places) {
    known.insert(place.what.uid);
    known.insert(place.what.ended.begin(), place.what.ended.end());
  }
  return places.empty() || static_cast<int>(known.size()) >= places.front().what.of;
}

MovingScene LookAtRelocations(const reconcile::Listers& view, std::string_view ns) {
  MovingScene scene;
  const auto nodes = view.nodes.Snapshot();
  for (const auto& node : *nodes) EnterNode(node, scene);
  const auto pods = view.pods.Snapshot();
  for (const auto& pod : *pods) {
    if (pod->meta.ns == ns && IsPlaceholder(*pod)) EnterPlace(pod, view, scene);
  }
  if (scene.moving.empty()) return scene;
  for (const auto& pod : *pods) {
    const auto marked = scene.on.find(pod->node_name);
    if (marked != scene.on.end()) marked->second.push_back(pod);
    if (IsPlaceholder(*pod) || scene.made_by.empty()) continue;
    const cluster::OwnerReference* owner = ControllerOf(*pod);
    if (owner == nullptr) continue;
    const auto made = scene.made_by.find(pod->meta.ns + "/" + owner->uid);
    if (made != scene.made_by.end()) made->second.push_back(pod);
  }
  for (auto& [owner, made] : scene.made_by) {
    std::ranges::sort(made, {},
                      [](const auto& pod) { return std::tie(pod->meta.created, pod->meta.name); });
  }
  return scene;
}

bool HasToGoFirst(const cluster::Pod& pod, const planning::MobilityRules& rules) {
  if (!pod.meta.deleted) return MobilityOf(pod, rules).kind != planning::Mobility::kGoes;
  cluster::Pod stays = pod;
  stays.meta.deleted.reset();
  return MobilityOf(stays, rules).kind != planning::Mobility::kGoes;
}

}  // namespace nos::controllers
