// Kinds of resource.k8s.io (k8s.io/kubernetes/pkg/apis/resource/validation). An allocation is
// checked only for its form: the server does not know whether a device exists or is free.
#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "sim/apiserver/schemas/validation.h"

namespace nos::sim {
namespace {

constexpr size_t kMaxDevices = 128, kMaxCostlyDevices = 64;
constexpr size_t kMaxCounterSets = 8, kMaxCounters = 32, kMaxConsumptions = 2;
constexpr size_t kMaxClaimEntries = 32, kMaxAlternatives = 8, kMaxConsumers = 256;

const JsonArray& ListOf(const Json* list) {
  static const JsonArray kNone;
  return list == nullptr || !list->is_array() ? kNone : list->get_array();
}

bool IsTrue(const Json* value) { return value != nullptr && *value == true; }

// Null counts as absent.
const Json* Present(const Json* value) {
  return value == nullptr || value->is_null() ? nullptr : value;
}

std::string At(std::string_view path, size_t i) { return fmt::format("{}[{}]", path, i); }

void LimitItems(const JsonArray& list, size_t most, const std::string& path, Causes& causes) {
  if (list.size() <= most) return;
  causes.Invalid(path, std::to_string(list.size()),
                 fmt::format("must have at most {} items", most));
}

void ValidateDriver(std::string_view driver, const std::string& path, Causes& causes) {
  if (driver.empty()) return causes.Required(path);
  if (driver.size() > 63 || !IsDnsSubdomain(driver)) {
    causes.Invalid(path, driver, "is not a DNS subdomain of at most 63 characters");
  }
}

// DNS subdomains, separated by slashes.
void ValidatePool(std::string_view pool, const std::string& path, Causes& causes) {
  if (pool.empty()) return causes.Required(path);
  const auto parts = Split(pool, '/');
  if (pool.size() > 253 || !std::all_of(parts.begin(), parts.end(), IsDnsSubdomain)) {
    causes.Invalid(path, pool, "must be DNS subdomains separated by slashes");
  }
}

void ValidateLabel(std::string_view name, const std::string& path, Causes& causes) {
  if (name.empty()) return causes.Required(path);
  if (!IsDnsLabel(name)) causes.Invalid(path, name, "is not a DNS label");
}

void RequireSame(const Json& object, const Json* old, std::string_view part, std::string_view field,
                 Causes& causes) {
  if (old == nullptr) return;
  const Json* now = Present(Find(object, part, field));
  const Json* before = Present(Find(*old, part, field));
  if ((now == nullptr) == (before == nullptr) && (now == nullptr || *now == *before)) return;
  causes.Invalid(fmt::format("{}.{}", part, field), now == nullptr ? "" : WriteJson(*now),
                 "field is immutable");
}

// --- ResourceSlice

void ValidateCounters(const Json& set, const std::string& path, Causes& causes) {
  const Json* counters = Present(Find(set, "counters"));
  if (counters == nullptr || counters->get_object().empty()) {
    return causes.Required(path + ".counters");
  }
  if (counters->get_object().size() > kMaxCounters) {
    causes.Invalid(path + ".counters", "", fmt::format("at most {} counters", kMaxCounters));
  }
  for (const auto& [name, counter] : counters->get_object()) {
    const std::string at = fmt::format("{}.counters[{}]", path, std::string_view(name));
    ValidateLabel({name.data(), name.size()}, at, causes);
    if (Present(Find(counter, "value")) == nullptr) causes.Required(at + ".value");
  }
}

void ValidateDeviceTaint(const Json& taint, const std::string& path, Causes& causes) {
  const std::string_view key = FindString(taint, "key");
  const std::string_view effect = FindString(taint, "effect");
  if (!IsQualifiedName(key)) causes.Invalid(path + ".key", key, "is not a qualified name");
  if (effect != "NoSchedule" && effect != "NoExecute" && effect != "None") {
    causes.Unsupported(path + ".effect", effect, "\"NoExecute\", \"NoSchedule\", \"None\"");
  }
}

// True if the device has parts that halve the number of devices of a slice.
bool IsCostly(const Json& device) {
  return !ListOf(Find(device, "taints")).empty() ||
         !ListOf(Find(device, "consumesCounters")).empty();
}

void ValidateDevice(const Json& device, const std::string& path, Causes& causes) {
  ValidateLabel(FindString(device, "name"), path + ".name", causes);
  const JsonArray& consumed = ListOf(Find(device, "consumesCounters"));
  LimitItems(consumed, kMaxConsumptions, path + ".consumesCounters", causes);
  for (size_t i = 0; i < consumed.size(); ++i) {
    const std::string at = At(path + ".consumesCounters", i);
    ValidateLabel(FindString(consumed[i], "counterSet"), at + ".counterSet", causes);
    ValidateCounters(consumed[i], at, causes);
  }
  const JsonArray& taints = ListOf(Find(device, "taints"));
  for (size_t i = 0; i < taints.size(); ++i) {
    ValidateDeviceTaint(taints[i], At(path + ".taints", i), causes);
  }
}

void ValidateNodesOfSlice(const Json& slice, Causes& causes) {
  int set = 0;
  if (!FindString(slice, "spec", "nodeName").empty()) ++set;
  if (Present(Find(slice, "spec", "nodeSelector")) != nullptr) ++set;
  for (const std::string_view field : {"allNodes", "perDeviceNodeSelection"}) {
    if (IsTrue(Find(slice, "spec", field))) ++set;
  }
  constexpr std::string_view kFields =
      "`nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection`";
  if (set == 0) causes.Required("spec", fmt::format("exactly one of {} is required", kFields));
  if (set > 1) causes.Invalid("spec", "", fmt::format("exactly one of {} is allowed", kFields));
}

void ValidateDevicesOfSlice(const JsonArray& devices, Causes& causes) {
  const bool costly = std::any_of(devices.begin(), devices.end(), IsCostly);
  LimitItems(devices, costly ? kMaxCostlyDevices : kMaxDevices, "spec.devices", causes);
  std::set<std::string_view> names;
  for (size_t i = 0; i < devices.size(); ++i) {
    const std::string at = At("spec.devices", i);
    ValidateDevice(devices[i], at, causes);
    const std::string_view name = FindString(devices[i], "name");
    if (!names.insert(name).second) causes.Duplicate(at + ".name", name);
  }
}

void ValidateSharedCounters(const JsonArray& sets, Causes& causes) {
  LimitItems(sets, kMaxCounterSets, "spec.sharedCounters", causes);
  std::set<std::string_view> names;
  for (size_t i = 0; i < sets.size(); ++i) {
    const std::string at = At("spec.sharedCounters", i);
    const std::string_view name = FindString(sets[i], "name");
    ValidateLabel(name, at + ".name", causes);
    ValidateCounters(sets[i], at, causes);
    if (!names.insert(name).second) causes.Duplicate(at + ".name", name);
  }
}

void ValidateSlice(const Json& slice, const Json* old, Causes& causes) {
  ValidateDriver(FindString(slice, "spec", "driver"), "spec.driver", causes);
  ValidatePool(FindString(slice, "spec", "pool", "name"), "spec.pool.name", causes);
  const Json* count = Find(slice, "spec", "pool", "resourceSliceCount");
  if (count == nullptr || !count->is_int64() || count->get_int64() < 1) {
    causes.Invalid("spec.pool.resourceSliceCount", "", "must be greater than zero");
  }
  ValidateNodesOfSlice(slice, causes);
  const JsonArray& devices = ListOf(Find(slice, "spec", "devices"));
  const JsonArray& counters = ListOf(Find(slice, "spec", "sharedCounters"));
  if (!devices.empty() && !counters.empty()) {
    causes.Invalid("spec", "", "only one of `devices`, `sharedCounters` is allowed");
  }
  ValidateDevicesOfSlice(devices, causes);
  ValidateSharedCounters(counters, causes);
  RequireSame(slice, old, "spec", "driver", causes);
  RequireSame(slice, old, "spec", "nodeName", causes);
  const std::string_view pool = FindString(slice, "spec", "pool", "name");
  if (old != nullptr && FindString(*old, "spec", "pool", "name") != pool) {
    causes.Invalid("spec.pool.name", pool, "field is immutable");
  }
}

// --- ResourceClaim

void ValidateSelectors(const Json& owner, const std::string& path, Causes& causes) {
  const JsonArray& selectors = ListOf(Find(owner, "selectors"));
  LimitItems(selectors, kMaxClaimEntries, path + ".selectors", causes);
  for (size_t i = 0; i < selectors.size(); ++i) {
    const std::string at = At(path + ".selectors", i);
    if (Present(Find(selectors[i], "cel")) == nullptr) {
      causes.Required(at + ".cel");
    } else if (FindString(selectors[i], "cel", "expression").empty()) {
      causes.Required(at + ".cel.expression");
    }
  }
}

// `exactly`, or an alternative of `firstAvailable`.
void ValidateExactRequest(const Json& request, const std::string& path, Causes& causes) {
  const std::string_view device_class = FindString(request, "deviceClassName");
  if (device_class.empty()) {
    causes.Required(path + ".deviceClassName");
  } else if (!IsDnsSubdomain(device_class)) {
    causes.Invalid(path + ".deviceClassName", device_class, "is not a DNS subdomain");
  }
  ValidateSelectors(request, path, causes);
  const std::string_view mode = FindString(request, "allocationMode");
  const Json* count = Present(Find(request, "count"));
  const int64_t n = count != nullptr && count->is_int64() ? count->get_int64() : 0;
  if (mode == "ExactCount") {
    if (n <= 0) causes.Invalid(path + ".count", std::to_string(n), "must be greater than zero");
  } else if (mode != "All") {
    causes.Unsupported(path + ".allocationMode", mode, "\"All\", \"ExactCount\"");
  } else if (n != 0) {
    causes.Invalid(path + ".count", std::to_string(n),
                   "must not be specified when allocationMode is 'All'");
  }
}

void ValidateRequest(const Json& request, const std::string& path, Causes& causes) {
  ValidateLabel(FindString(request, "name"), path + ".name", causes);
  const Json* exactly = Present(Find(request, "exactly"));
  const JsonArray& alternatives = ListOf(Find(request, "firstAvailable"));
  if ((exactly == nullptr) == alternatives.empty()) {
    return causes.Invalid(path, "", "exactly one of `exactly`, `firstAvailable` is required");
  }
  if (exactly != nullptr) ValidateExactRequest(*exactly, path + ".exactly", causes);
  LimitItems(alternatives, kMaxAlternatives, path + ".firstAvailable", causes);
  for (size_t i = 0; i < alternatives.size(); ++i) {
    const std::string at = At(path + ".firstAvailable", i);
    ValidateLabel(FindString(alternatives[i], "name"), at + ".name", causes);
    ValidateExactRequest(alternatives[i], at, causes);
  }
}

// The names that constraints and results may use: "request", "request/alternative".
std::set<std::string> RequestNames(const Json* spec) {
  std::set<std::string> names;
  if (spec == nullptr) return names;
  for (const Json& request : ListOf(Find(*spec, "devices", "requests"))) {
    const std::string name(FindString(request, "name"));
    names.insert(name);
    for (const Json& alternative : ListOf(Find(request, "firstAvailable"))) {
      names.insert(fmt::format("{}/{}", name, FindString(alternative, "name")));
    }
  }
  return names;
}

void ValidateConstraint(const Json& constraint, const std::set<std::string>& names,
                        const std::string& path, Causes& causes) {
  for (const Json& request : ListOf(Find(constraint, "requests"))) {
    if (request.is_string() && names.contains(std::string(request.get_string()))) continue;
    causes.Invalid(path + ".requests", WriteJson(request), "must be the name of a request");
  }
  const bool match = !FindString(constraint, "matchAttribute").empty();
  const bool distinct = !FindString(constraint, "distinctAttribute").empty();
  if (match == distinct) {
    causes.Invalid(path, "", "exactly one of `matchAttribute`, `distinctAttribute` is required");
  }
}

void ValidateClaimSpec(const Json* spec, const std::string& path, Causes& causes) {
  if (spec == nullptr) return;
  const JsonArray& requests = ListOf(Find(*spec, "devices", "requests"));
  const JsonArray& constraints = ListOf(Find(*spec, "devices", "constraints"));
  LimitItems(requests, kMaxClaimEntries, path + ".devices.requests", causes);
  LimitItems(constraints, kMaxClaimEntries, path + ".devices.constraints", causes);
  std::set<std::string_view> seen;
  for (size_t i = 0; i < requests.size(); ++i) {
    const std::string at = At(path + ".devices.requests", i);
    ValidateRequest(requests[i], at, causes);
    const std::string_view name = FindString(requests[i], "name");
    if (!seen.insert(name).second) causes.Duplicate(at + ".name", name);
  }
  const std::set<std::string> names = RequestNames(spec);
  for (size_t i = 0; i < constraints.size(); ++i) {
    ValidateConstraint(constraints[i], names, At(path + ".devices.constraints", i), causes);
  }
}

void ValidateAllocation(const Json& claim, const Json& allocation, Causes& causes) {
  const std::set<std::string> names = RequestNames(Find(claim, "spec"));
  const std::string path = "status.allocation.devices.results";
  const JsonArray& results = ListOf(Find(allocation, "devices", "results"));
  LimitItems(results, kMaxClaimEntries, path, causes);
  for (size_t i = 0; i < results.size(); ++i) {
    const Json& result = results[i];
    const std::string at = At(path, i);
    const std::string_view request = FindString(result, "request");
    if (!names.contains(std::string(request))) {
      causes.Invalid(at + ".request", request, "must be the name of a request in the claim");
    }
    ValidateDriver(FindString(result, "driver"), at + ".driver", causes);
    ValidatePool(FindString(result, "pool"), at + ".pool", causes);
    ValidateLabel(FindString(result, "device"), at + ".device", causes);
  }
}

std::set<std::string_view> Uids(const JsonArray& consumers) {
  std::set<std::string_view> uids;
  for (const Json& consumer : consumers) uids.insert(FindString(consumer, "uid"));
  return uids;
}

void ValidateReservedFor(const Json& claim, const Json* old, Causes& causes) {
  const std::string path = "status.reservedFor";
  const JsonArray& consumers = ListOf(Find(claim, "status", "reservedFor"));
  LimitItems(consumers, kMaxConsumers, path, causes);
  std::set<std::string_view> seen;
  for (size_t i = 0; i < consumers.size(); ++i) {
    for (const std::string_view field : {"resource", "name", "uid"}) {
      if (FindString(consumers[i], field).empty()) {
        causes.Required(fmt::format("{}.{}", At(path, i), field));
      }
    }
    const std::string_view uid = FindString(consumers[i], "uid");
    if (!seen.insert(uid).second) causes.Duplicate(At(path, i) + ".uid", uid);
  }
  if (consumers.empty()) return;
  if (Present(Find(claim, "status", "allocation")) == nullptr) {
    return causes.Forbidden(path, "may not be specified when `allocated` is not set");
  }
  if (old == nullptr || Present(Find(claim, "metadata", "deletionTimestamp")) == nullptr) return;
  const auto before = Uids(ListOf(Find(*old, "status", "reservedFor")));
  if (!std::includes(before.begin(), before.end(), seen.begin(), seen.end())) {
    causes.Forbidden(path, "new entries may not be added while `deletionTimestamp` is set");
  }
}

void ValidateClaim(const Json& claim, const Json* old, Causes& causes) {
  if (old == nullptr) {
    return ValidateClaimSpec(Find(claim, "spec"), "spec", causes);
  }
  const Json* spec = Find(claim, "spec");
  const Json* spec_before = Find(*old, "spec");
  if (spec == nullptr || spec_before == nullptr || *spec != *spec_before) {
    causes.Invalid("spec", "", "field is immutable");
  }
  const Json* allocation = Present(Find(claim, "status", "allocation"));
  const Json* before = Present(Find(*old, "status", "allocation"));
  if (allocation != nullptr && before == nullptr) ValidateAllocation(claim, *allocation, causes);
  if (allocation != nullptr && before != nullptr && *allocation != *before) {
    causes.Invalid("status.allocation", WriteJson(*allocation), "field is immutable");
  }
  ValidateReservedFor(claim, old, causes);
}

// --- The other kinds

void ValidateTaintRule(const Json& rule, Causes& causes) {
  const Json* taint = Present(Find(rule, "spec", "taint"));
  if (taint == nullptr) return causes.Required("spec.taint");
  ValidateDeviceTaint(*taint, "spec.taint", causes);
}

}  // namespace

void ValidateDevices(const ResourceType& type, const Json& object, const Json* old,
                     Causes& causes) {
  const std::string_view kind = type.kind;
  if (kind == "ResourceSlice") ValidateSlice(object, old, causes);
  if (kind == "ResourceClaim") ValidateClaim(object, old, causes);
  if (kind == "ResourceClaimTemplate") {
    ValidateClaimSpec(Find(object, "spec", "spec"), "spec.spec", causes);
    RequireSame(object, old, "spec", "spec", causes);
  }
  if (kind == "DeviceTaintRule") ValidateTaintRule(object, causes);
  if (kind == "DeviceClass") {
    const Json* spec = Find(object, "spec");
    if (spec != nullptr && spec->is_object()) ValidateSelectors(*spec, "spec", causes);
  }
}

}  // namespace nos::sim
