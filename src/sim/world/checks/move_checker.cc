#include "sim/world/checks/move_checker.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "controllers/relocations.h"
#include "planning/mobility.h"
#include "sim/world/node/invariants.h"

namespace nos::sim {
namespace {

using planning::Mobility;

bool HasNode(const MoveChecker::Pod& pod) { return pod != nullptr && !pod->node_name.empty(); }

bool Runs(const MoveChecker::Pod& pod) {
  return HasNode(pod) && pod->phase == "Running" && !pod->meta.deleted;
}

// True if `place` requests at least as much as `pod` of every resource.
bool Covers(const cluster::Pod& place, const cluster::Pod& pod) {
  const cluster::ResourceList has = cluster::PodRequests(place), needs = cluster::PodRequests(pod);
  return std::ranges::all_of(needs, [&](const auto& need) {
    const auto found = has.find(need.first);
    return found != has.end() ? found->second >= need.second : need.second <= Quantity();
  });
}

Json NoteOf(const cluster::Pod& placeholder) {
  const auto found = placeholder.meta.annotations.find(controllers::kPlaceFor);
  if (found == placeholder.meta.annotations.end()) return {};
  const auto note = ParseJson(found->second);
  return note.ok() ? *note : Json();
}

}  // namespace

void MoveChecker::See(const Pod& before, const Pod& after, Time now) {
  SeePlace(before, after, now);
  if (after == nullptr) {
    if (before != nullptr) pods_.erase(before->Key());
    return;
  }
  Known& known = pods_[after->Key()];
  const bool other = known.pod == nullptr || known.pod->meta.uid != after->meta.uid;
  if (HasNode(after) && (other || !HasNode(known.pod))) known.bound = now;
  known.pod = after;
}

void MoveChecker::SeePlace(const Pod& before, const Pod& after, Time now) {
  std::erase_if(places_, [&](const auto& place) { return place.second.until < now; });
  if (before != nullptr && (after == nullptr || after->meta.uid != before->meta.uid)) {
    const auto gone = places_.find(before->meta.uid);
    if (gone != places_.end())
      gone->second.until = std::min(gone->second.until, now + kFaultsLinger);
  }
  if (after == nullptr || !controllers::IsPlaceholder(*after)) return;
  const auto known = places_.find(after->meta.uid);
  if (!Runs(after)) {
    if (known != places_.end()) {
      known->second.until = std::min(known->second.until, now + kFaultsLinger);
    }
    return;
  }
  const Json note = NoteOf(*after);
  const Json* of = Find(note, "of");
  const Json* ended = Find(note, "ended");
  Place& place = places_[after->meta.uid];
  place.pod = after;
  place.relocation = FindString(note, "id");
  place.pod_uid = FindString(note, "uid");
  place.of = of != nullptr && of->is_int64() ? of->get_int64() : 0;
  place.ended =
      ended != nullptr && ended->is_array() ? static_cast<int64_t>(ended->get_array().size()) : 0;
  place.until = Time::max();
}

// The reason why the pod must not be evicted; "" if it may be.
std::string MoveChecker::WhyNot(const cluster::Pod& pod) const {
  const Mobility mobility = planning::MobilityOf(pod, {});
  if (mobility.kind == Mobility::kStays) return "though it " + mobility.why;
  const auto place = std::ranges::find_if(places_, [&](const auto& one) {
    return one.second.pod_uid == pod.meta.uid && one.second.pod->node_name != pod.node_name &&
           Covers(*one.second.pod, pod);
  });
  if (place == places_.end()) return "and no place on another node is held for it";
  const std::string& relocation = place->second.relocation;
  if (begun_.contains(relocation)) return "";
  const auto held = std::ranges::count_if(
      places_, [&](const auto& one) { return one.second.relocation == relocation; });
  if (held + place->second.ended >= place->second.of) return "";
  return fmt::format("when {} of {} places of {} are held", held, place->second.of, relocation);
}

void MoveChecker::Asked(const std::string& key, std::string_view uid, Time now) {
  std::erase_if(places_, [&](const auto& place) { return place.second.until < now; });
  const auto known = pods_.find(key);
  if (known == pods_.end()) return;
  const cluster::Pod& pod = *known->second.pod;
  if (!uid.empty() && uid != pod.meta.uid) return;
  if (pod.Finished() || pod.meta.deleted || !evicted_.insert(pod.meta.uid).second) return;
  if (std::string why = WhyNot(pod); !why.empty()) {
    problems_.push_back(fmt::format("{} is evicted from {}, {}", key, pod.node_name, why));
  }
  for (const auto& [placeholder, place] : places_) {
    if (place.pod_uid == pod.meta.uid) begun_.insert(place.relocation);
  }
}

void MoveChecker::SeeScale(const PoolBounds& pool, int before, int after) {
  if (after > before && after > pool.max) {
    problems_.push_back(fmt::format("pool {} is asked for {} nodes, and its maximum is {}",
                                    pool.name, after, pool.max));
  }
  if (after < before && after < pool.min) {
    problems_.push_back(
        fmt::format("pool {} is left {} nodes, and its minimum is {}", pool.name, after, pool.min));
  }
}

void MoveChecker::SeeRemoval(const std::string& node, const PoolBounds& pool, int left, Time now) {
  if (left < pool.min) {
    problems_.push_back(fmt::format("{} goes, which leaves pool {} {} nodes, and its minimum is {}",
                                    node, pool.name, left, pool.min));
  }
  for (const auto& [key, known] : pods_) {
    const cluster::Pod& pod = *known.pod;
    if (pod.node_name != node || pod.Finished()) continue;
    const bool late = now - known.bound <= kFaultsLinger;
    if (late || planning::MobilityOf(pod, {}).kind == Mobility::kGoes) continue;
    problems_.push_back(fmt::format("{} goes with {} on it", node, key));
  }
}

std::vector<std::string> MoveChecker::TakeProblems() { return std::exchange(problems_, {}); }

std::vector<std::string> MoveChecker::Leftovers(const std::vector<Node>& nodes,
                                                const std::vector<Pod>& pods) {
  std::vector<std::string> left;
  for (const Pod& pod : pods) {
    if (controllers::IsPlaceholder(*pod)) {
      left.push_back(fmt::format("{} is left, a placeholder ({})", pod->Key(), pod->phase));
    }
  }
  for (const Node& node : nodes) {
    const std::string& name = node->meta.name;
    if (node->unschedulable) left.push_back(fmt::format("{} is still cordoned", name));
    const auto mark = node->meta.annotations.find(controllers::kRemoval);
    if (mark == node->meta.annotations.end()) continue;
    left.push_back(fmt::format("{} is still to go: {}", name, mark->second));
  }
  return left;
}

}  // namespace nos::sim
