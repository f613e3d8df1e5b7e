#include "sim/world/checks/device_checker.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace nos::sim {
namespace {

const kube::Resource kSlices{"resource.k8s.io", "v1", "resourceslices", "ResourceSlice", false};
const kube::Resource kClaims{"resource.k8s.io", "v1", "resourceclaims", "ResourceClaim", true};

const JsonArray& ListOf(const Json* list) {
  static const JsonArray kNone;
  return list != nullptr && list->is_array() ? list->get_array() : kNone;
}

// Calls `visit` with the full name and the amount of each counter in the set.
template <typename Visit>
void ForEachCounter(const Json& set, const std::string& pool, std::string_view name, Visit visit) {
  const Json* counters = Find(set, "counters");
  if (counters == nullptr || !counters->is_object()) return;
  for (const auto& [counter, value] : counters->get_object()) {
    const auto amount = Quantity::Parse(FindString(value, "value"));
    visit(fmt::format("{}/{}/{}", pool, name, std::string_view(counter)),
          amount.value_or(Quantity()));
  }
}

std::string PoolOf(const Json& slice) {
  return fmt::format("{}/{}", FindString(slice, "spec", "driver"),
                     FindString(slice, "spec", "pool", "name"));
}

bool SharesDevice(const Json& result) {
  const Json* admin = Find(result, "adminAccess");
  return (admin != nullptr && *admin == true) || !FindString(result, "shareID").empty();
}

}  // namespace

DeviceChecker::DeviceChecker(kube::Transport& api)
    : client_(api), slices_(kSlices, Keep), claims_(kClaims, Keep) {
  slices_.AddHandler([this](const std::string&, const KeptPtr& before, const KeptPtr& after) {
    OnSlice(before, after);
  });
  claims_.AddHandler([this](const std::string& key, const KeptPtr&, const KeptPtr& after) {
    OnClaim(key, after);
  });
}

Status DeviceChecker::Keep(JsonSource json, Kept& to) {
  NOS_ASSIGN(to.object, TreeOf(json));
  to.meta.ns = FindString(to.object, "metadata", "namespace");
  to.meta.name = FindString(to.object, "metadata", "name");
  to.meta.resource_version = FindString(to.object, "metadata", "resourceVersion");
  return Status::Ok();
}

void DeviceChecker::Watch(Time now) {
  slices_.Pump(client_, now);
  claims_.Pump(client_, now);
}

std::vector<std::string> DeviceChecker::TakeProblems() { return std::exchange(problems_, {}); }

std::vector<std::string> DeviceChecker::DevicesOf(const std::string& claim) const {
  std::vector<std::string> names;
  const auto found = devices_.find(claim);
  if (found == devices_.end()) return names;
  for (const Device& device : found->second) names.push_back(device.pool + "/" + device.name);
  std::ranges::sort(names);
  return names;
}

// A claim keeps a device that its slice no longer lists, with the counters announced before.
void DeviceChecker::OnSlice(const KeptPtr& before, const KeptPtr& after) {
  if (before != nullptr) {
    const std::string pool = PoolOf(before->object);
    for (const Json& device : ListOf(Find(before->object, "spec", "devices"))) {
      announced_.erase(fmt::format("{}/{}", pool, FindString(device, "name")));
    }
  }
  if (after == nullptr) return;
  const std::string pool = PoolOf(after->object);
  for (const Json& set : ListOf(Find(after->object, "spec", "sharedCounters"))) {
    ForEachCounter(set, pool, FindString(set, "name"),
                   [&](std::string name, Quantity amount) { limits_[std::move(name)] = amount; });
  }
  for (const Json& device : ListOf(Find(after->object, "spec", "devices"))) {
    Amounts& consumes = announced_[fmt::format("{}/{}", pool, FindString(device, "name"))];
    for (const Json& consumed : ListOf(Find(device, "consumesCounters"))) {
      ForEachCounter(
          consumed, pool, FindString(consumed, "counterSet"),
          [&](std::string name, Quantity amount) { consumes[std::move(name)] = amount; });
    }
  }
}

void DeviceChecker::OnClaim(const std::string& key, const KeptPtr& after) {
  const JsonArray* results = nullptr;
  if (after != nullptr) {
    results = &ListOf(Find(after->object, "status", "allocation", "devices", "results"));
  }
  if (results == nullptr || results->empty()) return TakeBack(key);
  if (devices_.contains(key)) return;  // an allocation never changes
  devices_[key];
  for (const Json& result : *results) {
    if (SharesDevice(result)) continue;
    Give(key, {std::string(FindString(result, "driver")),
               std::string(FindString(result, "pool")),
               std::string(FindString(result, "device")),
               {}});
  }
}

void DeviceChecker::Give(const std::string& claim, Device device) {
  const auto announced = announced_.find(device.Key());
  if (announced == announced_.end()) {
    problems_.push_back(
        fmt::format("claim {} got {}, which no slice announces", claim, device.Key()));
  } else {
    device.consumes = announced->second;
  }
  const auto [holder, first] = holders_.emplace(device.Key(), claim);
  if (!first) {
    problems_.push_back(fmt::format("device given twice: {} to claim {} and to claim {}",
                                    device.Key(), holder->second, claim));
    return;
  }
  for (const auto& [counter, amount] : device.consumes) {
    Quantity& used = used_[counter];
    used = used + amount;
    if (used <= limits_[counter]) continue;
    problems_.push_back(fmt::format("device given twice: {} of claim {} takes {} to {} of {}",
                                    device.Key(), claim, counter, used.ToString(),
                                    limits_[counter].ToString()));
  }
  devices_[claim].push_back(std::move(device));
}

void DeviceChecker::TakeBack(const std::string& claim) {
  const auto found = devices_.find(claim);
  if (found == devices_.end()) return;
  for (const Device& device : found->second) {
    holders_.erase(device.Key());
    for (const auto& [counter, amount] : device.consumes) used_[counter] = used_[counter] - amount;
  }
  devices_.erase(found);
}

}  // namespace nos::sim
