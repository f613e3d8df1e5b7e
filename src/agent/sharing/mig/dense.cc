#include "agent/sharing/mig/dense.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "device/plain_gpus.h"

namespace nos::agent {

void DenseChoice::Look(const NodeDevices& devices) {
  const std::set<std::string> held = devices.Held();
  std::map<std::string, Device> seen;
  for (const device::ObservedGpu& gpu : devices.gpus) {
    for (const device::GpuInstance& instance : gpu.instances) {
      if (!instance.complete || !device::IsMigProfile(instance.profile)) continue;
      seen[instance.uuid] = {gpu.index, instance.size, ResourceOf(gpu, instance),
                             held.contains(instance.uuid)};
    }
  }
  const std::lock_guard lock(mutex_);
  devices_ = std::move(seen);
}

// REQUIRES: mutex_ is held.
std::map<int, int> DenseChoice::Used(const kubelet::Choice& choice) const {
  std::map<int, int> used;
  for (const auto& [uuid, device] : devices_) {
    const bool free = device.resource == choice.resource
                          ? std::ranges::count(choice.available, uuid) > 0
                          : !device.held;
    used[device.gpu] += free ? 0 : device.slots;
  }
  return used;
}

std::vector<std::string> DenseChoice::Prefer(const kubelet::Choice& choice) const {
  const std::lock_guard lock(mutex_);
  std::map<int, std::vector<std::string>> free;  // by GPU
  std::vector<std::string> chosen = choice.must_include;
  std::map<int, int> taken;  // of must_include, by GPU
  for (const std::string& id : choice.must_include) {
    const auto device = devices_.find(id);
    if (device == devices_.end()) return {};
    ++taken[device->second.gpu];
  }
  for (const std::string& id : choice.available) {
    const auto device = devices_.find(id);
    if (device == devices_.end()) return {};
    if (std::ranges::count(chosen, id) == 0) free[device->second.gpu].push_back(id);
  }
  const std::map<int, int> used = Used(choice);
  while (std::ssize(chosen) < choice.size && !free.empty()) {
    const auto missing = choice.size - std::ssize(chosen);
    // GPUs that the container has anyway; then those that are enough, the fullest first; then
    // those with most devices, so that few are needed.
    const auto rank = [&](const auto& entry) {
      const auto& [gpu, ids] = entry;
      const auto serves = std::min<std::ptrdiff_t>(std::ssize(ids), missing);
      return std::tuple(taken.contains(gpu), serves, used.at(gpu), -std::ssize(ids), -gpu);
    };
    const auto best = std::ranges::max_element(free, {}, rank);
    const auto some = std::min<std::ptrdiff_t>(std::ssize(best->second), missing);
    chosen.insert(chosen.end(), best->second.begin(), best->second.begin() + some);
    free.erase(best);
  }
  return chosen;
}

}  // namespace nos::agent
