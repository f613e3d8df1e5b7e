#include "sim/apiserver/storage/admission.h"

#include <fmt/core.h>

namespace nos::sim {
namespace {

// kube-apiserver's --event-ttl; every write restarts it.
constexpr Duration kEventLife = std::chrono::hours(1);
constexpr std::string_view kServiceStorage = "services";

Check AdmitNamespace(const ApiState& state, const ResourceType& type, const ObjectKey& key) {
  if (!type.namespaced) return std::nullopt;
  const ObjectRef ns = state.store.Get({kNamespaceStorage, {"", key.ns}});
  if (ns == nullptr) return ObjectNotFound(*state.types.OfStorage(kNamespaceStorage), key.ns);
  if (Find(*ns, "metadata", "deletionTimestamp") == nullptr) return std::nullopt;
  Refusal refusal = Forbidden(fmt::format(
      "{} \"{}\" is forbidden: unable to create new content in namespace {} because it is being "
      "terminated",
      type.GroupResource(), key.name, key.ns));
  refusal.causes.push_back({"NamespaceTerminating", "metadata.namespace",
                            fmt::format("namespace {} is being terminated", key.ns)});
  return refusal;
}

// The class that a pod names, otherwise the global default class, otherwise null.
ObjectRef PriorityClassFor(const ApiState& state, std::string_view name) {
  if (!name.empty()) {
    return state.store.Get({kPriorityClassStorage, {"", std::string(name)}});
  }
  for (const auto& [key, object] : state.store.All(kPriorityClassStorage)) {
    const Json* is_default = Find(*object, "globalDefault");
    if (is_default != nullptr && *is_default == true) return object;
  }
  return nullptr;
}

Check AdmitPriority(const ApiState& state, const ObjectKey& key, Json& pod) {
  const std::string name(FindString(pod, "spec", "priorityClassName"));
  const ObjectRef priority_class = PriorityClassFor(state, name);
  if (priority_class == nullptr && !name.empty()) {
    return Forbidden(fmt::format(
        "pods \"{}\" is forbidden: no PriorityClass with name {} was found", key.name, name));
  }
  int64_t value = 0;
  std::string policy = "PreemptLowerPriority";
  if (priority_class != nullptr) {
    const Json* number = Find(*priority_class, "value");
    if (number != nullptr && number->is_int64()) value = number->get_int64();
    policy = FindString(*priority_class, "preemptionPolicy");
  }
  const Json* own = Find(pod, "spec", "priority");
  if (own != nullptr && own->is_int64() && own->get_int64() != value) {
    return Forbidden(fmt::format(
        "pods \"{}\" is forbidden: the integer value of priority ({}) must not be provided in pod "
        "spec; priority admission controller computed {} from the given PriorityClass name",
        key.name, own->get_int64(), value));
  }
  JsonObject& spec = MakeObject(pod, "spec");
  if (priority_class != nullptr) {
    spec["priorityClassName"] = FindString(*priority_class, "metadata", "name");
  }
  spec["priority"] = value;
  if (!spec.contains("preemptionPolicy")) spec["preemptionPolicy"] = policy;
  return std::nullopt;
}

// An address of 10.96.0.0/12, the default range of kubeadm. The store's version makes it another
// one for each Service.
void GiveAddress(const ApiState& state, Json& service) {
  JsonObject& spec = MakeObject(service, "spec");
  const std::string_view given = FindString(service, "spec", "clusterIP");
  if (FindString(service, "spec", "type") == "ExternalName") return;
  std::string address(given);
  if (given.empty()) {
    const uint64_t number = state.store.version() % (1 << 20);
    address = fmt::format("10.{}.{}.{}", 96 + (number >> 16), (number >> 8) & 0xff, number & 0xff);
  }
  spec["clusterIP"] = address;
  spec["clusterIPs"] = JsonArray{Json(address)};
  if (!spec.contains("ipFamilies")) spec["ipFamilies"] = JsonArray{"IPv4"};
  if (!spec.contains("ipFamilyPolicy")) spec["ipFamilyPolicy"] = "SingleStack";
}

void PutDefaultServiceAccount(ApiState& state, const std::string& ns) {
  const Place place{kServiceAccountStorage, {ns, "default"}};
  if (state.store.Get(place) != nullptr) return;
  state.store.Put(place, {{"apiVersion", "v1"},
                          {"kind", "ServiceAccount"},
                          {"metadata",
                           {{"name", "default"},
                            {"namespace", ns},
                            {"uid", state.store.NewUid()},
                            {"creationTimestamp", FormatTime(state.clock.Now())}}}});
}

Json Condition(std::string_view type, std::string_view reason, std::string_view message,
               const std::string& now) {
  return {{"type", type},
          {"status", "True"},
          {"reason", reason},
          {"message", message},
          {"lastTransitionTime", now}};
}

// A definition is served as soon as it is written; its status reports that.
void Establish(ApiState& state, const ObjectKey& key, const Json& definition) {
  const std::string now = FormatTime(state.clock.Now());
  Json updated = definition;
  JsonObject& status = MakeObject(updated, "status");
  if (!status.contains("conditions")) {
    status["conditions"] =
        JsonArray{Condition("NamesAccepted", "NoConflicts", "no conflicts found", now),
                  Condition("Established", "InitialNamesAccepted",
                            "the initial names have been accepted", now)};
  }
  status["acceptedNames"] = *Find(definition, "spec", "names");
  JsonArray stored;
  for (const Json& version : Find(definition, "spec", "versions")->get_array()) {
    const Json* storage = Find(version, "storage");
    if (storage != nullptr && *storage == true) {
      stored.emplace_back(boost::json::string(FindString(version, "name")));
    }
  }
  status["storedVersions"] = std::move(stored);
  state.types.PutDefinition(updated);
  if (updated != definition) state.store.Put({kDefinitionStorage, key}, std::move(updated));
}

}  // namespace

Check AdmitCreate(const ApiState& state, const ResourceType& type, const ObjectKey& key,
                  Json& object) {
  if (auto refusal = AdmitNamespace(state, type, key)) return refusal;
  if (state.store.size() >= state.max_objects) {
    return Forbidden(fmt::format("{} \"{}\" is forbidden: the server holds its limit of {} objects",
                                 type.GroupResource(), key.name, state.max_objects));
  }
  if (type.storage == kPodStorage) return AdmitPriority(state, key, object);
  if (type.storage == kServiceStorage) GiveAddress(state, object);
  return std::nullopt;
}

Check AdmitUpdate(const ResourceType& type, const Json& old, Json& object) {
  if (type.storage == kServiceStorage) {
    JsonObject& spec = MakeObject(object, "spec");
    for (const std::string_view field :
         {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"}) {
      const Json* before = Find(old, "spec", field);
      if (before != nullptr && !spec.contains(field)) spec[field] = *before;
    }
  }
  if (type.storage != kPodStorage) return std::nullopt;
  // Fields that were computed at creation: an update that omits them keeps them.
  JsonObject& spec = MakeObject(object, "spec");
  for (const std::string_view field :
       {"priority", "preemptionPolicy", "priorityClassName", "nodeName", "serviceAccountName",
        "serviceAccount", "enableServiceLinks"}) {
    const Json* before = Find(old, "spec", field);
    if (before != nullptr && !spec.contains(field)) spec[field] = *before;
  }
  return std::nullopt;
}

void AfterWrite(ApiState& state, const ResourceType& type, const ObjectKey& key,
                const Json& object) {
  if (type.storage == kNamespaceStorage &&
      Find(object, "metadata", "deletionTimestamp") == nullptr) {
    PutDefaultServiceAccount(state, key.name);
  }
  if (type.storage == kEventStorage) {
    state.store.ExpireAt({kEventStorage, key}, state.clock.Now() + kEventLife);
  }
  if (type.storage == kDefinitionStorage) Establish(state, key, object);
}

}  // namespace nos::sim
