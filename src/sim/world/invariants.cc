#include "sim/world/invariants.h"

#include <fmt/format.h>

#include <map>

#include "cluster/annotations.h"

namespace nos::sim {
namespace {

using Problems = std::vector<std::string>;

void CheckLayout(const Machine& machine, size_t gpu, Problems& problems) {
  const gpu::Model& model = machine.model(gpu);
  std::vector<gpu::Placement> placements;
  std::string names;
  for (const auto& instance : machine.gpus()->Truth(static_cast<int>(gpu))) {
    names += fmt::format(" {}@{}", instance.profile, instance.start);
    const auto profile = model.FindProfile(instance.profile);
    if (profile) placements.push_back({*profile, instance.start});
  }
  if (!model.layouts().FromPlacements(placements).ok()) {
    problems.push_back(fmt::format("{}: GPU {} holds what it cannot hold:{}",
                                   machine.kubelet().name(), gpu, names));
  }
}

// Devices that exist, with the resource each is of.
std::map<std::string, std::string> Devices(const Machine& machine) {
  std::map<std::string, std::string> devices;
  for (size_t gpu = 0; machine.gpus() != nullptr && gpu < machine.gpu_count(); ++gpu) {
    for (const auto& instance : machine.gpus()->Truth(static_cast<int>(gpu))) {
      if (instance.complete) devices[instance.uuid] = SliceResource(instance.profile);
    }
  }
  return devices;
}

int64_t AskedDevices(const cluster::Pod& pod) {
  int64_t asked = 0;
  for (const auto& [resource, amount] : cluster::PodRequests(pod)) {
    if (resource.starts_with("nvidia.com/mig-")) asked += amount.Value();
  }
  return asked;
}

void CheckPod(const std::string& node, const VirtualNode::RunningPod& pod,
              const std::map<std::string, std::string>& devices,
              std::map<std::string, std::string>& holders, Problems& problems) {
  const std::string name = pod.pod == nullptr ? "(deleted)" : pod.pod->Key();
  for (const auto& held : pod.devices) {
    const auto device = devices.find(held.device_id);
    if (device == devices.end()) {
      problems.push_back(fmt::format("{}: {} holds {} {}, which is not there", node, name,
                                     held.resource, held.device_id));
    } else if (device->second != held.resource) {
      problems.push_back(
          fmt::format("{}: {} was given a {} as {}", node, name, device->second, held.resource));
    }
    const auto [other, first] = holders.emplace(held.device_id, name);
    if (!first) {
      problems.push_back(
          fmt::format("{}: {} and {} hold the same {}", node, name, other->second, held.resource));
    }
  }
  const bool active =
      pod.stage == VirtualNode::Stage::kAdmitted || pod.stage == VirtualNode::Stage::kRunning;
  if (active && static_cast<int64_t>(pod.devices.size()) != AskedDevices(*pod.pod)) {
    problems.push_back(fmt::format("{}: {} runs with {} of {} devices", node, name,
                                   pod.devices.size(), AskedDevices(*pod.pod)));
  }
}

}  // namespace

Problems CheckMachine(const Machine& machine) {
  Problems problems;
  if (machine.gpus() == nullptr) return problems;
  for (size_t gpu = 0; gpu < machine.gpu_count(); ++gpu) CheckLayout(machine, gpu, problems);
  const std::map<std::string, std::string> devices = Devices(machine);
  std::map<std::string, std::string> holders;
  for (const auto& [uid, pod] : machine.kubelet().pods()) {
    CheckPod(machine.kubelet().name(), pod, devices, holders, problems);
  }
  return problems;
}

Problems CheckNode(const cluster::Node& node, const gpu::Catalogue& catalogue) {
  Problems problems;
  for (const std::string& problem : cluster::ReadNodeGpus(node, catalogue).problems) {
    problems.push_back(fmt::format("node {}: {}", node.meta.name, problem));
  }
  return problems;
}

}  // namespace nos::sim
