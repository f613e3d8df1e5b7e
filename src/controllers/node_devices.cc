#include "controllers/node_devices.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace nos::controllers {
namespace {

const gpu::Model* ModelOf(const device::GpuInfo& info, const gpu::Catalogue& catalogue) {
  const gpu::Model* model = catalogue.FindByProduct(info.product);
  return model != nullptr ? model : catalogue.FindByPciId(info.pci_device_id);
}

void ObserveGpu(const device::GpuInfo& info, device::Backend& backend,
                const gpu::Catalogue& catalogue, NodeDevices& devices) {
  if (!info.problem.empty()) {
    devices.problems.push_back(fmt::format("GPU {}: {}", info.index, info.problem));
    return;
  }
  if (!info.mig_capable) return;
  const gpu::Model* model = ModelOf(info, catalogue);
  if (model == nullptr) {
    devices.problems.push_back(fmt::format("GPU {}: model '{}' is not in the catalogue of MIG GPUs",
                                           info.index, info.product));
    return;
  }
  device::ObservedGpu gpu{info.index, model, info.mig_enabled, {}, info.uuid};
  if (info.mig_enabled) {
    Result<std::vector<device::GpuInstance>> instances = backend.ListInstances(info.index);
    if (!instances.ok()) {
      devices.problems.push_back(
          fmt::format("GPU {}: {}", info.index, instances.status().message()));
      return;
    }
    gpu.instances = std::move(instances).value();
  }
  devices.gpus.push_back(std::move(gpu));
}

bool IsTarget(std::span<const device::Target> targets, const device::ObservedGpu& gpu,
              const device::GpuInstance& instance) {
  const auto target = std::find_if(targets.begin(), targets.end(), [&](const auto& candidate) {
    return candidate.gpu == gpu.index;
  });
  if (target == targets.end()) return true;  // nothing is destroyed there
  const auto profile = gpu.model->FindProfile(instance.profile);
  if (!profile) return true;
  const gpu::Placement placement{*profile, instance.start};
  return std::find(target->placements.begin(), target->placements.end(), placement) !=
         target->placements.end();
}

// A pod may ask for any number; more than a node can have is as good as that.
int64_t CountOf(const Quantity& amount) {
  constexpr int64_t kMost = 1'000'000;
  return std::clamp<int64_t>(amount.Value(), 0, kMost);
}

// Slices by resource that bound pods ask for and the kubelet has not handed out yet.
std::map<std::string, int64_t> Outstanding(
    const NodeDevices& devices, std::span<const std::shared_ptr<const cluster::Pod>> pods) {
  std::map<std::string, int64_t> outstanding;
  for (const auto& pod : pods) {
    if (pod->Finished()) continue;
    for (const auto& [resource, amount] : cluster::PodRequests(*pod)) {
      const int64_t missing = CountOf(amount) - devices.Told(pod->Key(), resource);
      if (missing > 0) outstanding[resource] += missing;
    }
  }
  return outstanding;
}

using Alive = std::map<std::string, const cluster::Pod*>;  // by "ns/name"

// By UUID: complete instances, and GPUs without MIG.
std::map<std::string, std::string> ResourcesOf(const NodeDevices& devices) {
  std::map<std::string, std::string> resources;
  for (const device::ObservedGpu& gpu : devices.gpus) {
    if (!gpu.mig_enabled) resources[gpu.uuid] = kWholeGpu;
    for (const device::GpuInstance& instance : gpu.instances) {
      if (instance.complete) resources[instance.uuid] = ResourceOf(gpu, instance);
    }
  }
  return resources;
}

// Whether a kubelet has admitted the pod, and so given it its devices: only kubelets write this
// condition, and they write it with the first status.
bool Admitted(const cluster::Pod& pod) { return pod.FindCondition("Ready") != nullptr; }

bool RunsInitContainers(const cluster::Pod& pod) {
  const cluster::Condition* initialized = pod.FindCondition("Initialized");
  return initialized != nullptr && initialized->status != "True";
}

// What the kubelet should tell of a pod's devices: not those of init containers that have ended.
std::map<std::string, int64_t> ToBeTold(const cluster::Pod& pod) {
  std::map<std::string, int64_t> devices;
  if (RunsInitContainers(pod)) {
    for (const auto& [resource, amount] : cluster::PodRequests(pod)) {
      devices[resource] = CountOf(amount);
    }
    return devices;
  }
  const auto add = [&](const cluster::Container& container) {
    cluster::ResourceList asked = container.limits;
    for (const auto& [resource, amount] : container.requests) asked[resource] = amount;
    for (const auto& [resource, amount] : asked) devices[resource] += CountOf(amount);
  };
  for (const cluster::Container& container : pod.containers) add(container);
  for (const cluster::Container& container : pod.init_containers) {
    if (container.restart_always) add(container);
  }
  return devices;
}

// Resources of which an admitted pod is not told to hold all that it asks for.
std::set<std::string> Untold(const NodeDevices& devices, const Alive& pods) {
  std::set<std::string> untold;
  for (const auto& [key, pod] : pods) {
    if (!Admitted(*pod)) continue;
    for (const auto& [resource, amount] : ToBeTold(*pod)) {
      if (devices.Told(key, resource) < amount) untold.insert(resource);
    }
  }
  return untold;
}

// Whose devices they are that the kubelet tells of: pods of one name follow one another, and it
// tells names only. What a predecessor was seen to hold is not the successor's before that is
// admitted, nor after, when it has all that it asks for without.
Holders Attribute(const NodeDevices& devices, const Holders& seen, const Alive& pods,
                  const std::map<std::string, std::string>& resources) {
  Holders holders;
  std::map<std::pair<const cluster::Pod*, std::string>, int64_t> own;
  for (const bool predecessors : {false, true}) {
    for (const auto& [uuid, key] : devices.holders) {
      const auto found = pods.find(key);
      const cluster::Pod* pod = found == pods.end() ? nullptr : found->second;
      const auto before = seen.find(uuid);
      const bool known = before != seen.end() && before->second.pod == key;
      const std::string uid_before = known ? before->second.uid : "";
      const bool from_another =
          pod != nullptr && !uid_before.empty() && uid_before != pod->meta.uid;
      if (from_another != predecessors) continue;
      const auto of = resources.find(uuid);
      const std::string resource = of == resources.end() ? "" : of->second;
      const bool theirs = pod == nullptr || (known && !Admitted(*pod)) ||
                          (from_another && own[{pod, resource}] >= ToBeTold(*pod)[resource]);
      if (!theirs) ++own[{pod, resource}];
      holders[uuid] = {key, theirs ? uid_before : pod->meta.uid};
    }
  }
  return holders;
}

}  // namespace

std::set<std::string> NodeDevices::Held() const {
  std::set<std::string> held;
  for (const auto& [uuid, pod] : holders) held.insert(uuid);
  held.insert(doubtful.begin(), doubtful.end());
  return held;
}

Result<NodeDevices> Observe(device::Backend& backend, kubelet::PodResources& pod_resources,
                            const gpu::Catalogue& catalogue) {
  NodeDevices devices;
  NOS_ASSIGN(const std::vector<device::GpuInfo> infos, backend.ListGpus());
  for (const device::GpuInfo& info : infos) ObserveGpu(info, backend, catalogue, devices);
  NOS_ASSIGN(const std::vector<kubelet::DeviceAssignment> assignments, pod_resources.List());
  for (const kubelet::DeviceAssignment& assignment : assignments) {
    const std::string pod = assignment.ns + "/" + assignment.pod;
    devices.holders[assignment.device_id] = pod;
    ++devices.told[{pod, assignment.resource}];
  }
  return devices;
}

int64_t NodeDevices::Told(const std::string& pod, const std::string& resource) const {
  const auto found = told.find({pod, resource});
  return found == told.end() ? 0 : found->second;
}

Holders Recall(NodeDevices& devices, const Holders& seen,
               std::span<const std::shared_ptr<const cluster::Pod>> pods) {
  Alive alive;
  for (const auto& pod : pods) {
    if (!pod->Finished()) alive[pod->Key()] = pod.get();
  }
  const auto find = [&](const std::string& key) {
    const auto pod = alive.find(key);
    return pod == alive.end() ? nullptr : pod->second;
  };
  const std::map<std::string, std::string> resources = ResourcesOf(devices);
  Holders holders = Attribute(devices, seen, alive, resources);
  for (const auto& [uuid, holder] : holders) {
    const cluster::Pod* pod = find(holder.pod);
    const bool predecessors = pod != nullptr && !holder.uid.empty() && holder.uid != pod->meta.uid;
    if (predecessors && resources.contains(uuid)) --devices.told[{holder.pod, resources.at(uuid)}];
  }
  for (const auto& [uuid, holder] : seen) {
    const cluster::Pod* pod = find(holder.pod);
    const bool same = pod != nullptr && !holder.uid.empty() && holder.uid == pod->meta.uid;
    if (!same || !resources.contains(uuid) || devices.holders.contains(uuid)) continue;
    devices.holders[uuid] = holder.pod;
    ++devices.told[{holder.pod, resources.at(uuid)}];
    holders[uuid] = holder;
  }
  const std::set<std::string> untold = Untold(devices, alive);
  for (const auto& [uuid, resource] : resources) {
    if (untold.contains(resource) && !devices.holders.contains(uuid)) devices.doubtful.insert(uuid);
  }
  return holders;
}

void Mark(NodeDevices& devices, const std::vector<device::HealthCondition>& conditions) {
  for (const device::HealthCondition& condition : conditions) {
    if (!condition.Disables()) continue;
    if (!condition.instance) devices.broken.try_emplace(condition.gpu, condition.message);
    for (const device::ObservedGpu& gpu : devices.gpus) {
      if (gpu.index != condition.gpu) continue;
      for (const device::GpuInstance& instance : gpu.instances) {
        const bool meant = !condition.instance || *condition.instance == instance.id;
        if (meant && instance.complete) devices.unhealthy.insert(instance.uuid);
      }
    }
  }
}

std::vector<cluster::Gpu> ToGpus(const NodeDevices& devices) {
  std::vector<cluster::Gpu> gpus;
  for (const device::ObservedGpu& observed : devices.gpus) {
    if (devices.broken.contains(observed.index)) continue;
    cluster::Gpu gpu;
    gpu.index = observed.index;
    gpu.model = observed.model;
    for (const device::GpuInstance& instance : observed.instances) {
      const auto profile = observed.model->FindProfile(instance.profile);
      if (!profile || !instance.complete) continue;
      const auto holder = devices.holders.find(instance.uuid);
      const bool held = holder != devices.holders.end();
      gpu.instances.push_back({{*profile, instance.start},
                               held || devices.unhealthy.contains(instance.uuid) ||
                                   devices.doubtful.contains(instance.uuid),
                               held ? holder->second : std::string()});
    }
    std::sort(gpu.instances.begin(), gpu.instances.end(),
              [](const auto& left, const auto& right) { return left.placement < right.placement; });
    gpus.push_back(std::move(gpu));
  }
  std::sort(gpus.begin(), gpus.end(),
            [](const auto& left, const auto& right) { return left.index < right.index; });
  return gpus;
}

std::set<int> HeldWhole(const NodeDevices& devices) {
  std::set<int> whole;
  for (const device::ObservedGpu& gpu : devices.gpus) {
    const bool held = devices.holders.contains(gpu.uuid) || devices.doubtful.contains(gpu.uuid);
    if (!gpu.mig_enabled && held) whole.insert(gpu.index);
  }
  return whole;
}

std::string ResourceOf(const device::ObservedGpu& gpu, const device::GpuInstance& instance) {
  const auto profile = gpu.model->FindProfile(instance.profile);
  return profile ? gpu.model->profile(*profile).resource_name : std::string();
}

std::set<std::string> NeededByBoundPods(const NodeDevices& devices,
                                        std::span<const device::Target> targets,
                                        std::span<const std::shared_ptr<const cluster::Pod>> pods) {
  std::map<std::string, int64_t> outstanding = Outstanding(devices, pods);
  std::set<std::string> needed;
  for (const bool wanted : {true, false}) {  // wanted ones serve first: they stay anyway
    for (const device::ObservedGpu& gpu : devices.gpus) {
      for (const device::GpuInstance& instance : gpu.instances) {
        if (!instance.complete || devices.holders.contains(instance.uuid)) continue;
        if (devices.doubtful.contains(instance.uuid)) continue;  // kept already
        if (IsTarget(targets, gpu, instance) != wanted) continue;
        int64_t& open = outstanding[ResourceOf(gpu, instance)];
        if (open <= 0) continue;
        --open;
        if (!wanted) needed.insert(instance.uuid);
      }
    }
  }
  return needed;
}

std::map<std::string, std::set<std::string>> OnTheirWay(
    std::span<const std::shared_ptr<const cluster::Pod>> pods) {
  std::map<std::string, std::set<std::string>> on_their_way;
  for (const auto& pod : pods) {
    if (pod->Finished() || Admitted(*pod)) continue;
    for (const auto& [resource, amount] : cluster::PodRequests(*pod)) {
      if (CountOf(amount) > 0) on_their_way[resource].insert(pod->Key() + " " + pod->meta.uid);
    }
  }
  return on_their_way;
}

bool HeldByNobody(const NodeDevices& devices,
                  std::span<const std::shared_ptr<const cluster::Pod>> pods) {
  std::set<std::string> alive;
  for (const auto& pod : pods) {
    if (!pod->Finished()) alive.insert(pod->Key());
  }
  return std::any_of(devices.holders.begin(), devices.holders.end(),
                     [&](const auto& holder) { return !alive.contains(holder.second); });
}

std::vector<kubelet::OfferedDevice> OfferOf(const NodeDevices& devices,
                                            const std::set<std::string>& withdrawn) {
  std::vector<kubelet::OfferedDevice> offer;
  for (const device::ObservedGpu& gpu : devices.gpus) {
    for (const device::GpuInstance& instance : gpu.instances) {
      std::string resource = ResourceOf(gpu, instance);
      if (!instance.complete || resource.empty() || withdrawn.contains(instance.uuid)) continue;
      offer.push_back(
          {std::move(resource), instance.uuid, !devices.unhealthy.contains(instance.uuid)});
    }
  }
  return kubelet::SortedOffer(std::move(offer));
}

}  // namespace nos::controllers
