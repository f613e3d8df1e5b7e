#include "scheduler_differential/claim_steps.h"

#include <algorithm>
#include <chrono>

#include "dra/device_index.h"
#include "kube/cache.h"

namespace nos::differential {
namespace {

bool IsReservedFor(const Json& claim, std::string_view uid) {
  const Json* users = Find(claim, "status", "reservedFor");
  return users != nullptr && std::ranges::any_of(users->get_array(), [&](const Json& user) {
           return FindString(user, "uid") == uid;
         });
}

bool HasItsClaims(const Plane& plane, const Json& pod) {
  const Json* entries = Find(pod, "spec", "resourceClaims");
  if (entries == nullptr) return true;
  const Json* made = Find(pod, "status", "resourceClaimStatuses");
  return std::ranges::all_of(entries->get_array(), [&](const Json& entry) {
    if (FindString(entry, "resourceClaimTemplateName").empty()) return true;
    return made != nullptr && std::ranges::any_of(made->get_array(), [&](const Json& status) {
             const std::string key = kube::KeyOf(FindString(pod, "metadata", "namespace"),
                                                 FindString(status, "resourceClaimName"));
             return FindString(status, "name") == FindString(entry, "name") &&
                    plane.DeviceClaim(key) != nullptr;
           });
  });
}

}  // namespace

Status AwaitClaims(Plane& plane, const std::string& key) {
  return plane.Await(
      [&] {
        const Json* pod = plane.Pod(key);
        return pod != nullptr && HasItsClaims(plane, *pod);
      },
      "claims to be made from a template");
}

Status AwaitReservations(Plane& plane, const std::string& key) {
  const auto reserved = [&] {
    const Json* stored = plane.Pod(key);
    if (stored == nullptr) return false;
    const auto pod = cluster::DecodePod(JsonSource(*stored));
    if (!pod.ok()) return false;
    return std::ranges::all_of(dra::ClaimKeysOf(*pod), [&](const std::string& name) {
      const Json* claim = plane.DeviceClaim(name);
      return claim != nullptr && IsReservedFor(*claim, pod->meta.uid);
    });
  };
  return plane.Await(reserved, "claims to be reserved for " + key);
}

namespace {

// The controller overlooks some claims of pods that leave. It looks at each claim that changes.
Status Touch(Plane& plane, Json claim, int times) {
  claim.get_object()["kind"] = "ResourceClaim";
  const std::string mark = std::to_string(times);
  const Status status =
      plane.Patch(claim, {{"metadata", {{"annotations", {{"example.com/touched", mark}}}}}});
  return status.code() == Code::kNotFound ? Status::Ok() : status;
}

}  // namespace

Status ReleaseClaims(Plane& plane, const Json& pod) {
  const std::string key =
      kube::KeyOf(FindString(pod, "metadata", "namespace"), FindString(pod, "metadata", "name"));
  const std::string uid(FindString(pod, "metadata", "uid"));
  NOS_RETURN_IF_ERROR(plane.Delete(pod));
  NOS_RETURN_IF_ERROR(plane.Await([&] { return plane.Pod(key) == nullptr; }, "a pod to go"));
  const std::map<std::string, Json> claims = plane.DeviceClaims();
  for (const auto& [name, claim] : claims) {
    const Json* owners = Find(claim, "metadata", "ownerReferences");
    if (owners == nullptr || FindString(owners->get_array()[0], "uid") != uid) continue;
    Json object = claim;
    object.get_object()["kind"] = "ResourceClaim";
    NOS_RETURN_IF_ERROR(plane.Delete(object));
  }
  const auto lingers = [&](const std::pair<const std::string, Json>& item) {
    return IsReservedFor(item.second, uid) ||
           Find(item.second, "metadata", "deletionTimestamp") != nullptr;
  };
  const auto released = [&] { return std::ranges::none_of(plane.DeviceClaims(), lingers); };
  for (int times = 1;; ++times) {
    const Status status =
        plane.Await(released, "the claims of a pod to be released", std::chrono::seconds(1));
    if (status.ok() || times == 10) return status;
    const std::map<std::string, Json> now = plane.DeviceClaims();
    for (const auto& item : now) {
      if (lingers(item)) NOS_RETURN_IF_ERROR(Touch(plane, item.second, times));
    }
  }
}

}  // namespace nos::differential
