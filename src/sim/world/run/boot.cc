// Brings a world into the state that its node specs describe, including the pods on used instances.
#include <fmt/format.h>

#include "cluster/annotations.h"
#include "sim/world.h"

namespace nos::sim {
namespace {

constexpr Duration kTick = std::chrono::seconds(1);
constexpr int kPatience = 120;  // ticks

std::string HolderName(const NodeSpec& node, size_t gpu, const InstanceSpec& instance) {
  if (!instance.pod.empty()) return instance.pod;
  std::string name = fmt::format("used-{}-{}-{}", node.name, gpu, instance.placement);
  for (char& c : name) {
    if (c == '@' || c == '.' || c == '+') c = '-';
  }
  return name;
}

std::optional<device::GpuInstance> FindInstance(const Machine& machine, size_t gpu,
                                                const std::string& text) {
  const gpu::Model& model = machine.model(gpu);
  const auto placement = model.ParsePlacement(text);
  for (device::GpuInstance& instance : machine.Instances(gpu)) {
    if (placement.ok() && instance.start == placement->start &&
        instance.profile == model.profile(placement->profile).name) {
      return std::move(instance);
    }
  }
  return std::nullopt;
}

// True if every node is registered and every agent has reported all its GPUs.
bool AllRegistered(World& world) {
  size_t registered = 0;
  for (const auto& node : world.Nodes()) {
    const Machine* machine = world.FindMachine(node->meta.name);
    if (machine == nullptr) continue;
    const auto gpus = cluster::ReadNodeGpus(*node, world.catalogue()).gpus;
    const NodeSpec& spec = machine->kubelet().spec();
    // Only the agent's report shows that a GPU is shared.
    const bool silent = ((spec.mps || spec.hybrid) && gpus.empty()) ||
                        !std::ranges::all_of(gpus, &cluster::Gpu::reported);
    const bool announced = machine->driver() == nullptr || machine->driver()->announced();
    if (announced && (machine->gpus() == nullptr || !spec.managed || !silent)) ++registered;
  }
  return registered >= world.machines().size();
}

// Creates one pod per pod name and node, and pins it to the devices of its instances.
void CreateHolders(World& world) {
  for (const auto& [name, machine] : world.machines()) {
    const NodeSpec& spec = machine->kubelet().spec();
    std::map<std::string, PodSpec> pods;
    std::map<std::string, std::vector<std::string>> devices;
    for (size_t gpu = 0; machine->gpus() != nullptr && gpu < machine->gpu_count(); ++gpu) {
      for (const InstanceSpec& instance : spec.gpus[gpu].instances) {
        if (!instance.used) continue;
        const std::string pod = HolderName(spec, gpu, instance);
        const auto there = FindInstance(*machine, gpu, instance.placement);
        if (!there) continue;
        pods[pod].name = pod;
        pods[pod].node = name;
        pods[pod].containers.resize(1);
        ++pods[pod].containers[0][there->profile];
        devices[pod].push_back(there->uuid);
      }
    }
    for (const auto& [pod, pod_spec] : pods) {
      machine->kubelet().devices().Pin(pod_spec.ns + "/" + pod, devices[pod]);
      world.Submit(pod_spec, world.Now());
    }
  }
}

bool HoldersRun(World& world) {
  for (const auto& pod : world.Pods()) {
    if (!pod->node_name.empty() && pod->phase == "Pending") return false;
  }
  // Waits until the agents' reports show it, too.
  for (const auto& node : world.Nodes()) {
    const Machine* machine = world.FindMachine(node->meta.name);
    if (machine == nullptr) continue;
    size_t used = 0, held = 0;
    for (const auto& gpu : cluster::ReadNodeGpus(*node, world.catalogue()).gpus) {
      for (const auto& instance : gpu.instances) used += instance.used ? 1 : 0;
    }
    for (const auto& [uid, running] : machine->kubelet().pods()) held += running.devices.size();
    if (used != held) return false;
  }
  const std::optional<Time> next = world.NextTime();
  return !next || *next > world.Now();
}

}  // namespace

Status World::Boot() {
  for (int tick = 0; tick < kPatience && !AllRegistered(*this); ++tick) RunFor(kTick);
  if (!AllRegistered(*this)) return {Code::kDeadline, "the nodes' agents do not report"};
  CreateHolders(*this);
  for (int tick = 0; tick < kPatience && !HoldersRun(*this); ++tick) RunFor(kTick);
  if (!HoldersRun(*this)) return {Code::kDeadline, "the pods on used instances do not start"};
  return Status::Ok();
}

}  // namespace nos::sim
