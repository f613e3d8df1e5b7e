#include "scheduling/plugins/dynamic_resources/assumed_claims.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "codec/api_request.h"
#include "dra/result.h"
#include "scheduling/plugins/dynamic_resources/wanted_claims.h"

namespace nos::scheduling {
namespace {

using dra::ResourceClaim;

const codec::Resource kClaims{"resource.k8s.io", "v1", "resourceclaims", "ResourceClaim", true};
const codec::Resource kPods{"", "v1", "pods", "Pod", true};

std::string PathOf(const ResourceClaim& claim, std::string_view subresource = "") {
  return codec::PathOf(kClaims, claim.ns, claim.name, subresource);
}

// A strategic merge patch adds to lists of finalizers and users. The uid protects a successor of
// the same name; the one of a claim that was just created is not known.
codec::ApiRequest Patch(const ResourceClaim& claim, std::string path, JsonObject metadata,
                        JsonObject rest = {}) {
  if (!claim.resource_version.empty()) metadata["uid"] = claim.uid;
  rest["metadata"] = std::move(metadata);
  codec::ApiRequest request;
  request.method = "PATCH";
  request.path = std::move(path);
  request.content_type = "application/strategic-merge-patch+json";
  request.body = std::move(rest);
  return request;
}

bool IsProtected(const ResourceClaim& claim) {
  return std::ranges::find(claim.finalizers, dra::kClaimFinalizer) != claim.finalizers.end();
}

codec::ApiRequest ProtectWrite(const ResourceClaim& claim) {
  return Patch(claim, PathOf(claim),
               {{"finalizers", JsonArray{std::string(dra::kClaimFinalizer)}}});
}

bool HasConditions(const dra::Allocation& allocation) {
  return std::ranges::any_of(allocation.devices, [](const dra::AllocatedDevice& device) {
    return !device.binding_conditions.empty();
  });
}

bool IsTrue(const ResourceClaim& claim, const dra::AllocatedDevice& device,
            const std::string& type) {
  return std::ranges::any_of(claim.devices, [&](const dra::DeviceStatus& status) {
    return status.driver == device.driver && status.pool == device.pool &&
           status.device == device.device && status.share_id == device.share_id &&
           std::ranges::any_of(status.conditions, [&](const auto& condition) {
             return condition.type == type && condition.status == "True";
           });
  });
}

Progress Failed(std::string message) {
  return {Progress::Kind::kFailed, codes::kDevicesFailed, std::move(message)};
}

// Binding conditions of one claim.
Progress CheckConditions(const ResourceClaim& claim, const dra::Allocation& allocation) {
  if (auto failure = FailureOf(claim, allocation)) return Failed(*std::move(failure));
  auto missing = MissingOf(claim, allocation);
  if (!missing) return {};
  return {Progress::Kind::kWaits, codes::kWaitsForDevices, *std::move(missing)};
}

// The driver's time begins when the allocation is stored.
Time BeginOf(const ResourceClaim& claim, Time now) {
  if (!claim.allocation) return now;
  return std::min(claim.allocation->time.value_or(now), now);
}

const std::string* FindThatIs(const ResourceClaim& claim, const dra::AllocatedDevice& device,
                              const std::vector<std::string>& types, bool is) {
  const auto found = std::ranges::find_if(
      types, [&](const std::string& type) { return IsTrue(claim, device, type) == is; });
  return found == types.end() ? nullptr : &*found;
}

// The conditions of the device that end its preparation: by failing it, or by being true.
const std::vector<std::string>& TypesOf(const dra::AllocatedDevice& device, bool failure) {
  return failure ? device.binding_failure_conditions : device.binding_conditions;
}

// Describes the first failure condition that is true, or the first binding condition that is not.
std::optional<std::string> ConditionThatIs(bool failure, const ResourceClaim& claim,
                                           const dra::Allocation& allocation, const char* state) {
  for (const dra::AllocatedDevice& device : allocation.devices) {
    const std::string* type = FindThatIs(claim, device, TypesOf(device, failure), failure);
    if (type == nullptr) continue;
    return fmt::format("device \"{}\" of resourceclaim \"{}\": condition {} {}",
                       device.device.str(), claim.Key(), *type, state);
  }
  return std::nullopt;
}

codec::ApiRequest CreateWrite(const ResourceClaim& claim, const cluster::Pod& pod) {
  codec::ApiRequest request;
  request.method = "POST";
  request.path = codec::PathOf(kClaims, claim.ns);
  request.content_type = "application/json";
  request.body = dra::WriteExtendedClaim(claim, pod);
  return request;
}

// Names the pod's claim for extended resources, for the kubelet.
codec::ApiRequest PodWrite(const AssumedClaims::Change& change, const cluster::Pod& pod) {
  JsonArray mappings;
  for (const dra::ExtendedClaim::Mapping& mapping : change.mappings) {
    mappings.push_back(JsonObject{{"containerName", mapping.container},
                                  {"resourceName", mapping.resource},
                                  {"requestName", mapping.request}});
  }
  JsonObject status{{"resourceClaimName", change.claim->name},
                    {"requestMappings", std::move(mappings)}};
  codec::ApiRequest request;
  request.method = "PATCH";
  request.path = codec::PathOf(kPods, pod.meta.ns, pod.meta.name, "status");
  request.content_type = "application/strategic-merge-patch+json";
  request.body =
      JsonObject{{"metadata", JsonObject{{"uid", pod.meta.uid}}},
                 {"status", JsonObject{{"extendedResourceClaimStatus", std::move(status)}}}};
  return request;
}

std::vector<codec::ApiRequest> ProtectWrites(const AssumedClaims& assumed,
                                             const cluster::Pod& pod) {
  std::vector<codec::ApiRequest> writes;
  for (const AssumedClaims::Change& change : assumed.changes) {
    if (change.creates()) {
      writes.push_back(CreateWrite(*change.claim, pod));
    } else if (change.allocates && !IsProtected(*change.claim)) {
      writes.push_back(ProtectWrite(*change.claim));
    }
  }
  return writes;
}

// The newest version of the claim that is known. An allocation that another client stored since
// then has a newer one, so the API server refuses the write.
const std::string& VersionOf(const ResourceClaim& claim, const WrittenVersions* versions) {
  if (versions == nullptr) return claim.resource_version;
  const auto written = versions->by_path.find(PathOf(claim));
  return written == versions->by_path.end() ? claim.resource_version : written->second;
}

// A claim of which the pod is a user already is written too. The write changes nothing, but the API
// server refuses it if the claim has changed since it was read: devices that PostFilter gave back
// may still be in the snapshot.
std::vector<codec::ApiRequest> StatusWrites(const AssumedClaims& assumed, const cluster::Pod& pod,
                                            const cluster::ClusterContext& context,
                                            const WrittenVersions* versions, Time now) {
  std::vector<codec::ApiRequest> writes;
  for (const AssumedClaims::Change& change : assumed.changes) {
    if (change.follows) continue;
    const std::string& version = VersionOf(*change.claim, versions);
    const dra::ClaimConsumer user = dra::ConsumerFor(*change.claim, pod, context);
    if (change.creates()) writes.push_back(PodWrite(change, pod));
    if (change.allocates) {
      dra::Allocation allocation = change.allocation;
      if (HasConditions(allocation)) allocation.time = now;
      writes.push_back(StatusWrite(*change.claim, version, &allocation, user));
    } else {
      writes.push_back(StatusWrite(*change.claim, version, nullptr, user));
    }
  }
  return writes;
}

// Claims that another pod of the gang allocates, or that it uses already. The writes of several
// such pods must not exclude each other, so they name no version. The API server refuses users of a
// claim that is not allocated; another allocation shows when the claim is seen with its new user.
Progress FollowGang(AssumedClaims& assumed, const cluster::Pod& pod,
                    const cluster::ClusterContext& context) {
  Progress progress;
  const auto wait = [&progress](std::string message) {
    progress.kind = Progress::Kind::kWaits;
    progress.code = codes::kWaitsForDevices;
    progress.message = std::move(message);
  };
  for (AssumedClaims::Change& change : assumed.changes) {
    if (!change.follows) continue;
    const std::string key = change.claim->Key();
    const dra::ResourceClaim* claim = context.device_claims.Find(key);
    if (claim == nullptr || claim->uid != change.claim->uid) {
      return Failed(fmt::format("resourceclaim \"{}\" is gone", key));
    }
    if (!claim->allocation) {
      const auto* leader = context.devices == nullptr ? nullptr : context.devices->FindAssumed(key);
      if (leader == nullptr || leader->doubtful) {
        return Failed(fmt::format("resourceclaim \"{}\" was not allocated", key));
      }
      wait(
          fmt::format("resourceclaim \"{}\" is being allocated for another pod of its group", key));
      continue;
    }
    if (claim->allocation->devices != change.allocation.devices) {
      return Failed(fmt::format("resourceclaim \"{}\" was allocated with other devices", key));
    }
    if (dra::IsReservedFor(*claim, pod)) {
      change.follows = false;
      continue;
    }
    wait(fmt::format("resourceclaim \"{}\" does not show its user yet", key));
    if (std::exchange(change.joined, true)) continue;
    progress.writes.push_back(
        StatusWrite(*claim, "", nullptr, dra::ConsumerFor(*claim, pod, context)));
  }
  return progress;
}

}  // namespace

std::string StatusPathOf(const ResourceClaim& claim) { return PathOf(claim, "status"); }

codec::ApiRequest StatusWrite(const ResourceClaim& claim, const std::string& version,
                              const dra::Allocation* allocation, const dra::ClaimConsumer& user) {
  JsonObject entry{{"resource", user.resource}, {"name", user.name}, {"uid", user.uid}};
  if (!user.api_group.empty()) entry["apiGroup"] = user.api_group;
  JsonObject status{{"reservedFor", JsonArray{std::move(entry)}}};
  if (allocation != nullptr) status["allocation"] = dra::WriteAllocation(*allocation);
  JsonObject metadata;
  if (!version.empty()) metadata["resourceVersion"] = version;
  return Patch(claim, PathOf(claim, "status"), std::move(metadata),
               {{"status", std::move(status)}});
}

Progress CheckClaims(AssumedClaims& assumed, const cluster::Pod& pod,
                     const cluster::ClusterContext& context, const WrittenVersions* versions,
                     Time now, Duration patience) {
  Progress writes{Progress::Kind::kWaits, codes::kWaitsForDevices,
                  "resourceclaims are being written"};
  if (assumed.stage == AssumedClaims::Stage::kNew) {
    assumed.stage = AssumedClaims::Stage::kProtected;
    writes.writes = ProtectWrites(assumed, pod);
    if (!writes.writes.empty()) return writes;
  }
  if (assumed.stage == AssumedClaims::Stage::kProtected) {
    assumed.stage = AssumedClaims::Stage::kWritten;
    writes.writes = StatusWrites(assumed, pod, context, versions, now);
    if (!writes.writes.empty()) return writes;
  }
  Progress waits = FollowGang(assumed, pod, context);
  if (waits.kind != Progress::Kind::kReady) return waits;
  Time begin = now;
  for (const AssumedClaims::Change& change : assumed.changes) {
    if (!HasConditions(change.allocation)) continue;
    const ResourceClaim* claim = context.device_claims.Find(change.claim->Key());
    if (claim == nullptr && change.creates()) {
      waits = {Progress::Kind::kWaits, codes::kWaitsForDevices,
               fmt::format("resourceclaim \"{}\" was created", change.claim->Key())};
      continue;
    }
    if (claim == nullptr || (claim->uid != change.claim->uid && !change.creates())) {
      return Failed(fmt::format("resourceclaim \"{}\" is gone", change.claim->Key()));
    }
    Progress progress = CheckConditions(*claim, change.allocation);
    if (progress.kind == Progress::Kind::kFailed) return progress;
    if (progress.kind != Progress::Kind::kWaits) continue;
    waits = std::move(progress);
    begin = std::min(begin, BeginOf(*claim, now));
  }
  if (waits.kind == Progress::Kind::kReady) return waits;
  if (!assumed.until) assumed.until = begin + patience;
  if (now >= *assumed.until) {
    return {Progress::Kind::kFailed, codes::kDeviceBindingTimeout,
            fmt::format("{}, after {} s", waits.message,
                        std::chrono::duration_cast<std::chrono::seconds>(patience).count())};
  }
  waits.until = assumed.until;
  return waits;
}

std::vector<codec::ApiRequest> DeleteWrites(const ResourceClaim& claim) {
  codec::ApiRequest write;
  write.path = PathOf(claim);
  JsonObject known{{"uid", claim.uid}, {"resourceVersion", claim.resource_version}};
  if (IsProtected(claim)) {
    JsonArray others;
    for (const std::string& finalizer : claim.finalizers) {
      if (finalizer != dra::kClaimFinalizer) others.emplace_back(finalizer);
    }
    known["finalizers"] = std::move(others);
    write.method = "PATCH";
    write.content_type = "application/merge-patch+json";
    write.body = JsonObject{{"metadata", std::move(known)}};
  } else {
    write.method = "DELETE";
    write.content_type = "application/json";
    write.body = JsonObject{
        {"apiVersion", "v1"}, {"kind", "DeleteOptions"}, {"preconditions", std::move(known)}};
  }
  return {std::move(write)};
}

std::optional<std::string> FailureOf(const ResourceClaim& claim,
                                     const dra::Allocation& allocation) {
  return ConditionThatIs(true, claim, allocation, "is true");
}

std::optional<std::string> MissingOf(const ResourceClaim& claim,
                                     const dra::Allocation& allocation) {
  return ConditionThatIs(false, claim, allocation, "is not true yet");
}

std::vector<dra::DeviceId> UnpreparedOf(const ResourceClaim& claim,
                                        const dra::Allocation& allocation, bool missing) {
  std::vector<dra::DeviceId> devices;
  for (const dra::AllocatedDevice& device : allocation.devices) {
    if (FindThatIs(claim, device, TypesOf(device, !missing), !missing) != nullptr) {
      devices.push_back(dra::DeviceId::Of(device));
    }
  }
  return devices;
}

codec::ApiRequest ReleaseWrite(const ResourceClaim& claim, const cluster::Pod& pod) {
  JsonObject user{{"$patch", "delete"}, {"uid", pod.meta.uid}};
  JsonObject status{{"reservedFor", JsonArray{std::move(user)}}};
  return Patch(claim, PathOf(claim, "status"), {}, {{"status", std::move(status)}});
}

codec::ApiRequest ClearWrite(const ResourceClaim& claim) {
  codec::ApiRequest request;
  request.method = "PATCH";
  request.path = PathOf(claim, "status");
  request.content_type = "application/merge-patch+json";
  request.body = JsonObject{
      {"metadata", JsonObject{{"uid", claim.uid}, {"resourceVersion", claim.resource_version}}},
      {"status",
       JsonObject{{"allocation", nullptr}, {"reservedFor", nullptr}, {"devices", nullptr}}}};
  return request;
}

}  // namespace nos::scheduling
