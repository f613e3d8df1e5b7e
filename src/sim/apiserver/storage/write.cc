#include "sim/apiserver/storage/write.h"

#include <fmt/core.h>

#include "sim/apiserver/objects/tree.h"
#include "sim/apiserver/schemas/canonical.h"
#include "sim/apiserver/schemas/custom_schema.h"
#include "sim/apiserver/schemas/defaults.h"
#include "sim/apiserver/schemas/shape.h"
#include "sim/apiserver/schemas/validation.h"
#include "sim/apiserver/storage/admission.h"
#include "sim/apiserver/storage/delete.h"

namespace nos::sim {
namespace {

constexpr std::string_view kChanged =
    "the object has been modified; please apply your changes to the latest version and try again";

const Json kNull;

Place PlaceOf(const WriteRequest& request) { return {request.type->storage, request.key}; }

// Keeps only the part of metadata that the client may set.
Check StartMetadata(ApiState& state, const WriteRequest& request, Json& object) {
  JsonObject& metadata = MakeObject(object, "metadata");
  if (!FindString(object, "metadata", "resourceVersion").empty()) {
    return BadRequest("resourceVersion should not be set on objects to be created");
  }
  for (const std::string_view field : {"resourceVersion", "selfLink", "deletionTimestamp",
                                       "deletionGracePeriodSeconds", "generation"}) {
    metadata.erase(field);
  }
  const std::string prefix(FindString(object, "metadata", "generateName"));
  if (FindString(object, "metadata", "name").empty() && !prefix.empty()) {
    metadata["name"] = prefix.substr(0, 58) + state.store.NewSuffix();
  }
  metadata["uid"] = state.store.NewUid();
  metadata["creationTimestamp"] = FormatTime(request.manager.now);
  if (request.type->has_generation) metadata["generation"] = 1;
  return std::nullopt;
}

void Shape(const WriteRequest& request, Json& object) {
  ApplyDefaults(*request.type, object);
  Canonicalise(*request.type, object);
  if (request.type->custom != nullptr) PruneAndDefault(request.type->custom->schema, object);
}

// Restores the old value of a member, or removes the member if it had none.
void Keep(JsonObject& into, const Json* from, std::string_view key) {
  const Json* value = from == nullptr ? nullptr : Find(*from, key);
  if (value == nullptr) {
    into.erase(key);
  } else {
    into[key] = *value;
  }
}

void KeepMetadata(const Json& old, Json& object) {
  JsonObject& metadata = MakeObject(object, "metadata");
  const Json* before = Find(old, "metadata");
  for (const std::string_view field :
       {"name", "namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp",
        "deletionGracePeriodSeconds", "generation", "generateName", "selfLink"}) {
    Keep(metadata, before, field);
  }
  if (!metadata.contains("managedFields")) Keep(metadata, before, "managedFields");
}

// Restores everything except the status and the metadata that a status writer may set: labels and
// annotations of built-in types (the kubelet does that).
void KeepAllButStatus(const WriteRequest& request, const Json& old, Json& object) {
  JsonObject& root = object.get_object();
  std::vector<std::string> foreign;
  for (const auto& [key, value] : root) {
    if (!old.get_object().contains(key) && key != "status") foreign.emplace_back(key);
  }
  for (const std::string& key : foreign) root.erase(key);
  for (const auto& [key, value] : old.get_object()) {
    const Json* now = root.if_contains(key);
    // Comparing is cheaper than copying, and in most cases the value is unchanged.
    if (key != "status" && key != "metadata" && (now == nullptr || *now != value)) {
      root[key] = value;
    }
  }
  Json sent = std::move(root["metadata"]);
  root["metadata"] = *Find(old, "metadata");
  JsonObject& metadata = root["metadata"].get_object();
  Keep(metadata, &sent, "managedFields");
  if (request.type->custom != nullptr) return;
  for (const std::string_view field : {"labels", "annotations"}) Keep(metadata, &sent, field);
}

// The status subresource writes only the status; the resource itself writes everything else.
void KeepOtherHalf(const WriteRequest& request, const Json& old, Json& object) {
  if (request.subresource == "status") {
    KeepAllButStatus(request, old, object);
  } else if (request.type->has_status) {
    const Json* now = Find(object, "status");
    const Json* before = Find(old, "status");
    const bool same = now != nullptr && before != nullptr && *now == *before;
    if (!same) Keep(object.get_object(), &old, "status");
  }
}

bool SameSpec(const Json& a, const Json& b) {
  const auto without = [](const Json& object) {
    JsonObject rest = object.get_object();
    rest.erase("metadata");
    rest.erase("status");
    return rest;
  };
  return without(a) == without(b);
}

void CountGeneration(const WriteRequest& request, const Json& old, Json& object) {
  if (!request.type->has_generation || SameSpec(old, object)) return;
  const Json* generation = Find(old, "metadata", "generation");
  const int64_t before =
      generation != nullptr && generation->is_int64() ? generation->get_int64() : 1;
  MakeObject(object, "metadata")["generation"] = before + 1;
}

Check CheckPreconditions(const WriteRequest& request, const Json& old, const Json& object) {
  for (const std::string_view field : {"resourceVersion", "uid"}) {
    const std::string_view wanted = FindString(object, "metadata", field);
    if (wanted.empty() || wanted == FindString(old, "metadata", field)) continue;
    const std::string why = field == "uid"
                                ? fmt::format(
                                      "Precondition failed: UID in precondition: {}, UID "
                                      "in object meta: {}",
                                      wanted, FindString(old, "metadata", "uid"))
                                : std::string(kChanged);
    return ObjectConflict(*request.type, request.key.name, why);
  }
  return std::nullopt;
}

}  // namespace

Check CheckEnvelope(const ResourceType& type, const std::string& ns, Json& object) {
  if (!object.is_object()) return BadRequest("the body must be a JSON object");
  if (auto refusal = CheckSize(object)) return refusal;
  if (auto refusal = CheckShape(type, object)) return refusal;
  JsonObject& root = object.get_object();
  const std::string_view version = FindString(object, "apiVersion");
  const std::string_view kind = FindString(object, "kind");
  if ((!version.empty() && version != type.ApiVersion()) || (!kind.empty() && kind != type.kind)) {
    return BadRequest(
        fmt::format("the object provided is a {} of {}, but this resource holds {} of {}", kind,
                    version, type.kind, type.ApiVersion()));
  }
  root["apiVersion"] = type.ApiVersion();
  root["kind"] = type.kind;
  JsonObject& metadata = MakeObject(object, "metadata");
  const std::string_view own = FindString(object, "metadata", "namespace");
  if (!type.namespaced) {
    metadata.erase("namespace");
  } else if (!own.empty() && own != ns) {
    return BadRequest(
        "the namespace of the provided object does not match the namespace sent on "
        "the request");
  } else {
    metadata["namespace"] = ns;
  }
  return std::nullopt;
}

Outcome<ObjectRef> CreateObject(ApiState& state, const WriteRequest& request, Json object) {
  // 1. Complete the object: metadata, initial status, defaults. Admission and validation check the
  //    completed object, as in a real server.
  if (auto refusal = StartMetadata(state, request, object)) return *refusal;
  WriteRequest named = request;
  named.key.name = FindString(object, "metadata", "name");
  ResetStatus(*request.type, object);
  Shape(request, object);
  // 2. Admit, validate, and refuse an existing name.
  if (auto refusal = AdmitCreate(state, *request.type, named.key, object)) return *refusal;
  if (auto refusal = Validate(*request.type, object, nullptr)) return *refusal;
  if (state.store.Get(PlaceOf(named)) != nullptr) {
    return ObjectExists(*request.type, named.key.name);
  }
  // 3. Record the field managers last, because admission may set fields. They count for the size.
  if (!request.applied) RecordUpdate(kNull, object, request.manager, MergeRules(*request.type));
  if (auto refusal = CheckSize(object)) return *refusal;
  // 4. Store the object, then its side effects, which may change it again.
  if (request.dry_run) return std::make_shared<const Json>(std::move(object));
  const ObjectRef stored = state.store.Put(PlaceOf(named), std::move(object));
  AfterWrite(state, *request.type, named.key, *stored);
  return state.store.Get(PlaceOf(named));
}

Outcome<ObjectRef> UpdateObject(ApiState& state, const WriteRequest& request, Json object) {
  // 1. Check the address and the preconditions before the object changes.
  const ObjectRef old = state.store.Get(PlaceOf(request));
  if (old == nullptr) return ObjectNotFound(*request.type, request.key.name);
  if (const auto name = FindString(object, "metadata", "name"); name != request.key.name) {
    return BadRequest(
        fmt::format("the name of the object ({}) does not match the name on the URL ({})", name,
                    request.key.name));
  }
  if (auto refusal = CheckPreconditions(request, *old, object)) return *refusal;
  // 2. Restore the fields that this request may not change, and set defaults.
  KeepOtherHalf(request, *old, object);
  KeepMetadata(*old, object);
  Shape(request, object);
  // 3. Admit and validate the resulting object.
  if (auto refusal = AdmitUpdate(*request.type, *old, object)) return *refusal;
  if (auto refusal = Validate(*request.type, object, old.get())) return *refusal;
  // 4. Record generation and field managers last: both compare the result with the old object.
  CountGeneration(request, *old, object);
  if (!request.applied) RecordUpdate(*old, object, request.manager, MergeRules(*request.type));
  if (auto refusal = CheckSize(object)) return *refusal;
  // 5. Store the object unless it is unchanged, then its side effects. The update may have dropped
  //    the last finalizer of an object that is being deleted.
  if (object == *old) return old;
  if (request.dry_run) return std::make_shared<const Json>(std::move(object));
  const ObjectRef stored = state.store.Put(PlaceOf(request), std::move(object));
  AfterWrite(state, *request.type, request.key, *stored);
  FinishDeletion(state, PlaceOf(request));
  const ObjectRef left = state.store.Get(PlaceOf(request));
  return left == nullptr ? stored : left;
}

}  // namespace nos::sim
