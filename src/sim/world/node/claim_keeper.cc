#include "sim/world/node/claim_keeper.h"

#include <fmt/format.h>

#include <algorithm>

namespace nos::sim {

const kube::Resource kResourceClaims{"resource.k8s.io", "v1", "resourceclaims", "ResourceClaim",
                                     true};
const kube::Resource kClaimTemplates{"resource.k8s.io", "v1", "resourceclaimtemplates",
                                     "ResourceClaimTemplate", true};

namespace {

const JsonArray& ListOf(const Json* list) {
  static const JsonArray kNone;
  return list != nullptr && list->is_array() ? list->get_array() : kNone;
}

void ReadNames(const Json& metadata, cluster::ObjectMeta& to) {
  to.ns = FindString(metadata, "namespace");
  to.name = FindString(metadata, "name");
  to.uid = FindString(metadata, "uid");
  to.resource_version = FindString(metadata, "resourceVersion");
  const auto deleted = ParseTime(FindString(metadata, "deletionTimestamp"));
  if (deleted.ok()) to.deleted = *deleted;
}

struct Owner {
  std::string name, uid;
};

// The pod for which the claim was made.
std::optional<Owner> OwnerOf(const Json& claim) {
  for (const Json& owner : ListOf(Find(claim, "metadata", "ownerReferences"))) {
    const Json* controller = Find(owner, "controller");
    if (FindString(owner, "kind") != "Pod" || controller == nullptr || *controller != true)
      continue;
    return Owner{std::string(FindString(owner, "name")), std::string(FindString(owner, "uid"))};
  }
  return std::nullopt;
}

bool IsAllocated(const Json& claim) {
  const Json* allocation = Find(claim, "status", "allocation");
  return allocation != nullptr && !allocation->is_null();
}

// generateName of the real controller: both names are shortened alike if they are too long.
std::string NamePrefix(const std::string& pod, const std::string& reference) {
  constexpr size_t kMax = 57;  // leaves six characters for "-" and the suffix
  std::string prefix = pod + "-" + reference + "-";
  const size_t size = prefix.size();
  if (size <= kMax) return prefix;
  return pod.substr(0, pod.size() * kMax / size) + "-" +
         reference.substr(0, reference.size() * kMax / size);
}

}  // namespace

Status ClaimKeeper::ReadUser(JsonSource json, User& to) {
  Json references, statuses, extended;
  const auto take = [](Cursor& value, Json& into) {
    if (auto tree = TreeOf(value); tree.ok()) into = std::move(*tree);
  };
  NOS_RETURN_IF_ERROR(ReadJson(json, [&](Cursor& object) {
    object.Members([&](std::string_view part, Cursor& value) {
      if (value.kind() != Cursor::Kind::kObject) return;
      if (part == "metadata") {
        value.Members([&](std::string_view key, Cursor& field) {
          if (key == "name") to.meta.name = StringOf(field);
          if (key == "namespace") to.meta.ns = StringOf(field);
          if (key == "uid") to.meta.uid = StringOf(field);
          if (key == "resourceVersion") to.meta.resource_version = StringOf(field);
          if (key != "deletionTimestamp") return;
          if (const auto time = ParseTime(StringOf(field)); time.ok()) to.meta.deleted = *time;
        });
      } else if (part == "spec") {
        value.Members([&](std::string_view key, Cursor& field) {
          if (key == "nodeName") to.node = StringOf(field);
          if (key == "resourceClaims") take(field, references);
        });
      } else if (part == "status") {
        value.Members([&](std::string_view key, Cursor& field) {
          if (key == "resourceClaimStatuses") take(field, statuses);
          if (key == "extendedResourceClaimStatus") take(field, extended);
          if (key != "phase") return;
          const std::string phase = StringOf(field);
          to.finished = phase == "Succeeded" || phase == "Failed";
        });
      }
    });
  }));
  to.extended = FindString(extended, "resourceClaimName");
  for (const Json& reference : ListOf(&references)) {
    Reference& one = to.references.emplace_back();
    one.name = FindString(reference, "name");
    one.claim = FindString(reference, "resourceClaimName");
    one.template_name = FindString(reference, "resourceClaimTemplateName");
    for (const Json& status : ListOf(&statuses)) {
      if (one.template_name.empty() || FindString(status, "name") != one.name) continue;
      one.claim = FindString(status, "resourceClaimName");
      one.unneeded = one.claim.empty();
    }
  }
  return Status::Ok();
}

Status ClaimKeeper::ReadClaim(JsonSource json, Claim& to) {
  NOS_ASSIGN(to.object, TreeOf(json));
  const Json* metadata = Find(to.object, "metadata");
  if (metadata != nullptr) ReadNames(*metadata, to.meta);
  return Status::Ok();
}

ClaimKeeper::ClaimKeeper(kube::Transport& api, const Clock& clock, EventLog& log)
    : client_(api),
      clock_(clock),
      log_(log),
      pods_(kube::kPods, ReadUser),
      claims_(kResourceClaims, ReadClaim) {
  pods_.AddHandler([this](const std::string& key, const UserPtr& before, const UserPtr& after) {
    OnPod(key, before, after);
  });
  claims_.AddHandler([this](const std::string& key, const ClaimPtr& before, const ClaimPtr& after) {
    OnClaim(key, before, after);
  });
}

void ClaimKeeper::Watch() {
  pods_.Pump(client_, clock_.Now());
  claims_.Pump(client_, clock_.Now());
}

void ClaimKeeper::OnPod(const std::string& key, const UserPtr& before, const UserPtr& after) {
  for (const UserPtr& pod : {before, after}) {
    if (pod == nullptr) continue;
    if (!pod->extended.empty()) {
      claims_due_[kube::KeyOf(pod->meta.ns, pod->extended)] = clock_.Now();
    }
    if (pod->references.empty()) continue;
    any_ = true;
    if (pod == after) pods_due_[key] = clock_.Now();
    for (const Reference& reference : pod->references) {
      if (!reference.claim.empty()) {
        claims_due_[kube::KeyOf(pod->meta.ns, reference.claim)] = clock_.Now();
      }
    }
  }
}

void ClaimKeeper::OnClaim(const std::string& key, const ClaimPtr& before, const ClaimPtr& after) {
  any_ = true;
  if (after != nullptr) claims_due_[key] = clock_.Now();
  const ClaimPtr& claim = after != nullptr ? after : before;
  if (const auto owner = OwnerOf(claim->object)) {
    pods_due_[kube::KeyOf(claim->meta.ns, owner->name)] = clock_.Now();
  }
  for (const Json& consumer : ListOf(Find(claim->object, "status", "reservedFor"))) {
    pods_due_[kube::KeyOf(claim->meta.ns, FindString(consumer, "name"))] = clock_.Now();
  }
  // A claim that is allocated by hand may have pods that were bound by hand.
  if (after == nullptr || !IsAllocated(after->object)) return;
  const auto pods = pods_.Snapshot();
  for (const UserPtr& pod : *pods) {
    if (pod->meta.ns != claim->meta.ns) continue;
    for (const Reference& reference : pod->references) {
      if (reference.claim != claim->meta.name) continue;
      pods_due_[kube::KeyOf(pod->meta.ns, pod->meta.name)] = clock_.Now();
    }
  }
}

bool ClaimKeeper::Step() {
  Watch();
  return Visit(pods_due_, &ClaimKeeper::SyncPod) || Visit(claims_due_, &ClaimKeeper::SyncClaim);
}

// Visits the first due key.
bool ClaimKeeper::Visit(Due& due, Status (ClaimKeeper::*sync)(const std::string& key)) {
  const auto first =
      std::ranges::find_if(due, [this](const auto& entry) { return entry.second <= clock_.Now(); });
  if (first == due.end()) return false;
  const std::string key = first->first;
  due.erase(first);
  const Status synced = (this->*sync)(key);
  if (synced.ok()) return true;
  log_.Note(name_, fmt::format("cannot settle {}: {}", key, synced.ToString()));
  due[key] = clock_.Now() + kRetry;
  return true;
}

std::optional<Time> ClaimKeeper::NextWake() const {
  std::optional<Time> wake;
  for (const Due* due : {&pods_due_, &claims_due_}) {
    for (const auto& [key, when] : *due) wake = std::min(wake.value_or(when), when);
  }
  return wake;
}

Status ClaimKeeper::SyncPod(const std::string& key) {
  const UserPtr pod = pods_.Get(key);
  if (pod == nullptr || pod->meta.deleted || pod->Done()) return Status::Ok();
  std::map<std::string, std::string> made;
  for (const Reference& reference : pod->references) {
    if (reference.template_name.empty() || reference.unneeded) continue;
    ClaimPtr claim = claims_.Get(kube::KeyOf(pod->meta.ns, reference.claim));
    const auto owner = claim == nullptr ? std::nullopt : OwnerOf(claim->object);
    if (owner && owner->uid == pod->meta.uid) continue;
    // Made before, but its name did not reach the status.
    claim = FindMade(*pod, reference);
    if (claim != nullptr) {
      made[reference.name] = claim->meta.name;
    } else {
      NOS_ASSIGN(made[reference.name], Make(*pod, reference));
    }
  }
  if (!made.empty()) return Record(*pod, made);
  if (pod->node.empty()) return Status::Ok();  // its scheduler reserves
  for (const Reference& reference : pod->references) {
    if (!reference.claim.empty()) NOS_RETURN_IF_ERROR(Reserve(*pod, reference.claim));
  }
  return Status::Ok();
}

ClaimKeeper::ClaimPtr ClaimKeeper::FindMade(const User& pod, const Reference& reference) const {
  const auto claims = claims_.Snapshot();
  for (const ClaimPtr& claim : *claims) {
    const auto owner = OwnerOf(claim->object);
    if (!owner || owner->uid != pod.meta.uid || claim->meta.deleted) continue;
    if (FindString(claim->object, "metadata", "annotations", kPodClaimName) == reference.name) {
      return claim;
    }
  }
  return nullptr;
}

Result<std::string> ClaimKeeper::Make(const User& pod, const Reference& reference) {
  NOS_ASSIGN(const Json from, client_.Get(kClaimTemplates, pod.meta.ns, reference.template_name));
  JsonObject annotations;
  if (const Json* own = Find(from, "spec", "metadata", "annotations"); own && own->is_object()) {
    annotations = own->get_object();
  }
  annotations[kPodClaimName] = reference.name;
  JsonObject metadata = {{"generateName", NamePrefix(pod.meta.name, reference.name)},
                         {"namespace", pod.meta.ns},
                         {"annotations", std::move(annotations)},
                         {"ownerReferences", JsonArray{JsonObject{{"apiVersion", "v1"},
                                                                  {"kind", "Pod"},
                                                                  {"name", pod.meta.name},
                                                                  {"uid", pod.meta.uid},
                                                                  {"controller", true},
                                                                  {"blockOwnerDeletion", true}}}}};
  if (const Json* labels = Find(from, "spec", "metadata", "labels")) metadata["labels"] = *labels;
  const Json* spec = Find(from, "spec", "spec");
  const Json claim = JsonObject{{"apiVersion", "resource.k8s.io/v1"},
                                {"kind", "ResourceClaim"},
                                {"metadata", std::move(metadata)},
                                {"spec", spec == nullptr ? Json(JsonObject()) : *spec}};
  NOS_ASSIGN(const Json created, client_.Create(kResourceClaims, pod.meta.ns, claim));
  std::string name(FindString(created, "metadata", "name"));
  log_.Note(name_, fmt::format("makes claim {} for {}", name, pod.meta.name));
  return name;
}

Status ClaimKeeper::Record(const User& pod, const std::map<std::string, std::string>& made) {
  JsonArray statuses;
  for (const auto& [reference, claim] : made) {
    statuses.push_back(JsonObject{{"name", reference}, {"resourceClaimName", claim}});
  }
  const Json patch =
      JsonObject{{"metadata", JsonObject{{"uid", pod.meta.uid}}},
                 {"status", JsonObject{{"resourceClaimStatuses", std::move(statuses)}}}};
  const Status written = client_
                             .Patch(kube::kPods, pod.meta.ns, pod.meta.name,
                                    kube::PatchType::kStrategic, patch, "status")
                             .status();
  return written.code() == Code::kNotFound ? Status::Ok() : written;
}

Status ClaimKeeper::Reserve(const User& pod, const std::string& name) {
  const ClaimPtr claim = claims_.Get(kube::KeyOf(pod.meta.ns, name));
  if (claim == nullptr || !IsAllocated(claim->object) || claim->meta.deleted) return Status::Ok();
  JsonArray consumers = ListOf(Find(claim->object, "status", "reservedFor"));
  const bool known = std::ranges::any_of(
      consumers, [&](const Json& consumer) { return FindString(consumer, "uid") == pod.meta.uid; });
  if (known) return Status::Ok();
  consumers.push_back(
      JsonObject{{"resource", "pods"}, {"name", pod.meta.name}, {"uid", pod.meta.uid}});
  Json changed = claim->object;
  MakeObject(changed, "status")["reservedFor"] = std::move(consumers);
  log_.Note(name_, fmt::format("reserves claim {} for {}", name, pod.meta.name));
  return client_.Update(kResourceClaims, pod.meta.ns, changed, "status").status();
}

// True if the consumer is, or may still become, a user of the claim's devices.
bool ClaimKeeper::Uses(const std::string& ns, const Json& consumer) const {
  const bool pod =
      FindString(consumer, "resource") == "pods" && FindString(consumer, "apiGroup").empty();
  if (!pod) return true;
  const UserPtr user = pods_.Get(kube::KeyOf(ns, FindString(consumer, "name")));
  return user != nullptr && user->meta.uid == FindString(consumer, "uid") && !user->Done();
}

Status ClaimKeeper::SyncClaim(const std::string& key) {
  const ClaimPtr claim = claims_.Get(key);
  if (claim == nullptr) return Status::Ok();
  const JsonArray& consumers = ListOf(Find(claim->object, "status", "reservedFor"));
  JsonArray left;
  for (const Json& consumer : consumers) {
    if (Uses(claim->meta.ns, consumer)) left.push_back(consumer);
  }
  if (left.size() < consumers.size()) return Release(claim->object, std::move(left));
  if (!left.empty()) return Status::Ok();
  if (claim->meta.deleted) return Deallocate(claim->object);
  return DeleteMade(*claim);
}

// Writes the consumers that are left. Without any, the claim can be allocated anew.
Status ClaimKeeper::Release(Json claim, JsonArray left) {
  const std::string_view name = FindString(claim, "metadata", "name");
  log_.Note(name_,
            fmt::format("{} claim {}", left.empty() ? "frees" : "releases a pod from", name));
  JsonObject& status = MakeObject(claim, "status");
  if (left.empty()) {
    status.erase("reservedFor");
    return Deallocate(std::move(claim));
  }
  status["reservedFor"] = std::move(left);
  const std::string_view ns = FindString(claim, "metadata", "namespace");
  return client_.Update(kResourceClaims, ns, claim, "status").status();
}

// Clears the allocation, then the finalizer. A claim that has the finalizer but no allocation is
// left alone until it is deleted: a scheduler writes the finalizer first.
Status ClaimKeeper::Deallocate(Json claim) {
  const std::string ns(FindString(claim, "metadata", "namespace"));
  if (IsAllocated(claim)) {
    JsonObject& status = MakeObject(claim, "status");
    status.erase("allocation");
    status.erase("devices");
    NOS_ASSIGN(claim, client_.Update(kResourceClaims, ns, claim, "status"));
  }
  JsonArray finalizers = ListOf(Find(claim, "metadata", "finalizers"));
  const auto held = std::ranges::find(finalizers, Json(kClaimFinalizer));
  if (held == finalizers.end()) return Status::Ok();
  finalizers.erase(held);
  MakeObject(claim, "metadata")["finalizers"] = std::move(finalizers);
  return client_.Update(kResourceClaims, ns, claim).status();
}

Status ClaimKeeper::DeleteMade(const Claim& claim) {
  const auto owner = OwnerOf(claim.object);
  if (!owner || claim.meta.deleted) return Status::Ok();
  const UserPtr pod = pods_.Get(kube::KeyOf(claim.meta.ns, owner->name));
  // Without the pod, the garbage collector removes the claim.
  if (pod != nullptr && pod->meta.uid == owner->uid && !pod->Done()) return Status::Ok();
  log_.Note(name_, fmt::format("deletes claim {}", claim.meta.name));
  const Status deleted = client_.Delete(kResourceClaims, claim.meta.ns, claim.meta.name);
  return deleted.code() == Code::kNotFound ? Status::Ok() : deleted;
}

}  // namespace nos::sim
