#include "agent/claims/allocated_claim.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "dra/gpu_slices.h"

namespace nos::agent {

const kube::Resource kResourceClaims{"resource.k8s.io", "v1", "resourceclaims", "ResourceClaim",
                                     true};

namespace {

constexpr size_t kMaxMessage = 1000;  // bytes
// kube-controller-manager sets this annotation on claims that it makes from templates.
constexpr std::string_view kPodClaimName = "resource.kubernetes.io/pod-claim-name";

bool IsOurs(const std::string& pool, const dra::Name& driver, const dra::Name& in_pool) {
  return driver.str() == dra::kNosDriver && in_pool.str() == pool;
}

// True if a condition already says how the creation went.
bool IsReported(const dra::ResourceClaim& claim, const dra::AllocatedDevice& device) {
  return std::ranges::any_of(claim.devices, [&](const dra::DeviceStatus& status) {
    const bool same = status.driver == device.driver && status.pool == device.pool &&
                      status.device == device.device && status.share_id == device.share_id;
    return same && std::ranges::any_of(status.conditions, [](const auto& condition) {
             return condition.status == "True" &&
                    (condition.type == dra::kCreated || condition.type == dra::kCreationFailed);
           });
  });
}

bool SameDevices(const std::vector<ClaimedDevice>& a, const std::vector<ClaimedDevice>& b) {
  return std::ranges::equal(a, b, &ClaimedDevice::SameAllocation);
}

Json Condition(const Status& created, Time now) {
  return JsonObject{
      {"type", created.ok() ? dra::kCreated : dra::kCreationFailed},
      {"status", "True"},
      {"reason", created.ok() ? "DeviceReady" : "DeviceNotCreated"},
      {"message", created.ok() ? "The device exists." : Shortened(created.message(), kMaxMessage)},
      {"lastTransitionTime", FormatTime(now)}};
}

bool IsStatusOf(const Json& status, const std::string& pool, const ClaimedDevice& device) {
  return FindString(status, "driver") == dra::kNosDriver && FindString(status, "pool") == pool &&
         FindString(status, "device") == device.device &&
         FindString(status, "shareID") == device.share_id;
}

int64_t MemoryMibOf(const dra::AllocatedDevice& device) {
  static const dra::Name kMemory("memory");
  const auto memory =
      std::ranges::find(device.consumed_capacity, kMemory, &dra::Amounts::value_type::first);
  if (memory == device.consumed_capacity.end()) return 0;
  return std::max<int64_t>(memory->second.Value(), 0) >> 20;
}

}  // namespace

AllocatedClaim AllocationOn(const std::string& pool, const dra::ResourceClaim& claim) {
  AllocatedClaim ours{claim.ns, claim.name, claim.uid, claim.resource_version, {}, false};
  if (!claim.allocation) return ours;
  const auto made_for = claim.annotations.find(kPodClaimName);
  if (made_for != claim.annotations.end()) ours.pod_claim = made_for->second;
  for (const dra::AllocatedDevice& device : claim.allocation->devices) {
    if (!IsOurs(pool, device.driver, device.pool)) continue;
    const size_t slash = device.request.find('/');
    ClaimedDevice& claimed = ours.devices.emplace_back(
        ClaimedDevice{device.request.substr(0, slash), device.device.str(), device.admin()});
    if (slash != device.request.npos) claimed.alternative = device.request.substr(slash + 1);
    claimed.share_id = device.share_id;
    if (!device.share_id.empty()) claimed.memory_mib = MemoryMibOf(device);
    const bool awaited = std::ranges::count(device.binding_conditions, dra::kCreated) > 0;
    ours.waits = ours.waits || (awaited && !IsReported(claim, device));
  }
  return ours;
}

Status ReadAllocatedClaim(const std::string& pool, JsonSource json, AllocatedClaim& to) {
  dra::ResourceClaim claim;
  Status read = dra::ReadResourceClaim(json, claim);
  to = AllocationOn(pool, claim);
  return read;
}

// Patches one field: the API server compares the bytes of opaque parameters in the allocation, and
// a number that was read and written again may have others (1.5, 1.5E0). If they were stored with
// spaces or with <, > or &, the API server writes others itself for a patch, and refuses that.
Result<bool> WriteCreated(kube::Client& client, const std::string& pool,
                          const AllocatedClaim& claim, const Status& created, Time now) {
  auto read = client.Get(kResourceClaims, claim.ns, claim.name);
  if (!read.ok()) {
    if (read.status().code() == Code::kNotFound) return false;
    return read.status();
  }
  const Json object = std::move(read).value();
  AllocatedClaim stored;
  NOS_RETURN_IF_ERROR(ReadAllocatedClaim(pool, JsonSource(object), stored));
  if (stored.uid != claim.uid || !SameDevices(stored.devices, claim.devices)) return false;
  JsonArray devices;
  if (const Json* known = Find(object, "status", "devices"); known && known->is_array()) {
    for (const Json& one : known->get_array()) {
      const bool ours = std::ranges::any_of(claim.devices, [&](const ClaimedDevice& device) {
        return IsStatusOf(one, pool, device);
      });
      if (!ours) devices.push_back(one);
    }
  }
  for (const ClaimedDevice& device : claim.devices) {
    JsonObject status{{"driver", dra::kNosDriver},
                      {"pool", pool},
                      {"device", device.device},
                      {"conditions", JsonArray{Condition(created, now)}}};
    if (!device.share_id.empty()) status["shareID"] = device.share_id;
    devices.push_back(std::move(status));
  }
  const Json patch = JsonObject{
      {"metadata", JsonObject{{"uid", stored.uid}, {"resourceVersion", stored.resource_version}}},
      {"status", JsonObject{{"devices", std::move(devices)}}}};
  NOS_RETURN_IF_ERROR(
      client.Patch(kResourceClaims, claim.ns, claim.name, kube::PatchType::kMerge, patch, "status")
          .status());
  return true;
}

}  // namespace nos::agent
