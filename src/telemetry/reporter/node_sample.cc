#include "telemetry/node_sample.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "device/mig_parts.h"
#include "device/mps_share.h"
#include "device/plain_gpus.h"
#include "gpu/product.h"
#include "telemetry/reporter/gpu_way.h"

namespace nos::telemetry {
namespace {

using HoldersByDevice = std::map<std::string, std::vector<Holder>>;

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
      std::vector<Holder>& of = holders[device];
      if (std::ranges::find(of, holder) == of.end()) of.push_back(holder);
    }
  }
  for (auto& [uuid, of] : holders) std::ranges::sort(of);
  return holders;
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
                       const gpu::Catalogue& catalogue, const Sharing& sharing, SampledGpu& gpu) {
  NOS_ASSIGN(std::vector<device::GpuInstance> instances, backend.ListInstances(gpu.info.index));
  SetWay(instances, sharing, gpu, catalogue);
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
  if (gpu.way == gpu::kTimeSlicingMode) PlaceTimeSlices(catalogue, sharing.time_slices, gpu);
  return Status::Ok();
}

}  // namespace

Result<NodeSample> TakeSample(const std::string& node, device::Backend& backend,
                              kubelet::PodResources& pod_resources, const gpu::Catalogue& catalogue,
                              const device::GpuHealth* health, const Sharing& sharing) {
  NOS_ASSIGN(std::vector<device::GpuInfo> infos, backend.ListGpus());
  NodeSample sample;
  sample.node = node;
  const auto assignments = pod_resources.List();
  sample.holders_status = assignments.status();
  const HoldersByDevice holders =
      assignments.ok() ? ByDevice(*assignments, infos) : HoldersByDevice();
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
      gpu.instances_status = SampleInstances(backend, holders, catalogue, sharing, gpu);
    }
    sample.gpus.push_back(std::move(gpu));
  }
  return sample;
}

const Holder* SoleHolder(const std::vector<Holder>& holders) {
  return holders.size() == 1 ? &holders.front() : nullptr;
}

}  // namespace nos::telemetry
