#include "sim/world/checks/device_checker.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/world/node/invariants.h"

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

bool IsTrue(const Json* value) { return value != nullptr && *value == true; }

// Amounts by "KEY/CAPACITY"; `values`: an object of quantities, or of objects with a "value".
std::map<std::string, Quantity> CapacityOf(const std::string& key, const Json* values) {
  std::map<std::string, Quantity> amounts;
  if (values == nullptr || !values->is_object()) return amounts;
  for (const auto& [name, value] : values->get_object()) {
    const std::string_view text =
        value.is_string() ? View(value.get_string()) : FindString(value, "value");
    amounts[fmt::format("{}/{}", key, std::string_view(name))] =
        Quantity::Parse(text).value_or(Quantity());
  }
  return amounts;
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
  now_ = now;
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
      Announced& known = announced_[fmt::format("{}/{}", pool, FindString(device, "name"))];
      known.by_slice.erase(before->meta.name);
      known.gone = now_;
    }
  }
  if (after == nullptr) return;
  const std::string pool = PoolOf(after->object);
  for (const Json& set : ListOf(Find(after->object, "spec", "sharedCounters"))) {
    ForEachCounter(set, pool, FindString(set, "name"),
                   [&](std::string name, Quantity amount) { limits_[std::move(name)] = amount; });
  }
  for (const Json& device : ListOf(Find(after->object, "spec", "devices"))) {
    const std::string key = fmt::format("{}/{}", pool, FindString(device, "name"));
    Announced& known = announced_[key];
    Amounts& consumes = known.by_slice[after->meta.name];
    for (const Json& consumed : ListOf(Find(device, "consumesCounters"))) {
      ForEachCounter(
          consumed, pool, FindString(consumed, "counterSet"),
          [&](std::string name, Quantity amount) { consumes[std::move(name)] = amount; });
    }
    known.last = consumes;
    known.capacity = CapacityOf(key, Find(device, "capacity"));
  }
}

void DeviceChecker::OnClaim(const std::string& key, const KeptPtr& after) {
  const Json* results = after == nullptr
                            ? nullptr
                            : Find(after->object, "status", "allocation", "devices", "results");
  if (results == nullptr || ListOf(results).empty()) return TakeBack(key);
  if (const auto known = results_.find(key); known != results_.end()) {
    if (known->second == *results) return;
    problems_.push_back(fmt::format("the allocation of claim {} changes", key));
    TakeBack(key);
  }
  results_[key] = *results;
  devices_[key];
  for (const Json& result : ListOf(results)) {
    if (IsTrue(Find(result, "adminAccess"))) continue;
    Device device{std::string(FindString(result, "driver")),
                  std::string(FindString(result, "pool")),
                  std::string(FindString(result, "device")),
                  !FindString(result, "shareID").empty(),
                  {}};
    if (device.shared) {
      device.consumes = CapacityOf(device.Key(), Find(result, "consumedCapacity"));
    }
    Give(key, std::move(device));
  }
}

void DeviceChecker::Give(const std::string& claim, Device device) {
  const auto announced = announced_.find(device.Key());
  const bool known =
      announced != announced_.end() &&
      (!announced->second.by_slice.empty() || now_ - announced->second.gone <= kFaultsLinger);
  if (!known) {
    problems_.push_back(
        fmt::format("claim {} got {}, which no slice announces", claim, device.Key()));
  }
  if (device.shared) {
    if (known) {
      for (const auto& [name, amount] : announced->second.capacity) limits_[name] = amount;
    }
    Consume(claim, device);
    devices_[claim].push_back(std::move(device));
    return;
  }
  if (announced != announced_.end()) device.consumes = announced->second.last;
  const auto [holder, first] = holders_.emplace(device.Key(), claim);
  if (!first) {
    problems_.push_back(fmt::format("device given twice: {} to claim {} and to claim {}",
                                    device.Key(), holder->second, claim));
    return;
  }
  Consume(claim, device);
  devices_[claim].push_back(std::move(device));
}

void DeviceChecker::Consume(const std::string& claim, const Device& device) {
  for (const auto& [counter, amount] : device.consumes) {
    Quantity& used = used_[counter];
    used = used + amount;
    if (used <= limits_[counter]) continue;
    problems_.push_back(fmt::format("device given twice: {} of claim {} takes {} to {} of {}",
                                    device.Key(), claim, counter, used.ToString(),
                                    limits_[counter].ToString()));
  }
}

void DeviceChecker::TakeBack(const std::string& claim) {
  results_.erase(claim);
  const auto found = devices_.find(claim);
  if (found == devices_.end()) return;
  for (const Device& device : found->second) {
    if (!device.shared) holders_.erase(device.Key());
    for (const auto& [counter, amount] : device.consumes) used_[counter] = used_[counter] - amount;
  }
  devices_.erase(found);
}

}  // namespace nos::sim
