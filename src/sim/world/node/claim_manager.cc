#include "sim/world/node/claim_manager.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/world/node/claim_keeper.h"

namespace nos::sim {
namespace {

const JsonArray& ListOf(const Json* list) {
  static const JsonArray kNone;
  return list != nullptr && list->is_array() ? list->get_array() : kNone;
}

bool HasUid(const Json* list, const std::string& uid) {
  return std::ranges::any_of(ListOf(list),
                             [&](const Json& entry) { return FindString(entry, "uid") == uid; });
}

}  // namespace

Result<Duration> ClaimManager::Prepare(const cluster::Pod& pod) {
  NOS_ASSIGN(const Json object, client_.Get(kube::kPods, pod.meta.ns, pod.meta.name));
  Duration longest{};
  for (const Json& reference : ListOf(Find(object, "spec", "resourceClaims"))) {
    std::string claim(FindString(reference, "resourceClaimName"));
    const bool made = claim.empty();
    bool known = !made;
    for (const Json& status : ListOf(Find(object, "status", "resourceClaimStatuses"))) {
      if (!made || FindString(status, "name") != FindString(reference, "name")) continue;
      claim = FindString(status, "resourceClaimName");
      known = true;
    }
    if (!known) return NotFound(fmt::format("no claim was made for {}", pod.meta.name));
    if (claim.empty()) continue;  // the pod needs none
    NOS_ASSIGN(const Duration ready, PrepareOne(pod, claim, made));
    longest = std::max(longest, ready);
  }
  const std::string_view extended =
      FindString(object, "status", "extendedResourceClaimStatus", "resourceClaimName");
  if (extended.empty()) return longest;
  NOS_ASSIGN(const Duration ready, PrepareOne(pod, std::string(extended), true));
  return std::max(longest, ready);
}

Result<Json> ClaimManager::ClaimFor(const cluster::Pod& pod, const std::string& name, bool made) {
  NOS_ASSIGN(Json claim, client_.Get(kResourceClaims, pod.meta.ns, name));
  if (made && !HasUid(Find(claim, "metadata", "ownerReferences"), pod.meta.uid)) {
    return NotFound(fmt::format("claim {} was not made for {}", name, pod.meta.name));
  }
  const Json* allocation = Find(claim, "status", "allocation");
  if (allocation == nullptr || allocation->is_null()) {
    return Status(Code::kUnavailable, fmt::format("claim {} is not allocated", name));
  }
  if (!HasUid(Find(claim, "status", "reservedFor"), pod.meta.uid)) {
    return Status(Code::kUnavailable,
                  fmt::format("claim {} is not reserved for {}", name, pod.meta.name));
  }
  return claim;
}

Result<Duration> ClaimManager::PrepareOne(const cluster::Pod& pod, const std::string& name,
                                          bool made) {
  NOS_ASSIGN(const Json claim, ClaimFor(pod, name, made));
  const std::string uid(FindString(claim, "metadata", "uid"));
  if (driver_ == nullptr) {
    return NotFound(fmt::format("no driver is registered for claim {}", name));
  }
  NOS_ASSIGN(const Duration ready, driver_->Prepare({pod.meta.ns, name, uid}));
  prepared_[uid].insert(pod.meta.uid);
  return ready;
}

Result<Duration> ClaimManager::Unprepare(const std::string& pod_uid) {
  Duration longest{};
  for (auto claim = prepared_.begin(); claim != prepared_.end();) {
    const bool last = claim->second.contains(pod_uid) && claim->second.size() == 1;
    if (last) {
      NOS_ASSIGN(const Duration free, driver_->Unprepare(claim->first));
      longest = std::max(longest, free);
      claim = prepared_.erase(claim);
    } else {
      claim->second.erase(pod_uid);
      ++claim;
    }
  }
  return longest;
}

std::vector<std::string> ClaimManager::DevicesOf(const std::string& pod_uid) const {
  std::vector<std::string> names;
  for (const auto& [claim, pods] : prepared_) {
    if (!pods.contains(pod_uid)) continue;
    const std::vector<std::string> devices = driver_->PreparedFor(claim);
    names.insert(names.end(), devices.begin(), devices.end());
  }
  return names;
}

bool ClaimManager::HasDevice(const std::string& pod_uid, std::string_view uuid) const {
  return std::ranges::any_of(prepared_, [&](const auto& claim) {
    return claim.second.contains(pod_uid) && driver_->HasPrepared(claim.first, uuid);
  });
}

}  // namespace nos::sim
