#include "telemetryreporter/node_sample.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "device/mig_parts.h"
#include "device/mps_share.h"
#include "device/plain_gpus.h"
#include "dra/device_name.h"
#include "dra/gpu_driver.h"
#include "gpu/product.h"
#include "telemetryreporter/gpu_sharing_mode.h"

namespace nos::telemetry {
namespace {

using HoldersByDevice = std::map<std::string, std::vector<Holder>>;

// A device that a container has through a ResourceClaim.
struct Claimed {
  int64_t gpu = 0;               // GpuInfo::index
  std::string profile;           // of a MIG instance, without punctuation; "": the whole GPU
  std::optional<uint8_t> start;  // of a MIG instance
  Holder holder;
};

// "1g.10gb+me" and "1g.10gb.me" are the same profile.
std::string Plain(std::string profile) {
  std::erase_if(profile, [](char c) { return c == '.' || c == '+' || c == '-'; });
  return profile;
}

void Add(const Holder& holder, std::vector<Holder>& to) {
  if (std::ranges::find(to, holder) == to.end()) to.push_back(holder);
}

// Replicas of a shared device have IDs "UUID::3" (NVIDIA/k8s-device-plugin, time-slicing), MPS
// shares "UUID::10::3", time slices of this agent "UUID::time::2". The last two are separate
// devices if the GPU is known to be shared that way. The same is true for parts of a MIG instance;
// the instance itself is listed if it is not known to be divided.
HoldersByDevice ByDevice(const std::vector<kubelet::DeviceAssignment>& assignments,
                         const std::vector<device::GpuInfo>& infos) {
  const auto is_shared = [&](const std::string& id) {
    const auto share = device::ParseMpsShareId(id);
    const auto slice = device::ParseTimeSliceId(id);
    return std::ranges::any_of(infos, [&](const device::GpuInfo& info) {
      return (share && info.uuid == share->gpu_uuid && info.share_gib > 0) ||
             (slice && info.uuid == slice->gpu_uuid && info.gives_whole);
    });
  };
  HoldersByDevice holders;
  for (const kubelet::DeviceAssignment& assignment : assignments) {
    const std::string& id = assignment.device_id;
    std::set<std::string> devices = {is_shared(id) ? id : id.substr(0, id.find("::"))};
    if (device::ParseMigPartId(id)) devices.insert(id);
    const Holder holder{assignment.ns, assignment.pod, assignment.container};
    for (const std::string& device : devices) {
      Add(holder, holders[device]);
    }
  }
  for (auto& [uuid, of] : holders) std::ranges::sort(of);
  return holders;
}

// NVIDIA's driver names a GPU by its minor number. If the host does not state it, index and
// minor number are taken for equal.
std::vector<Claimed> ReadClaims(const std::vector<kubelet::ClaimAssignment>& assignments,
                                const std::vector<device::GpuInfo>& infos,
                                const device::HostFolders& host) {
  std::map<int64_t, int64_t> by_minor;
  for (const device::GpuInfo& info : infos) {
    by_minor[device::MinorOf(info.uuid, host).value_or(info.index)] = info.index;
  }
  std::vector<Claimed> claimed;
  for (const kubelet::ClaimAssignment& assignment : assignments) {
    const auto name = dra::ReadDeviceName(assignment.driver, assignment.device);
    if (!name || (!name->profile.empty() && !name->start)) continue;
    int64_t gpu = name->gpu;
    if (assignment.driver == dra::kNvidiaDriver) {
      const auto found = by_minor.find(gpu);
      if (found == by_minor.end()) continue;
      gpu = found->second;
    }
    claimed.push_back({gpu,
                       Plain(name->profile),
                       name->start,
                       {assignment.ns, assignment.pod, assignment.container}});
  }
  return claimed;
}

void AddClaims(const std::vector<Claimed>& claimed, SampledGpu& gpu) {
  for (const Claimed& one : claimed) {
    if (one.gpu != gpu.info.index) continue;
    if (!one.start) Add(one.holder, gpu.holders);
    for (SampledInstance& sampled : gpu.instances) {
      const device::GpuInstance& instance = sampled.instance;
      const bool is = instance.start == one.start && Plain(instance.profile) == one.profile &&
                      instance.complete && instance.part_of.empty();
      if (is) Add(one.holder, sampled.holders);
    }
  }
  std::ranges::sort(gpu.holders);
  for (SampledInstance& sampled : gpu.instances) std::ranges::sort(sampled.holders);
}

std::vector<Holder> HoldersOf(const HoldersByDevice& holders, const std::string& uuid) {
  const auto found = uuid.empty() ? holders.end() : holders.find(uuid);
  return found == holders.end() ? std::vector<Holder>() : found->second;
}

std::string HealthOf(const device::GpuInfo& info,
                     const std::vector<device::HealthCondition>& conditions) {
  if (!info.problem.empty()) return info.problem;
  for (const device::HealthCondition& condition : conditions) {
    const bool whole = condition.gpu == info.index && !condition.instance;
    if (whole && condition.Disables()) return condition.message;
  }
  return "";
}

// An instance that covers the whole GPU is the GPU itself and is not listed.
Status SampleInstances(device::Backend& backend, const HoldersByDevice& holders,
                       const gpu::Catalogue& catalogue, const NodeSettings& settings,
                       SampledGpu& gpu) {
  NOS_ASSIGN(std::vector<device::GpuInstance> instances, backend.ListInstances(gpu.info.index));
  SetSharingMode(instances, settings, gpu, catalogue);
  for (device::GpuInstance& instance : instances) {
    if (gpu::SharingModeOfProfile(instance.profile) == gpu::kWholeMode) continue;
    SampledInstance sampled;
    if (instance.complete) {
      sampled.readings = backend.MeasureInstance(instance);
      sampled.holders = HoldersOf(holders, instance.uuid);
    }
    sampled.instance = std::move(instance);
    gpu.instances.push_back(std::move(sampled));
  }
  if (gpu.sharing_mode == gpu::kTimeSlicingMode)
    PlaceTimeSlices(catalogue, settings.time_slices, gpu);
  return Status::Ok();
}

}  // namespace

Result<NodeSample> TakeSample(const std::string& node, device::Backend& backend,
                              kubelet::PodResources& pod_resources, const gpu::Catalogue& catalogue,
                              const device::GpuHealth* health, const NodeSettings& settings) {
  NOS_ASSIGN(std::vector<device::GpuInfo> infos, backend.ListGpus());
  NodeSample sample;
  sample.node = node;
  const auto assignments = pod_resources.List();
  sample.holders_status = assignments.status();
  const HoldersByDevice holders =
      assignments.ok() ? ByDevice(*assignments, infos) : HoldersByDevice();
  const auto claims = pod_resources.ListClaims();
  if (sample.holders_status.ok()) sample.holders_status = claims.status();
  const std::vector<Claimed> claimed =
      claims.ok() ? ReadClaims(*claims, infos, settings.host) : std::vector<Claimed>();
  const auto conditions =
      health == nullptr ? std::vector<device::HealthCondition>() : health->Conditions();
  for (device::GpuInfo& info : infos) {
    SampledGpu gpu;
    gpu.health = HealthOf(info, conditions);
    gpu.readings = info.problem.empty() ? backend.MeasureGpu(info.index)
                                        : device::NothingMeasured(info.problem);
    gpu.holders = HoldersOf(holders, info.uuid);
    gpu.info = std::move(info);
    gpu.slots = gpu.info.share_gib;
    if (gpu.slots == 0 && gpu.info.mig_enabled) {
      const gpu::Model* model = catalogue.FindByProduct(gpu.info.product);
      if (model == nullptr) model = catalogue.FindByPciId(gpu.info.pci_device_id);
      gpu.slots = model == nullptr ? 0 : model->slots();
    }
    if (gpu.info.share_gib > 0 || gpu.info.mig_enabled || gpu.info.gives_whole) {
      gpu.instances_status = SampleInstances(backend, holders, catalogue, settings, gpu);
    }
    AddClaims(claimed, gpu);
    sample.gpus.push_back(std::move(gpu));
  }
  return sample;
}

const Holder* SoleHolder(const std::vector<Holder>& holders) {
  return holders.size() == 1 ? &holders.front() : nullptr;
}

}  // namespace nos::telemetry
