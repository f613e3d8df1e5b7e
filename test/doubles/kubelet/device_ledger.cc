#include "doubles/kubelet/device_ledger.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "codec/json.h"

namespace nos::doubles {
namespace {

JsonArray ToJson(const Ids& ids) {
  JsonArray array;
  for (const std::string& id : ids) array.emplace_back(id);
  return array;
}

Ids IdsOf(const Json* devices_by_numa_node) {
  Ids ids;
  if (devices_by_numa_node == nullptr || !devices_by_numa_node->is_object()) return ids;
  for (const auto& node : devices_by_numa_node->get_object()) {
    if (!node.value().is_array()) continue;
    for (const Json& id : node.value().get_array()) {
      if (id.is_string()) ids.emplace(View(id.get_string()));
    }
  }
  return ids;
}

}  // namespace

void DeviceLedger::SetDevices(const std::string& resource, Ids healthy, Ids unhealthy) {
  devices_[resource] = {std::move(healthy), std::move(unhealthy)};
}

void DeviceLedger::MarkUnhealthy(const std::string& resource) {
  Devices& devices = devices_[resource];
  devices.unhealthy.merge(devices.healthy);
  devices.healthy.clear();
}

void DeviceLedger::Forget(const std::string& resource) { devices_.erase(resource); }

Ids DeviceLedger::Free(const std::string& resource) const {
  Ids free;
  const auto known = devices_.find(resource);
  if (known == devices_.end()) return free;
  for (const std::string& id : known->second.healthy) {
    if (!reserved_.contains(id)) free.insert(id);
  }
  return free;
}

Result<Ids> DeviceLedger::Reserve(const std::string& resource, int64_t count,
                                  const Ids& preferred) {
  const auto known = devices_.find(resource);
  if (known == devices_.end()) {
    return Status(Code::kExhausted,
                  fmt::format("cannot allocate unregistered device {}", resource));
  }
  const Ids free = Free(resource);
  if (std::cmp_less(free.size(), count)) {
    return Status(Code::kExhausted,
                  fmt::format("requested number of devices unavailable for {}. Requested: {}, "
                              "Available: {}",
                              resource, count, free.size()));
  }
  const bool follow = std::cmp_equal(preferred.size(), count) &&
                      std::includes(free.begin(), free.end(), preferred.begin(), preferred.end());
  Ids taken = follow ? preferred : Ids(free.begin(), std::next(free.begin(), count));
  reserved_.insert(taken.begin(), taken.end());
  return taken;
}

void DeviceLedger::Release(const Ids& ids) {
  for (const std::string& id : ids) reserved_.erase(id);
}

void DeviceLedger::Record(Holding holding) { holdings_.push_back(std::move(holding)); }

void DeviceLedger::Remove(const std::string& ns, const std::string& pod) {
  std::erase_if(holdings_, [&](const Holding& holding) {
    if (holding.ns != ns || holding.pod != pod) return false;
    Release(holding.ids);
    return true;
  });
}

std::map<std::string, ResourceCount> DeviceLedger::Counts() const {
  std::map<std::string, ResourceCount> counts;
  for (const auto& [resource, devices] : devices_) {
    const auto healthy = static_cast<int64_t>(devices.healthy.size());
    counts[resource] = {healthy + static_cast<int64_t>(devices.unhealthy.size()), healthy};
  }
  return counts;
}

std::map<std::string, Ids> DeviceLedger::Healthy() const {
  std::map<std::string, Ids> healthy;
  for (const auto& [resource, devices] : devices_) healthy[resource] = devices.healthy;
  return healthy;
}

std::string DeviceLedger::WriteCheckpoint() const {
  JsonArray entries;
  for (const Holding& holding : holdings_) {
    entries.push_back({{"PodUID", holding.ns + "/" + holding.pod},
                       {"ContainerName", holding.container},
                       {"ResourceName", holding.resource},
                       {"DeviceIDs", {{"-1", ToJson(holding.ids)}}}});
  }
  JsonObject registered;
  for (const auto& [resource, devices] : devices_) registered[resource] = ToJson(devices.healthy);
  return WriteJson({{"Data", {{"PodDeviceEntries", entries}, {"RegisteredDevices", registered}}}});
}

Status DeviceLedger::ReadCheckpoint(const std::string& text) {
  NOS_ASSIGN(const Json checkpoint, ParseJson(text));
  const Json* entries = Find(checkpoint, "Data", "PodDeviceEntries");
  if (entries == nullptr || !entries->is_array()) return Invalid("no entries in the checkpoint");
  holdings_.clear();
  reserved_.clear();
  for (const Json& entry : entries->get_array()) {
    const std::string uid(FindString(entry, "PodUID"));
    const size_t slash = uid.find('/');
    if (slash == std::string::npos) return Invalid("bad PodUID in the checkpoint: " + uid);
    Ids ids = IdsOf(Find(entry, "DeviceIDs"));
    reserved_.insert(ids.begin(), ids.end());
    holdings_.push_back({uid.substr(0, slash), uid.substr(slash + 1),
                         std::string(FindString(entry, "ContainerName")),
                         std::string(FindString(entry, "ResourceName")), std::move(ids)});
  }
  return Status::Ok();
}

}  // namespace nos::doubles
