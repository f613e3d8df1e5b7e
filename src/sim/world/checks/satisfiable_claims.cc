#include "sim/world/checks/satisfiable_claims.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/world/node/device_slices.h"

namespace nos::sim {
namespace {

const JsonArray& ListOf(const Json* list) {
  static const JsonArray kNone;
  return list != nullptr && list->is_array() ? list->get_array() : kNone;
}

int64_t IntOf(const Json* value) {
  return value != nullptr && value->is_int64() ? value->get_int64() : 0;
}

bool Forbids(std::string_view effect) { return effect == "NoSchedule" || effect == "NoExecute"; }

bool Selects(const Json& rule, const std::string& driver, const std::string& pool,
             std::string_view device) {
  const auto agrees = [&](const char* field, std::string_view value) {
    const std::string_view wanted = FindString(rule, "spec", "deviceSelector", field);
    return wanted.empty() || wanted == value;
  };
  return agrees("driver", driver) && agrees("pool", pool) && agrees("device", device) &&
         Forbids(FindString(rule, "spec", "taint", "effect"));
}

// The class under which the simulation asks for the device.
std::string ClassOf(const std::string& driver, const Json& device) {
  if (driver != kGpuDriver) return driver;
  const bool mig = FindString(device, "attributes", "type", "string") == "mig";
  return mig ? "mig.nvidia.com" : "gpu.nvidia.com";
}

// The slices of the newest generation, if they are all there and agree.
std::vector<const Json*> WholePool(const std::vector<const Json*>& slices) {
  int64_t newest = 0;
  for (const Json* slice : slices) {
    newest = std::max(newest, IntOf(Find(*slice, "spec", "pool", "generation")));
  }
  std::vector<const Json*> pool;
  for (const Json* slice : slices) {
    if (IntOf(Find(*slice, "spec", "pool", "generation")) == newest) pool.push_back(slice);
  }
  std::set<std::string_view> names;
  for (const Json* slice : pool) {
    if (IntOf(Find(*slice, "spec", "pool", "resourceSliceCount")) != std::ssize(pool)) return {};
    for (const Json& device : ListOf(Find(*slice, "spec", "devices"))) {
      if (!names.insert(FindString(device, "name")).second) return {};
    }
  }
  return pool;
}

template <typename Visit>
void ForEachCounter(const Json& set, const std::string& name, Visit visit) {
  const Json* counters = Find(set, "counters");
  if (counters == nullptr || !counters->is_object()) return;
  for (const auto& [counter, value] : counters->get_object()) {
    visit(fmt::format("{}/{}", name, std::string_view(counter)),
          Quantity::Parse(FindString(value, "value")).value_or(Quantity()));
  }
}

}  // namespace

NodeDevices::NodeDevices(const std::vector<Json>& slices, const std::vector<Json>& rules,
                         const std::vector<Json>& claims, const std::string& node) {
  std::map<std::string, std::vector<const Json*>> pools;
  for (const Json& slice : slices) {
    if (FindString(slice, "spec", "nodeName") != node) continue;
    pools[std::string(FindString(slice, "spec", "driver"))].push_back(&slice);
  }
  for (const auto& [driver, all] : pools) AddPool(WholePool(all), rules);
  for (const Json& claim : claims) {
    for (const Json& result : ListOf(Find(claim, "status", "allocation", "devices", "results"))) {
      Use(result);
    }
  }
  for (auto& [key, device] : devices_) order_.push_back(&device);
}

void NodeDevices::AddPool(const std::vector<const Json*>& slices, const std::vector<Json>& rules) {
  for (const Json* slice : slices) {
    const std::string driver(FindString(*slice, "spec", "driver"));
    for (const Json& set : ListOf(Find(*slice, "spec", "sharedCounters"))) {
      ForEachCounter(set, fmt::format("{}/{}", driver, FindString(set, "name")),
                     [&](const std::string& name, Quantity amount) { left_[name] = amount; });
    }
  }
  for (const Json* slice : slices) {
    const std::string driver(FindString(*slice, "spec", "driver"));
    const std::string pool(FindString(*slice, "spec", "pool", "name"));
    for (const Json& device : ListOf(Find(*slice, "spec", "devices"))) {
      const std::string_view name = FindString(device, "name");
      Device& here = devices_[fmt::format("{}/{}/{}", driver, pool, name)];
      here.device_class = ClassOf(driver, device);
      here.profile = FindString(device, "attributes", "profile", "string");
      here.parent = FindString(device, "attributes", "parentUUID", "string");
      const Json* several = Find(device, "allowMultipleAllocations");
      here.shared = several != nullptr && *several == true;
      here.capacity = Quantity::Parse(FindString(device, "capacity", "bandwidth", "value"))
                          .value_or(Quantity());
      here.tainted = std::ranges::any_of(
                         ListOf(Find(device, "taints")),
                         [](const Json& taint) { return Forbids(FindString(taint, "effect")); }) ||
                     std::ranges::any_of(rules, [&](const Json& rule) {
                       return Selects(rule, driver, pool, name);
                     });
      for (const Json& consumed : ListOf(Find(device, "consumesCounters"))) {
        ForEachCounter(consumed, fmt::format("{}/{}", driver, FindString(consumed, "counterSet")),
                       [&](std::string counter, Quantity amount) {
                         here.consumes[std::move(counter)] = amount;
                       });
      }
    }
  }
}

void NodeDevices::Use(const Json& result) {
  const auto found =
      devices_.find(fmt::format("{}/{}/{}", FindString(result, "driver"),
                                FindString(result, "pool"), FindString(result, "device")));
  if (found == devices_.end()) return;
  Device& device = found->second;
  if (device.shared) {
    device.capacity =
        device.capacity -
        Quantity::Parse(FindString(result, "consumedCapacity", "bandwidth")).value_or(Quantity());
    return;
  }
  Take(device, {}, 1);
}

bool NodeDevices::Fits(const Device& device, const AskedClaim& claim, const At& at) const {
  const AskedDevices& asked = *at.asked;
  if (device.device_class != asked.device_class || device.used) return false;
  if (!asked.profile.empty() && device.profile != asked.profile) return false;
  if (device.tainted && !asked.tolerates) return false;
  if (claim.same_gpu && !at.parent.empty() && device.parent != at.parent) return false;
  if (device.shared) return Quantity::FromValue(asked.gib << 30) <= device.capacity;
  return std::ranges::all_of(device.consumes, [&](const auto& consumed) {
    const auto left = left_.find(consumed.first);
    return left != left_.end() && consumed.second <= left->second;
  });
}

void NodeDevices::Take(Device& device, const AskedDevices& asked, int sign) {
  if (device.shared) {
    const Quantity amount = Quantity::FromValue(asked.gib << 30);
    device.capacity = sign > 0 ? device.capacity - amount : device.capacity + amount;
    return;
  }
  device.used = sign > 0;
  for (const auto& [counter, amount] : device.consumes) {
    Quantity& left = left_[counter];
    left = sign > 0 ? left - amount : left + amount;
  }
}

bool NodeDevices::CouldServe(const std::vector<const AskedClaim*>& claims) {
  steps_ = 0;
  return NextRequest(claims, {});
}

bool NodeDevices::NextRequest(const std::vector<const AskedClaim*>& claims, At at) {
  if (at.claim == claims.size()) return true;
  const AskedClaim& claim = *claims[at.claim];
  if (claim.hostile) return false;
  if (at.request == claim.requests.size()) {
    return NextRequest(claims, {.claim = at.claim + 1, .parent = {}});
  }
  at.from = 0;
  return std::ranges::any_of(claim.requests[at.request], [&](const AskedDevices& asked) {
    At with = at;
    with.asked = &asked;
    with.left = asked.count;
    return NextDevice(claims, with);
  });
}

bool NodeDevices::NextDevice(const std::vector<const AskedClaim*>& claims, const At& at) {
  if (at.left == 0) {
    At next = at;
    ++next.request;
    return NextRequest(claims, next);
  }
  for (size_t i = at.from; i < order_.size(); ++i) {
    if (++steps_ > kMaxSteps) return false;
    Device& device = *order_[i];
    if (!Fits(device, *claims[at.claim], at)) continue;
    At next = at;
    --next.left;
    next.from = i + 1;
    next.parent = device.parent;
    Take(device, *at.asked, 1);
    const bool served = NextDevice(claims, next);
    Take(device, *at.asked, -1);
    if (served) return true;
  }
  return false;
}

}  // namespace nos::sim
