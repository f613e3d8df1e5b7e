#include "sim/world/node/device_manager.h"

#include <fmt/format.h>

#include <algorithm>

namespace nos::sim {
namespace {

bool IsDeviceResource(std::string_view name) { return name.find('/') != std::string_view::npos; }

bool IsAllocated(std::string_view device_id, const RunningPods& pods) {
  return std::ranges::any_of(pods, [&](const auto& entry) {
    const RunningPod& pod = entry.second;
    return pod.pod != nullptr &&
           std::ranges::count(pod.devices, device_id, &kubelet::DeviceAssignment::device_id) > 0;
  });
}

}  // namespace

bool DeviceManager::Offer(const std::vector<kubelet::OfferedDevice>& devices) {
  std::set<kubelet::OfferedDevice> offer(devices.begin(), devices.end());
  if (offer == offered_) return false;
  offered_.swap(offer);
  for (const auto& device : offered_) ever_offered_.insert(device.resource);
  for (const auto& device : offer) {
    const bool withdrawn = device.healthy && !offered_.contains(device);
    if (withdrawn && on_withdrawal_ != nullptr) on_withdrawal_(device);
  }
  return true;
}

std::map<std::string, DeviceCount> DeviceManager::Count() const {
  std::map<std::string, DeviceCount> devices;
  for (const std::string& resource : ever_offered_) devices[resource] = {};
  for (const auto& device : offered_) {
    ++devices[device.resource].all;
    devices[device.resource].healthy += device.healthy ? 1 : 0;
  }
  return devices;
}

std::optional<AdmissionRefusal> DeviceManager::Allocate(
    const cluster::Pod& pod, const RunningPods& pods,
    std::vector<kubelet::DeviceAssignment>& taken) {
  std::vector<kubelet::DeviceAssignment> mine;
  for (const auto& [resource, amount] : cluster::PodRequests(pod)) {
    // The kubelet leaves resources to a claim that no device plugin of the node has.
    if (!IsDeviceResource(resource) || (claims_ && !pod.extended_claim.empty())) continue;
    const std::vector<std::string> free = Free(pod, pods, resource);
    const auto wanted = static_cast<size_t>(std::max<int64_t>(0, amount.Value()));
    if (free.size() < wanted) {
      return AdmissionRefusal{
          "UnexpectedAdmissionError",
          fmt::format("Allocate failed due to requested number of devices unavailable "
                      "for {}. Requested: {}, Available: {}, which is unexpected",
                      resource, wanted, free.size())};
    }
    const auto last = free.begin() + static_cast<std::ptrdiff_t>(wanted);
    const auto used =
        std::find_if(free.begin(), last, [&](const auto& id) { return IsInUse(id, pods); });
    if (used != last) {
      return AdmissionRefusal{
          "UnexpectedAdmissionError",
          fmt::format("Allocate failed due to rpc error: device {} of {} is still in use, "
                      "which is unexpected",
                      *used, resource)};
    }
    AssignToContainers(pod, resource, {free.begin(), last}, mine);
  }
  taken = std::move(mine);
  return std::nullopt;
}

// In random order, because the kubelet guarantees none.
std::vector<std::string> DeviceManager::Free(const cluster::Pod& pod, const RunningPods& pods,
                                             std::string_view resource) {
  const auto pinned = pinned_.find(pod.Key());
  std::vector<std::string> free;
  for (const auto& device : offered_) {
    if (device.resource != resource || !device.healthy) continue;
    if (IsAllocated(device.device_id, pods)) continue;
    const bool wanted = pinned == pinned_.end() ||
                        std::count(pinned->second.begin(), pinned->second.end(), device.device_id);
    if (wanted) free.push_back(device.device_id);
  }
  random_.Shuffle(free);
  std::ranges::stable_partition(free,
                                [&](const std::string& id) { return !avoided_.contains(id); });
  return free;
}

// A user that runs according to the kubelet is no reason: it would not be given away.
bool DeviceManager::IsInUse(const std::string& device_id, const RunningPods& pods) const {
  const auto user = avoided_.find(device_id);
  if (user == avoided_.end()) return false;
  const auto pod = pods.find(user->second);
  return pod != pods.end() && pod->second.stage != RunningPod::Stage::kFinished;
}

}  // namespace nos::sim
