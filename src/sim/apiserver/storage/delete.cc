#include "sim/apiserver/storage/delete.h"

#include <fmt/core.h>

#include <algorithm>
#include <deque>

#include "sim/apiserver/objects/tree.h"
#include "sim/apiserver/schemas/shape.h"
#include "sim/apiserver/storage/request_options.h"

namespace nos::sim {
namespace {

constexpr char kForeground[] = "foregroundDeletion";

const JsonArray& FinalizersOf(const Json& object) {
  static const JsonArray kNone;
  const Json* list = Find(object, "metadata", "finalizers");
  return list != nullptr && list->is_array() ? list->get_array() : kNone;
}

bool IsDeleting(const Json& object) {
  return Find(object, "metadata", "deletionTimestamp") != nullptr;
}

int64_t GraceLeft(const Json& object) {
  const Json* grace = Find(object, "metadata", "deletionGracePeriodSeconds");
  return grace != nullptr && grace->is_int64() ? grace->get_int64() : 0;
}

// Only unfinished pods on a node have a grace period; other objects are deleted at once.
int64_t GraceFor(const Place& place, const Json& object, std::optional<int64_t> asked) {
  if (place.storage != kPodStorage || FindString(object, "spec", "nodeName").empty()) return 0;
  const std::string_view phase = FindString(object, "status", "phase");
  if (phase == "Succeeded" || phase == "Failed") return 0;
  constexpr int64_t kYear = int64_t{365} * 24 * 3600;
  if (asked) return std::clamp<int64_t>(*asked, 0, kYear);
  const Json* own = Find(object, "spec", "terminationGracePeriodSeconds");
  return own != nullptr && own->is_int64() ? own->get_int64() : 30;
}

Json WithoutOwner(Json object, std::string_view uid) {
  JsonArray kept;
  for (const Json& owner : Find(object, "metadata", "ownerReferences")->get_array()) {
    if (FindString(owner, "uid") != uid) kept.push_back(owner);
  }
  JsonObject& metadata = MakeObject(object, "metadata");
  if (kept.empty()) {
    metadata.erase("ownerReferences");
  } else {
    metadata["ownerReferences"] = std::move(kept);
  }
  return object;
}

bool WaitsForDependents(const Json& object) {
  const JsonArray& finalizers = FinalizersOf(object);
  return IsDeleting(object) &&
         std::find(finalizers.begin(), finalizers.end(), Json(kForeground)) != finalizers.end();
}

void AddForeground(ApiState& state, const Place& place) {
  Json object = *state.store.Get(place);
  JsonArray finalizers = FinalizersOf(object);
  if (std::find(finalizers.begin(), finalizers.end(), Json(kForeground)) != finalizers.end()) {
    return;
  }
  finalizers.emplace_back(kForeground);
  MakeObject(object, "metadata")["finalizers"] = std::move(finalizers);
  state.store.Put(place, std::move(object));
}

// Carries out a deletion and all its consequences, without recursion: ownership chains may be long.
class Sweep {
 public:
  explicit Sweep(ApiState& state) : state_(state) {}

  // Marks the object as being deleted, or queues it for removal if nothing blocks that. True: it
  // will be removed.
  bool Begin(const Place& place, std::optional<int64_t> asked_grace) {
    const ObjectRef object = state_.store.Get(place);
    if (object == nullptr) return true;
    const int64_t grace = GraceFor(place, *object, asked_grace);
    const bool emptied = Empty(place, *object);
    if (grace > 0 || !FinalizersOf(*object).empty() || !emptied) {
      Mark(place, *object, grace);
      return false;
    }
    due_.push_back(place);
    return true;
  }

  void Run() {
    while (!due_.empty()) {
      const Place place = std::move(due_.front());
      due_.pop_front();
      if (state_.store.Get(place) != nullptr) Follow(place, *state_.store.Remove(place));
    }
  }

  // Queues the object for removal if it is being deleted and nothing blocks that.
  void Reconsider(const Place& place) {
    const ObjectRef object = state_.store.Get(place);
    if (object == nullptr || !IsDeleting(*object)) return;
    const bool alone = std::all_of(FinalizersOf(*object).begin(), FinalizersOf(*object).end(),
                                   [](const Json& finalizer) { return finalizer == kForeground; });
    const std::string uid(FindString(*object, "metadata", "uid"));
    if (!alone || GraceLeft(*object) > 0 || HoldsContent(place, *object)) return;
    if (!FinalizersOf(*object).empty() && !state_.store.DependentsOf(uid).empty()) return;
    due_.push_back(place);
  }

  // Queues the object for removal unconditionally.
  void Remove(Place place) { due_.push_back(std::move(place)); }

  // For a deletion in the foreground: dependents that own others wait for those in turn.
  void DeleteDependents(std::string_view uid) {
    std::deque<std::string> owners{std::string(uid)};
    for (; !owners.empty(); owners.pop_front()) {
      for (const Place& dependent : state_.store.DependentsOf(owners.front())) {
        const ObjectRef object = state_.store.Get(dependent);
        if (WaitsForDependents(*object)) continue;  // a cycle of owners
        std::string own(FindString(*object, "metadata", "uid"));
        if (!state_.store.DependentsOf(own).empty()) {
          AddForeground(state_, dependent);
          owners.push_back(std::move(own));
        }
        Begin(dependent, std::nullopt);
      }
    }
  }

 private:
  void Mark(const Place& place, const Json& object, int64_t grace) {
    if (IsDeleting(object) && grace >= GraceLeft(object)) return;
    Json marked = object;
    JsonObject& metadata = MakeObject(marked, "metadata");
    // A shorter period counts from the first deletion (kubernetes 1.34.2,
    // apiserver/pkg/registry/rest/delete.go, BeforeDelete).
    Time since = state_.clock.Now();
    if (const auto end = ParseTime(FindString(object, "metadata", "deletionTimestamp")); end.ok()) {
      since = *end - std::chrono::seconds(GraceLeft(object));
    }
    metadata["deletionTimestamp"] =
        FormatTime(since + std::chrono::seconds(std::max<int64_t>(grace, 0)));
    metadata["deletionGracePeriodSeconds"] = grace;
    if (place.storage == kNamespaceStorage) MakeObject(marked, "status")["phase"] = "Terminating";
    state_.store.Put(place, std::move(marked));
  }

  // A namespace or definition deletes its content and stays until that is removed. True if all
  // content is removed now.
  bool Empty(const Place& place, const Json& object) {
    bool all = true;
    for (const Place& inside : ContentOf(place, object)) all = Begin(inside, std::nullopt) && all;
    return all;
  }

  static std::string DefinedStorage(const Json& definition) {
    return fmt::format("{}.{}", FindString(definition, "spec", "names", "plural"),
                       FindString(definition, "spec", "group"));
  }

  std::vector<Place> ContentOf(const Place& place, const Json& object) const {
    if (place.storage == kNamespaceStorage) return state_.store.AllIn(place.key.name);
    std::vector<Place> places;
    if (place.storage != kDefinitionStorage) return places;
    const std::string storage = DefinedStorage(object);
    for (const auto& [key, resource] : state_.store.All(storage)) places.push_back({storage, key});
    return places;
  }

  bool HoldsContent(const Place& place, const Json& object) const {
    if (place.storage == kNamespaceStorage) return state_.store.AnyIn(place.key.name);
    return place.storage == kDefinitionStorage && !state_.store.All(DefinedStorage(object)).empty();
  }

  void Follow(const Place& place, const Json& removed) {
    const std::string uid(FindString(removed, "metadata", "uid"));
    for (const Place& dependent : state_.store.DependentsOf(uid)) Release(dependent, uid);
    for (const std::string_view owner : OwnersOf(removed)) {
      if (const auto at = state_.store.ByUid(owner)) Reconsider(*at);
    }
    if (!place.key.ns.empty()) Reconsider({kNamespaceStorage, {"", place.key.ns}});
    const TypeRef type = state_.types.OfStorage(place.storage);
    if (type != nullptr && type->custom != nullptr) {
      Reconsider({kDefinitionStorage, {"", place.storage}});
    }
    if (place.storage == kDefinitionStorage) DropDefinition(removed);
  }

  // Removes the reference to a removed owner; deletes the dependent if it has no other existing
  // owner.
  void Release(const Place& dependent, std::string_view uid) {
    const ObjectRef object = state_.store.Get(dependent);
    if (object == nullptr) return;
    Json freed = WithoutOwner(*object, uid);
    const auto owners = OwnersOf(freed);
    const bool owned = std::any_of(owners.begin(), owners.end(), [&](std::string_view owner) {
      return state_.store.ByUid(owner).has_value();
    });
    if (owned) {
      state_.store.Put(dependent, std::move(freed));
    } else {
      Begin(dependent, std::nullopt);
    }
  }

  void DropDefinition(const Json& definition) {
    const std::string_view plural = FindString(definition, "spec", "names", "plural");
    const std::string_view group = FindString(definition, "spec", "group");
    state_.types.RemoveDefinition(plural, group);
    state_.store.Drop(fmt::format("{}.{}", plural, group));
  }

  ApiState& state_;
  std::deque<Place> due_;
};

Check CheckPreconditions(const WriteRequest& request, const DeleteOptions& options,
                         const Json& object) {
  const auto differs = [&](const std::string& wanted, std::string_view field) {
    return !wanted.empty() && wanted != FindString(object, "metadata", field);
  };
  if (!differs(options.uid, "uid") && !differs(options.resource_version, "resourceVersion")) {
    return std::nullopt;
  }
  return ObjectConflict(*request.type, request.key.name,
                        "Precondition failed: the object is another one or has changed");
}

Check CheckDeletable(const WriteRequest& request) {
  const std::string& name = request.key.name;
  const bool kept = name == "default" || name == "kube-system" || name == "kube-public";
  if (request.type->storage != kNamespaceStorage || !kept) return std::nullopt;
  return Forbidden(
      fmt::format("namespaces \"{}\" is forbidden: this namespace may not be deleted", name));
}

// Two old kinds leave their pods behind unless the client asks otherwise, as kubectl does
// (DefaultGarbageCollectionPolicy).
std::string_view DefaultPropagation(const ResourceType& type) {
  const bool orphans = type.storage == "jobs.batch" || type.storage == "replicationcontrollers";
  return orphans ? "Orphan" : "Background";
}

void Orphan(ApiState& state, std::string_view uid) {
  for (const Place& dependent : state.store.DependentsOf(uid)) {
    state.store.Put(dependent, WithoutOwner(*state.store.Get(dependent), uid));
  }
}

}  // namespace

Outcome<DeleteOptions> ParseDeleteOptions(const kube::ApiRequest& request) {
  DeleteOptions options;
  const Json& body = request.body;
  if (!body.is_null()) {
    if (auto refusal = CheckSize(body)) return *refusal;
    if (auto refusal = CheckShape("DeleteOptions", body)) return *refusal;
  }
  if (const Json* grace = Find(body, "gracePeriodSeconds"); grace && grace->is_int64()) {
    options.grace_seconds = grace->get_int64();
  }
  if (const std::string text = request.Query("gracePeriodSeconds"); !text.empty()) {
    const auto parsed = ParseJson(text);
    if (!parsed.ok() || !parsed->is_int64()) return BadRequest("gracePeriodSeconds: not a number");
    options.grace_seconds = parsed->get_int64();
  }
  std::string propagation(FindString(body, "propagationPolicy"));
  if (propagation.empty()) propagation = request.Query("propagationPolicy");
  const Json* orphan = Find(body, "orphanDependents");
  if (propagation.empty() && orphan != nullptr && *orphan == true) propagation = "Orphan";
  const bool known = propagation.empty() || propagation == "Background" ||
                     propagation == "Foreground" || propagation == "Orphan";
  if (!known) {
    return BadRequest(
        fmt::format("propagationPolicy \"{}\" is none of Background, Foreground, "
                    "Orphan",
                    propagation));
  }
  options.propagation = std::move(propagation);
  std::vector<std::string> dry_run;
  if (const Json* values = Find(body, "dryRun"); values != nullptr && values->is_array()) {
    for (const Json& value : values->get_array()) {
      dry_run.emplace_back(value.is_string() ? View(value.get_string()) : "");
    }
  }
  NOS_ASSIGN(options.dry_run, ParseDryRun("DeleteOptions", dry_run));
  options.uid = FindString(body, "preconditions", "uid");
  options.resource_version = FindString(body, "preconditions", "resourceVersion");
  return options;
}

Outcome<Deletion> DeleteObject(ApiState& state, const WriteRequest& request,
                               const DeleteOptions& options) {
  const Place place{request.type->storage, request.key};
  const ObjectRef object = state.store.Get(place);
  if (object == nullptr) return ObjectNotFound(*request.type, request.key.name);
  if (auto refusal = CheckPreconditions(request, options, *object)) return *refusal;
  if (auto refusal = CheckDeletable(request)) return *refusal;
  if (request.dry_run || options.dry_run) return Deletion{object, true};
  // 1. Apply the propagation policy before the object is removed: orphans lose their reference, or
  //    the object waits for its dependents by a finalizer.
  const std::string uid(FindString(*object, "metadata", "uid"));
  const bool owns = !state.store.DependentsOf(uid).empty();
  const std::string_view propagation =
      options.propagation.empty() ? DefaultPropagation(*request.type) : options.propagation;
  if (propagation == "Orphan") Orphan(state, uid);
  if (propagation == "Foreground" && owns) AddForeground(state, place);
  // 2. Delete the object and everything that follows from it.
  Sweep sweep(state);
  sweep.Begin(place, options.grace_seconds);
  if (propagation == "Foreground" && owns) sweep.DeleteDependents(uid);
  sweep.Run();
  const ObjectRef left = state.store.Get(place);
  return left == nullptr ? Deletion{object, true} : Deletion{left, false};
}

void RemoveExpired(ApiState& state) {
  Sweep sweep(state);
  for (Place& place : state.store.Expired(state.clock.Now())) sweep.Remove(std::move(place));
  sweep.Run();
}

void FinishDeletion(ApiState& state, const Place& place) {
  Sweep sweep(state);
  sweep.Reconsider(place);
  sweep.Run();
}

}  // namespace nos::sim
