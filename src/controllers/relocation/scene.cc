#include "controllers/relocation/scene.h"

#include <fmt/core.h>

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

struct Marked {
  std::shared_ptr<const cluster::Node> node;
  Removal mark;
};
using MarkedById = std::map<std::string, std::vector<Marked>>;

void ReadMark(const std::shared_ptr<const cluster::Node>& node, MovingScene& scene,
              MarkedById& marked) {
  const auto text = node->meta.annotations.find(kRemoval);
  if (text == node->meta.annotations.end()) return;
  auto removal = ReadRemoval(text->second);
  if (!removal.ok()) {
    scene.bad_marks.emplace_back(node, removal.status().message());
    return;
  }
  const std::string id = removal->id;
  if (Enter(scene, id) != nullptr) marked[id].push_back({node, *std::move(removal)});
}

// Believes the node that the placeholders name, because only this program writes these.
// Without placeholders: the first by name.
void EnterMarked(std::vector<Marked>& marked, Moving& moving, MovingScene& scene) {
  auto one = marked.begin();
  const std::string from =
      moving.places.empty() || !moving.ForPod().empty() ? "" : moving.places.front().what.from;
  if (!from.empty()) {
    one =
        std::ranges::find_if(marked, [&](const Marked& it) { return it.node->meta.name == from; });
  }
  if (one != marked.end()) {
    moving.node = one->node;
    moving.mark = one->mark;
    scene.on[one->node->meta.name];
  }
  const std::string& named = one == marked.end() ? from : one->node->meta.name;
  for (auto it = marked.begin(); it != marked.end(); ++it) {
    if (it != one) scene.bad_marks.emplace_back(it->node, "node " + named + " has the same id");
  }
}

void EnterPlace(const std::shared_ptr<const cluster::Pod>& pod, const reconcile::Listers& view,
                MovingScene& scene) {
  if (pod->meta.deleted) return;
  const auto text = pod->meta.annotations.find(kPlaceFor);
  auto what = text == pod->meta.annotations.end()
                  ? Result<PlaceFor>(Invalid("the annotation is missing"))
                  : ReadPlaceFor(text->second);
  if (!what.ok()) {
    scene.bad_places.emplace_back(
        pod, fmt::format("invalid annotation {}: {}", kPlaceFor, what.status().message()));
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

MovingScene LookAtRelocations(const reconcile::Listers& view, const RelocationConfig& config) {
  MovingScene scene;
  const auto nodes = view.nodes.Snapshot();
  MarkedById by_id;
  for (const auto& node : *nodes) ReadMark(node, scene, by_id);
  const auto pods = view.pods.Snapshot();
  for (const auto& pod : *pods) {
    if (!IsPlaceholder(*pod)) continue;
    if (pod->meta.ns == config.ns) {
      EnterPlace(pod, view, scene);
    } else if (pod->meta.ns == config.former_ns && !pod->meta.deleted) {
      scene.bad_places.emplace_back(pod, "placeholders are in namespace " + config.ns + " now");
    }
  }
  for (auto& [id, marks] : by_id) EnterMarked(marks, scene.moving.at(id), scene);
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
