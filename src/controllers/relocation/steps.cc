#include "controllers/relocation/steps.h"

#include <fmt/core.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/log.h"
#include "cluster/pod_end.h"
#include "controllers/relocation/marks.h"
#include "controllers/relocation/reopen.h"
#include "scheduling/pod_names.h"

namespace nos::controllers {
namespace {

using scheduling::PodText;

// Time after which the caches show a successful eviction.
constexpr Duration kShown = std::chrono::minutes(1);
constexpr Duration kForgotten = std::chrono::minutes(10);

std::string NamespaceOf(const std::string& key) { return key.substr(0, key.find('/')); }

}  // namespace

RelocationSteps::RelocationSteps(const RelocationConfig& config, const reconcile::Listers& view,
                                 kube::Client& client, Time now,
                                 std::map<std::string, RelocationMemory>& memory,
                                 std::vector<RelocationNote>& notes)
    : config_(config),
      view_(view),
      client_(client),
      now_(now),
      memory_(memory),
      notes_(notes),
      scene_(LookAtRelocations(view, config)),
      preconditions_(config, view, scene_, memory, now),
      outcome_(now) {
  for (const auto& [id, moving] : scene_.moving) {
    for (const Place& place : moving.places) moved_.insert(place.what.uid);
  }
}

reconcile::ReconcileResult RelocationSteps::All() {
  // 1. Remove unusable annotations: the other steps ignore them.
  ClearWhatIsBad();

  // 2. Advance each relocation. If two contradict each other, the later one is called off.
  std::vector<Moving*> order;
  for (auto& [id, moving] : scene_.moving) order.push_back(&moving);
  std::ranges::sort(order, {}, [](const Moving* m) { return std::pair(m->Since(), m->id); });
  for (Moving* moving : order) GoOn(*moving);

  // 3. Match successors to the evicted pods of all relocations together, because pods of one
  //    controller must not count the same successor. Then release the placeholders that served.
  AwaitSuccessors();
  ReleasePlaces();

  // 4. Uncordon nodes of relocations that are over now.
  ReopenNodes(view_, client_, now_, config_.successor_timeout, scene_, memory_, outcome_);
  Forget();
  return outcome_.Result();
}

void RelocationSteps::ClearWhatIsBad() {
  using Kind = RelocationNote::Kind;
  for (const auto& [pod, why] : scene_.bad_places) {
    const Status deleted = DeletePlaceholder(pod->meta, client_);
    if (IsGoneOrChanged(deleted)) continue;
    if (!deleted.ok()) {
      outcome_.Note(deleted, "delete placeholder " + pod->Key());
      continue;
    }
    RelocationNote note;
    note.kind = Kind::kCalledOff;
    note.placeholder = pod->Key();
    note.why = why;
    notes_.push_back(std::move(note));
  }
  for (const auto& [node, why] : scene_.bad_marks) {
    const Status written = DropMark(*node, client_).status();
    if (!written.ok()) {
      outcome_.Note(written, "remove annotation of node " + node->meta.name);
      continue;
    }
    RelocationNote note;
    note.kind = Kind::kBadMark;
    note.node = node->meta.name;
    note.why = why;
    note.cordoned = node->unschedulable;
    notes_.push_back(std::move(note));
  }
}

void RelocationSteps::GoOn(Moving& moving) {
  RelocationMemory& memory = memory_[moving.id];
  memory.seen = now_;
  Finding found;
  found.off = memory.off;
  if (found.off.empty()) {
    found = preconditions_.Check(moving);
    outcome_.Due(found.due);
  }
  if (!found.off.empty()) TakeDown(moving, found.off);
  if (found.wait) return;
  if (moving.Held()) {
    Drain(moving);
  } else if (memory.off.empty()) {
    Hold(moving);
  }
  if (memory.off.empty()) MarkIfEmpty(moving);
}

void RelocationSteps::TakeDown(Moving& moving, const std::string& why) {
  if (moving.mark && moving.mark->state != Removal::State::kAsked) {
    outcome_.Note(UnmarkNode(*moving.node, client_).status(),
                  "uncordon node " + moving.node->meta.name);
  }
  GiveUpPlaces(moving, why);
}

void RelocationSteps::GiveUpPlaces(Moving& moving, const std::string& why) {
  RelocationMemory& memory = memory_[moving.id];
  memory.off = why;
  const bool held = moving.Held();
  bool any_evicted = false;
  for (const Place& place : moving.places) {
    any_evicted |= held && (!IsLeft(place) || !place.what.ended.empty());
    if (held && !IsLeft(place)) continue;
    if (!gone_.insert(place.pod->Key()).second) continue;
    const Status deleted = Delete(place);
    if (!deleted.ok()) outcome_.Note(deleted, "delete placeholder " + place.pod->Key());
  }
  if (std::exchange(memory.reported_off, true)) return;
  RelocationNote note = NoteOf(moving, RelocationNote::Kind::kCalledOff);
  note.why = why;
  note.any_evicted = any_evicted;
  notes_.push_back(std::move(note));
}

void RelocationSteps::Hold(Moving& moving) {
  const size_t before = released_.size();
  for (Place& place : moving.places) {
    if (!place.Remains()) released_.push_back({&place, ""});
  }
  if (moving.places.empty() || released_.size() > before) return;
  if (!std::ranges::all_of(moving.places, &Place::IsHeld)) return;
  bool done = true;
  for (Place& place : moving.places) {
    if (place.what.held) continue;
    PlaceFor what = place.what;
    what.held = now_;
    done &= Write(place, what);
  }
  if (!done || std::exchange(memory_[moving.id].reported_held, true)) return;
  notes_.push_back(NoteOf(moving, RelocationNote::Kind::kHeld));
}

void RelocationSteps::Drain(Moving& moving) {
  RelocationMemory& memory = memory_[moving.id];
  for (Place& place : moving.places) {
    if (IsLeft(place)) {
      if (!memory.off.empty()) continue;
      const std::string why = Evict(moving, place);
      if (!why.empty()) TakeDown(moving, why);
    } else if (place.Remains()) {
      outcome_.Due(memory.evictions[place.what.uid].again);
    } else if (place.moved && !place.moved->meta.deleted) {
      released_.push_back({&place, ""});  // it has finished by itself
    } else {
      waiting_.push_back(&place);
    }
  }
}

void RelocationSteps::MarkIfEmpty(Moving& moving) {
  const std::optional<Removal>& mark = moving.mark;
  if (!mark || mark->state != Removal::State::kEmptying) return;
  if (std::ranges::any_of(moving.places, &Place::Remains)) return;
  const std::string name = moving.NodeName();
  for (const auto& pod : scene_.on[name]) {
    if (HasToGoFirst(*pod, config_.rules)) return;
  }
  // A scheduler may have bound a pod before it saw the cordon.
  const Time settled = mark->since + kSettle;
  if (now_ < settled) return outcome_.Due(settled);
  Removal emptied = *mark;
  emptied.state = Removal::State::kEmptied;
  emptied.since = now_;
  const Status written = MarkNode(*moving.node, emptied, client_).status();
  if (!written.ok()) return outcome_.Note(written, "mark node " + name + " as drained");
  notes_.push_back(NoteOf(moving, RelocationNote::Kind::kMoved));
}

std::string RelocationSteps::Evict(const Moving& moving, const Place& place) {
  const cluster::Pod& pod = *place.moved;
  RelocationMemory::Eviction& eviction = memory_[moving.id].evictions[pod.meta.uid];
  if (now_ < eviction.again) {
    outcome_.Due(eviction.again);
    return "";
  }
  const Status answer =
      client_.Evict(pod.meta.ns, pod.meta.name, pod.meta.uid, cluster::GraceOfEviction(pod));
  eviction.let_go = answer.ok() || answer.code() == Code::kNotFound;
  eviction.again = now_ + (eviction.let_go ? kShown : config_.eviction_retry);
  switch (answer.code()) {
    case Code::kOk: {
      Log(LogLevel::kInfo, "evicting Pod to move it to another Node",
          {{"pod", pod.Key()}, {"from", pod.node_name}, {"to", place.what.to}});
      RelocationNote note = NoteOf(moving, RelocationNote::Kind::kEvicted);
      note.pod = place.what.pod;
      note.from = pod.node_name;
      note.to = place.what.to;
      notes_.push_back(std::move(note));
      break;
    }
    case Code::kNotFound:
    case Code::kUnavailable:  // mostly refused by a PodDisruptionBudget
    case Code::kDeadline:
    case Code::kConflict:
    case Code::kExhausted:
      break;
    default:
      return fmt::format("failed to evict {}: {}", PodText(pod.Key()), answer.ToString());
  }
  outcome_.Due(eviction.again);
  return "";
}

void RelocationSteps::AwaitSuccessors() {
  std::ranges::sort(waiting_, {}, [](const Place* place) {
    return std::pair(place->what.held, place->pod->meta.name);
  });
  for (Place* place : waiting_) {
    if (const cluster::Pod* successor = FindSuccessor(*place)) {
      taken_up_.insert(successor->meta.uid);
      released_.push_back({place, successor->meta.uid});
      continue;
    }
    const Time until = WaitsUntil(*place);
    if (now_ < until) {
      outcome_.Due(until);
    } else {
      released_.push_back({place, ""});
    }
  }
}

bool RelocationSteps::CountsAsSuccessor(const Place& place, const cluster::Pod& pod) const {
  const std::string& uid = pod.meta.uid;
  return uid != place.what.uid && !pod.meta.deleted && !moved_.contains(uid) &&
         !taken_up_.contains(uid) && std::ranges::count(place.what.counted, uid) == 0;
}

const cluster::Pod* RelocationSteps::FindSuccessor(const Place& place) const {
  const Pod same = view_.pods.Get(place.what.pod);
  if (same != nullptr && CountsAsSuccessor(place, *same)) return same.get();
  if (place.what.owner.empty()) return nullptr;
  const auto made = scene_.made_by.find(NamespaceOf(place.what.pod) + "/" + place.what.owner);
  if (made == scene_.made_by.end()) return nullptr;
  // A creationTimestamp has whole seconds.
  const Time evicted = std::chrono::floor<std::chrono::seconds>(place.what.held.value_or(now_));
  for (const Pod& pod : made->second) {
    // Successors of a StatefulSet's pods have the same name.
    const bool named = ControllerOf(*pod)->kind == "StatefulSet";
    if (!named && pod->meta.created >= evicted && CountsAsSuccessor(place, *pod)) return pod.get();
  }
  return nullptr;
}

Time RelocationSteps::WaitsUntil(const Place& place) {
  if (place.moved) return place.moved->meta.deleted.value_or(now_) + config_.drain_timeout;
  const Time missed = memory_[place.what.id].missed.try_emplace(place.what.uid, now_).first->second;
  return missed + config_.successor_timeout;
}

// First records the releases in the remaining placeholders, so that they survive a crash.
void RelocationSteps::ReleasePlaces() {
  for (const Release& release : released_) {
    gone_.insert(release.place->pod->Key());
    if (release.successor.empty()) continue;
    memory_[release.place->what.id].successors.insert(release.successor);
  }
  bool recorded = true;
  for (auto& [id, moving] : scene_.moving) {
    for (Place& place : moving.places) {
      if (!gone_.contains(place.pod->Key())) recorded &= RecordReleases(place);
    }
  }
  if (!recorded) return;
  for (const Release& release : released_) {
    const Status deleted = Delete(*release.place);
    if (!deleted.ok()) outcome_.Note(deleted, "delete placeholder " + release.place->pod->Key());
  }
  for (const auto& [id, moving] : scene_.moving) {
    RelocationMemory& memory = memory_[id];
    const bool over = std::ranges::all_of(
        moving.places, [&](const Place& place) { return gone_.contains(place.pod->Key()); });
    if (!over || moving.ForPod().empty() || !memory.off.empty()) continue;
    if (std::exchange(memory.reported_moved, true)) continue;
    notes_.push_back(NoteOf(moving, RelocationNote::Kind::kMoved));
  }
}

bool RelocationSteps::RecordReleases(Place& place) {
  PlaceFor what = place.what;
  const auto add = [](const std::string& uid, std::vector<std::string>& to) {
    if (std::ranges::count(to, uid) == 0) to.push_back(uid);
  };
  for (const Release& release : released_) {
    const PlaceFor& other = release.place->what;
    if (other.id == what.id) add(other.uid, what.ended);
    const bool same_owner = !what.owner.empty() && other.owner == what.owner;
    if (same_owner && !release.successor.empty()) add(release.successor, what.counted);
  }
  const bool same = what.ended.size() == place.what.ended.size() &&
                    what.counted.size() == place.what.counted.size();
  return same || Write(place, what);
}

void RelocationSteps::Forget() {
  std::erase_if(memory_, [&](const auto& entry) {
    return !scene_.moving.contains(entry.first) && now_ - entry.second.seen > kForgotten;
  });
}

bool RelocationSteps::CallOff(const std::string& node, std::string_view why) {
  const auto found = std::ranges::find_if(scene_.moving, [&](const auto& entry) {
    return entry.second.mark && entry.second.node->meta.name == node;
  });
  if (found == scene_.moving.end()) return view_.nodes.Get(node) != nullptr;
  Moving& moving = found->second;
  const Removal::State state = moving.mark ? moving.mark->state : Removal::State::kAsked;
  if (state == Removal::State::kAsked) return false;
  if (!memory_[moving.id].off.empty()) return true;  // the next Step completes this
  if (state == Removal::State::kEmptying) {
    const bool evicted = moving.Held() && !std::ranges::all_of(moving.places, [&](const Place& p) {
                           return IsLeft(p);
                         });
    const bool ends = std::ranges::any_of(scene_.on[node], [&](const Pod& pod) {
      return pod->meta.deleted && HasToGoFirst(*pod, config_.rules);
    });
    if (evicted || ends) return false;
  }
  const Status written = UnmarkNode(*moving.node, client_).status();
  if (!written.ok()) {
    Log(LogLevel::kWarn, "failed to remove mark from Node",
        {{"node", node}, {"error", written.ToString()}});
    return false;
  }
  memory_[moving.id].seen = now_;
  GiveUpPlaces(moving, std::string(why));
  return true;
}

bool RelocationSteps::Write(Place& place, const PlaceFor& what) {
  JsonObject annotations;
  annotations[kPlaceFor] = WritePlaceFor(what);
  JsonObject metadata = {{"annotations", std::move(annotations)}};
  if (!place.pod->meta.uid.empty()) metadata["uid"] = place.pod->meta.uid;
  const Status written =
      client_
          .Patch(kube::kPods, place.pod->meta.ns, place.pod->meta.name, kube::PatchType::kMerge,
                 JsonObject{{"metadata", std::move(metadata)}})
          .status();
  if (written.ok()) place.what = what;
  if (written.ok() || IsGoneOrChanged(written)) return true;
  outcome_.Note(written, "write placeholder " + place.pod->Key());
  return false;
}

Status RelocationSteps::Delete(const Place& place) {
  Status deleted = DeletePlaceholder(place.pod->meta, client_);
  return IsGoneOrChanged(deleted) ? Status::Ok() : deleted;
}

RelocationNote RelocationSteps::NoteOf(const Moving& moving, RelocationNote::Kind kind) {
  RelocationNote note;
  note.kind = kind;
  note.id = moving.id;
  note.node = moving.NodeName();
  note.pool = moving.mark ? moving.mark->pool : "";
  note.for_pod = moving.ForPod();
  return note;
}

}  // namespace nos::controllers
