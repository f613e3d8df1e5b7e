#include "agent/node/devices.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "agent/node/divided_instances.h"
#include "device/mig_parts.h"
#include "device/mps_gpus.h"
#include "device/plain_gpus.h"
#include "gpu/modes.h"
#include "gpu/shares.h"

namespace nos::agent {
namespace {

const gpu::Model* ModelOf(const device::GpuInfo& info, const gpu::Catalogue& catalogue) {
  const gpu::Model* model = catalogue.FindByProduct(info.product);
  return model != nullptr ? model : catalogue.FindByPciId(info.pci_device_id);
}

bool IsPlain(const device::GpuInfo& info) { return !info.mig_enabled && info.share_gib == 0; }

// True if a GPU of a hybrid node cannot change its MIG mode now.
bool KeepsMig(const gpu::Model& board, const device::GpuInfo& info,
              const SharingSettings& settings) {
  if (!NeedsReset(board)) return settings.no_mig.contains(info.index);
  if (settings.resets == ResetRule::kNever || settings.not_reset.contains(info.index)) return true;
  return settings.resets == ResetRule::kNode && WaitsForReset(info);
}

// The model of a GPU of a hybrid node for all modes other than MPS shares.
const gpu::Model* UnsharedModelOf(const device::GpuInfo& info, const gpu::Catalogue& catalogue,
                                  const SharingSettings& settings) {
  const gpu::Model* board = info.mig_capable ? ModelOf(info, catalogue) : nullptr;
  const bool keeps = board == nullptr || KeepsMig(*board, info, settings);
  if (keeps && board != nullptr && info.mig_enabled && NeedsReset(*board)) {
    const gpu::Model* divided =
        catalogue.FindSharingModes(gpu::NameOf({.mig = board, .parts = settings.parts}));
    return divided != nullptr ? divided : board;
  }
  gpu::SharingModes modes{
      .mig = keeps ? nullptr : board,
      .memory_gib = static_cast<int>(std::max<int64_t>(1, info.memory_mib / 1024)),
      .whole = true,
      .parts = settings.parts};
  // Time slices keep their slots when the GPU can be in MIG mode again.
  if (keeps && board != nullptr && board->slots() < gpu::kPlainSlots) modes.slots = board->slots();
  modes.time_slices = std::min(settings.time_slices, gpu::MostTimeSlices(modes));
  const gpu::Model* model = catalogue.FindSharingModes(gpu::NameOf(modes));
  if (model != nullptr || modes.parts.empty()) return model;
  modes.parts.clear();  // no table can hold all these layouts
  return catalogue.FindSharingModes(gpu::NameOf(modes));
}

// Configured parts that the model does not include.
std::string LackedParts(const gpu::Model& model, const SharingSettings& settings) {
  std::string lacked;
  for (const gpu::InstancePart& part : settings.parts) {
    const std::string name = gpu::PartName(part);
    const bool lacks = gpu::CanHaveParts(model, part) && !model.FindProfile(name);
    if (lacks) lacked += (lacked.empty() ? "" : ", ") + name;
  }
  return lacked;
}

void ObserveHybrid(const device::GpuInfo& info, const gpu::Catalogue& catalogue,
                   const SharingSettings& settings, device::ObservedGpu& gpu) {
  const gpu::Model* unshared = UnsharedModelOf(info, catalogue, settings);
  const gpu::Model* shares = settings.shares && info.could_share_gib > 0
                                 ? &gpu::SharesOf(info.could_share_gib, info.max_shares)
                                 : nullptr;
  const gpu::Model* mig = info.mig_capable ? ModelOf(info, catalogue) : nullptr;
  if (settings.takes_back && mig != nullptr && NeedsReset(*mig)) {
    gpu.mig_after_reset = info.mig_pending;
  }
  if (info.share_gib > 0) {
    gpu.mode = device::GpuMode::kShares;
    gpu.model = &gpu::SharesOf(info.share_gib, info.max_shares);
    gpu.alternative = unshared;
    return;
  }
  gpu.mode = info.mig_enabled ? device::GpuMode::kMig : device::GpuMode::kPlain;
  gpu.model = unshared;
  // A GPU with only MIG layouts cannot leave that mode.
  if (unshared != nullptr && unshared->FindProfile(gpu::kWholeGpu)) gpu.alternative = shares;
}

void ObserveGpu(const device::GpuInfo& info, device::Backend& backend,
                const gpu::Catalogue& catalogue, const SharingSettings& settings,
                NodeDevices& devices) {
  const auto unreadable = [&](const std::string& why) {
    devices.problems.push_back(fmt::format("Failed to read GPU {}: {}", info.index, why));
    devices.unreadable.push_back({info.index, nullptr, true, {}, info.uuid});
  };
  if (!settings.hybrid && IsPlain(info)) devices.undivided.insert(info.uuid);
  if (!info.problem.empty()) return unreadable(info.problem);
  const bool shared = info.share_gib > 0;
  if (!info.mig_capable && !shared && !settings.hybrid) return;
  device::ObservedGpu gpu{info.index, nullptr, info.mig_enabled || shared, {}, info.uuid};
  if (settings.hybrid) {
    ObserveHybrid(info, catalogue, settings, gpu);
    gpu.mig_enabled = true;
  } else {
    gpu.model = shared ? &gpu::SharesOf(info.share_gib, info.max_shares) : ModelOf(info, catalogue);
  }
  if (gpu.model == nullptr) {
    devices.problems.push_back(
        fmt::format("Ignoring GPU {}: model '{}' is not in the catalogue of MIG GPUs", info.index,
                    info.product));
    return;
  }
  if (const std::string lacked = LackedParts(*gpu.model, settings);
      settings.hybrid && !lacked.empty()) {
    devices.problems.push_back(fmt::format(
        "Offering no parts on GPU {}: with {} there would be too many layouts; name fewer parts",
        info.index, lacked));
  }
  if (gpu.mig_enabled) {
    Result<std::vector<device::GpuInstance>> instances = backend.ListInstances(info.index);
    if (!instances.ok()) return unreadable(instances.status().message());
    gpu.instances = std::move(instances).value();
    if (shared) gpu.model = &device::SharesModel(info, gpu.instances);
  }
  if (settings.hybrid && settings.shows_unused && gpu.instances.empty()) {
    devices.unused.insert(gpu.uuid);
  }
  devices.gpus.push_back(std::move(gpu));
}

bool IsTarget(std::span<const device::Target> targets, const device::ObservedGpu& gpu,
              const device::GpuInstance& instance) {
  const auto target = std::find_if(targets.begin(), targets.end(), [&](const auto& candidate) {
    return candidate.gpu == gpu.index;
  });
  if (target == targets.end()) return true;  // nothing is destroyed there
  if (target->model != nullptr && target->model != gpu.model) return false;
  const auto profile = gpu.model->FindProfile(instance.profile);
  if (!profile) return true;
  const gpu::Placement placement{*profile, instance.start};
  return std::find(target->placements.begin(), target->placements.end(), placement) !=
         target->placements.end();
}

// By resource: slices that bound pods request and the kubelet has not handed out yet.
std::map<std::string, int64_t> Outstanding(
    const NodeDevices& devices, std::span<const std::shared_ptr<const cluster::Pod>> pods) {
  std::map<std::string, int64_t> outstanding;
  for (const auto& pod : pods) {
    if (pod->Finished()) continue;
    for (const auto& [resource, amount] : cluster::PodRequests(*pod)) {
      const int64_t missing = CountOf(amount) - devices.Listed(pod->Key(), resource);
      if (missing > 0) outstanding[resource] += missing;
    }
  }
  return outstanding;
}

}  // namespace

int64_t CountOf(const Quantity& amount) {
  constexpr int64_t kMaxAmount = 1'000'000;
  return std::clamp<int64_t>(amount.Value(), 0, kMaxAmount);
}

bool IsAdmitted(const cluster::Pod& pod) { return pod.FindCondition("Ready") != nullptr; }

std::vector<const device::ObservedGpu*> AllGpus(const NodeDevices& devices) {
  std::vector<const device::ObservedGpu*> all;
  for (const auto* gpus : {&devices.gpus, &devices.unreadable}) {
    for (const device::ObservedGpu& gpu : *gpus) all.push_back(&gpu);
  }
  return all;
}

std::map<std::string, std::string> ResourcesOf(const NodeDevices& devices) {
  std::map<std::string, std::string> resources;
  for (const std::string& uuid : devices.undivided) resources[uuid] = kWholeGpu;
  for (const device::ObservedGpu* gpu : AllGpus(devices)) {
    for (const device::GpuInstance& instance : gpu->instances) {
      if (instance.complete) resources[instance.uuid] = ResourceOf(*gpu, instance);
    }
  }
  return resources;
}

std::set<std::string> NodeDevices::Held() const {
  std::set<std::string> held;
  for (const auto& [uuid, pod] : holders) held.insert(uuid);
  held.insert(doubtful.begin(), doubtful.end());
  return held;
}

Result<NodeDevices> Observe(device::Backend& backend, kubelet::PodResources& pod_resources,
                            const gpu::Catalogue& catalogue, const SharingSettings& settings,
                            std::span<const std::string> also) {
  NodeDevices devices;
  NOS_ASSIGN(devices.infos, backend.ListGpus());
  // Devices that exist only in memory are known after the kubelet has listed what pods hold.
  const auto observe = [&](bool in_memory) {
    for (const device::GpuInfo& info : devices.infos) {
      const bool divided = info.mig_enabled && !settings.parts.empty();
      const bool here = info.share_gib > 0 || (settings.hybrid && (IsPlain(info) || divided));
      if (here == in_memory) ObserveGpu(info, backend, catalogue, settings, devices);
    }
  };
  observe(/*in_memory=*/false);
  NOS_ASSIGN(const std::vector<kubelet::DeviceAssignment> assignments, pod_resources.List());
  std::vector<std::string> held;
  for (const kubelet::DeviceAssignment& assignment : assignments) {
    const std::string pod = assignment.ns + "/" + assignment.pod;
    devices.holders[assignment.device_id] = pod;
    ++devices.listed[{pod, assignment.resource}];
    held.push_back(assignment.device_id);
    // On other nodes a leftover time slice counts as holding its GPU.
    const auto slice = device::ParseTimeSliceId(assignment.device_id);
    if (slice && !settings.hybrid) devices.holders[slice->gpu_uuid] = pod;
  }
  for (const std::string& problem : backend.Adopt(held)) {
    devices.problems.push_back("Failed to restore devices of Pods: " + problem);
  }
  (void)backend.Adopt(also);  // some may be out of date
  observe(/*in_memory=*/true);
  HoldInstancesOfParts(devices);
  std::ranges::sort(devices.gpus, {}, &device::ObservedGpu::index);
  return devices;
}

int64_t NodeDevices::Listed(const std::string& pod, const std::string& resource) const {
  const auto found = listed.find({pod, resource});
  return found == listed.end() ? 0 : found->second;
}

void Mark(NodeDevices& devices, const std::vector<device::HealthCondition>& conditions) {
  for (const device::HealthCondition& condition : conditions) {
    if (!condition.Disables()) continue;
    if (!condition.instance) devices.broken.try_emplace(condition.gpu, condition.message);
    for (const device::ObservedGpu* gpu : AllGpus(devices)) {
      if (gpu->index != condition.gpu) continue;
      for (const device::GpuInstance& instance : gpu->instances) {
        const bool meant =
            !condition.instance || *condition.instance == device::DriverIdOf(instance.id);
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
    gpu.alternative = observed.alternative;
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
  for (const bool wanted : {true, false}) {  // instances of the targets first: they stay anyway
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

std::map<std::string, std::set<std::string>> PodsPendingAdmission(
    std::span<const std::shared_ptr<const cluster::Pod>> pods) {
  std::map<std::string, std::set<std::string>> pending_admission;
  for (const auto& pod : pods) {
    if (pod->Finished() || IsAdmitted(*pod)) continue;
    for (const auto& [resource, amount] : cluster::PodRequests(*pod)) {
      if (CountOf(amount) > 0) pending_admission[resource].insert(pod->Key() + " " + pod->meta.uid);
    }
  }
  return pending_admission;
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

namespace {

bool IsInstance(const NodeDevices& devices, const std::string& uuid) {
  return std::ranges::any_of(AllGpus(devices), [&](const device::ObservedGpu* gpu) {
    return std::ranges::count(gpu->instances, uuid, &device::GpuInstance::uuid) > 0;
  });
}

}  // namespace

std::vector<kubelet::OfferedDevice> OfferOf(const NodeDevices& devices,
                                            const std::set<std::string>& withdrawn) {
  std::vector<kubelet::OfferedDevice> offer;
  for (const auto& [uuid, resource] : ResourcesOf(devices)) {
    if (resource.empty() || withdrawn.contains(uuid)) continue;
    if (resource == kWholeGpu && !IsInstance(devices, uuid)) continue;  // another plugin offers it
    offer.push_back({resource, uuid, !devices.unhealthy.contains(uuid)});
  }
  for (const std::string& uuid : devices.unused) offer.push_back({kWholeGpu, uuid, false});
  return kubelet::SortedOffer(std::move(offer));
}

}  // namespace nos::agent
