#include "sim/world/node/invariants.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cluster/annotations.h"
#include "cluster/resources.h"
#include "device/mig_parts.h"
#include "device/mps_share.h"
#include "gpu/occupancy.h"

namespace nos::sim {
namespace {

using Problems = std::vector<std::string>;

void CheckLayout(const Machine& machine, size_t gpu, Problems& problems) {
  const gpu::Model& model = machine.model(gpu);
  gpu::Occupancy on(model);
  bool fits = true;
  std::string names;
  for (const auto& instance : machine.Instances(gpu)) {
    names += fmt::format(" {}@{}", instance.profile, instance.start);
    const auto profile = model.FindProfile(instance.profile);
    fits = fits && profile && on.Add({*profile, instance.start});
  }
  if (!fits) {
    problems.push_back(fmt::format("{}: GPU {} holds what it cannot hold:{}",
                                   machine.kubelet().name(), gpu, names));
  }
}

// Resource by id of each existing device.
std::map<std::string, std::string> Devices(const Machine& machine) {
  std::map<std::string, std::string> devices;
  for (size_t gpu = 0; machine.gpus() != nullptr && gpu < machine.gpu_count(); ++gpu) {
    for (const auto& instance : machine.Instances(gpu)) {
      if (instance.complete) devices[instance.uuid] = SliceResource(instance.profile);
    }
  }
  return devices;
}

// The number of devices that the pod must hold. `running`: its init containers have ended; `whole`:
// whole GPUs are devices too.
int64_t AskedDevices(cluster::Pod pod, bool running, bool whole) {
  std::erase_if(pod.init_containers,
                [&](const auto& container) { return running && !container.restart_always; });
  int64_t asked = 0;
  for (const auto& [resource, amount] : cluster::PodRequests(pod)) {
    const bool device =
        cluster::IsSliceResource(resource) || (whole && resource == cluster::kWholeGpuResource);
    if (device) asked += amount.Value();
  }
  return asked;
}

void CheckPod(const NodeSpec& spec, const RunningPod& pod,
              const std::map<std::string, std::string>& devices,
              std::map<std::string, std::string>& holders, Problems& problems) {
  const std::string& node = spec.name;
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
  const bool running = pod.stage == RunningPod::Stage::kRunning;
  if (!running && pod.stage != RunningPod::Stage::kAdmitted) return;
  const bool by_claim = spec.dra && !pod.pod->extended_claim.empty();
  const int64_t asked = by_claim ? 0 : AskedDevices(*pod.pod, running, spec.hybrid);
  if (static_cast<int64_t>(pod.devices.size()) != asked) {
    problems.push_back(
        fmt::format("{}: {} runs with {} of {} devices", node, name, pod.devices.size(), asked));
  }
}

// Every instance that the driver has prepared for a claim exists.
void CheckClaims(const Machine& machine, const std::map<std::string, std::string>& devices,
                 Problems& problems) {
  if (machine.driver() == nullptr) return;
  for (const auto& [uuid, claim] : machine.driver()->Held()) {
    if (devices.contains(uuid) || !uuid.starts_with("MIG-")) continue;
    problems.push_back(fmt::format("{}: claim {} has {}, which is not there",
                                   machine.kubelet().name(), claim, uuid));
  }
}

void CheckRefusal(const Machine& machine, const RunningPod& pod, Time now, Problems& problems) {
  if (pod.refused != now || pod.pod == nullptr || machine.kubelet().spec().forged) return;
  const auto disturbed = machine.LastDisturbance();
  if (disturbed && now - *disturbed <= kFaultsLinger) return;
  problems.push_back(fmt::format("{}: {} was sent here by a scheduler and refused: {}",
                                 machine.kubelet().name(), pod.pod->Key(), pod.status.message));
}

// The number of instances of the resource that no pod holds.
int64_t CountFree(const Machine& machine, const std::string& resource) {
  int64_t free = 0;
  for (const auto& [uuid, of] : Devices(machine)) {
    free += of == resource && machine.kubelet().Holder(uuid) == nullptr ? 1 : 0;
  }
  return free;
}

// The number of devices of the resource that the kubelet may allocate; with `held`, including those
// already allocated.
int64_t CountOffered(const Machine& machine, const std::string& resource, bool held) {
  const auto& offered = machine.kubelet().devices().offered();
  return std::count_if(offered.begin(), offered.end(), [&](const auto& device) {
    return device.resource == resource &&
           (held || machine.kubelet().Holder(device.device_id) == nullptr);
  });
}

// The number of devices of the resource requested by bound pods that the kubelet has not admitted
// yet.
int64_t CountAwaited(const Machine& machine, const std::vector<cluster::Pod>& pods,
                     const std::string& resource) {
  int64_t awaited = 0;
  for (const cluster::Pod& pod : pods) {
    const bool settled = machine.kubelet().pods().contains(pod.meta.uid);
    if (settled || pod.Finished() || pod.meta.deleted) continue;
    const cluster::ResourceList requests = cluster::PodRequests(pod);
    if (const auto found = requests.find(resource); found != requests.end()) {
      awaited += found->second.Value();
    }
  }
  return awaited;
}

// True for a device on a lost GPU that the agent may never have read.
bool IsUnknown(const Machine& machine, const kubelet::OfferedDevice& device) {
  return std::ranges::any_of(machine.lost_gpus(), [&](const auto& lost) {
    const auto instances = machine.Instances(static_cast<size_t>(lost.first));
    return std::ranges::count(instances, device.device_id, &device::GpuInstance::uuid) > 0 &&
           machine.agent()->started() + kFaultsLinger > lost.second;
  });
}

// True for a share that pods cannot use now. A pod that waits for it must be refused.
bool IsOutOfUse(const Machine& machine, const kubelet::OfferedDevice& device) {
  const auto share = device::ParseMpsShareId(device.device_id);
  for (size_t gpu = 0; share && gpu < machine.gpu_count(); ++gpu) {
    const int index = static_cast<int>(gpu);
    if (machine.gpus()->Info(index).uuid == share->gpu_uuid) return !machine.ServesShares(index);
  }
  return false;
}

// True for a device that existed only in memory and disappeared with the agent that created it.
bool IsForgotten(const Machine& machine, const kubelet::OfferedDevice& device) {
  const bool in_memory =
      !device.device_id.starts_with("MIG-") || device::ParseMigPartId(device.device_id).has_value();
  return in_memory && !Devices(machine).contains(device.device_id);
}

}  // namespace

Result<ApiTruth> TruthOf(kube::Client& client, const std::string& node) {
  ApiTruth truth;
  NOS_ASSIGN(const Json object, client.Get(kube::kNodes, "", node));
  NOS_ASSIGN(truth.node, cluster::DecodeNode(object));
  kube::ListOptions options;
  options.field_selector = "spec.nodeName=" + node;
  NOS_ASSIGN(const kube::ObjectList list, client.List(kube::kPods, "", options));
  for (const Json& item : list.items) {
    NOS_ASSIGN(cluster::Pod pod, cluster::DecodePod(item));
    truth.pods.push_back(std::move(pod));
  }
  return truth;
}

Problems CheckWithdrawal(const Machine& machine, const kubelet::OfferedDevice& device,
                         const ApiTruth& truth) {
  Problems problems;
  if (machine.kubelet().Holder(device.device_id) != nullptr || IsUnknown(machine, device) ||
      IsForgotten(machine, device) || IsOutOfUse(machine, device)) {
    return problems;
  }
  const auto add = [&](const std::string& what) {
    problems.push_back(fmt::format("{}: {} {} was withdrawn {}", machine.kubelet().name(),
                                   device.resource, device.device_id, what));
  };
  const auto counted = truth.node.allocatable.find(device.resource);
  const int64_t shown = counted == truth.node.allocatable.end() ? 0 : counted->second.Value();
  if (shown > CountOffered(machine, device.resource, true)) {
    add("while the node object counts it");
  }
  const int64_t left = CountOffered(machine, device.resource, false);
  const int64_t awaited = CountAwaited(machine, truth.pods, device.resource);
  if (awaited > left) {
    add(fmt::format("while pods bound here wait for {} and only {} others are free", awaited,
                    left));
  }
  return problems;
}

namespace {

// Parts of a divided instance are used instead of the instance; the destruction of each part is
// checked separately.
bool IsDivided(const Machine& machine, const device::GpuInstance& instance, Problems& problems) {
  bool divided = false;
  for (const auto& part : machine.Instances(static_cast<size_t>(instance.gpu))) {
    if (part.part_of.empty() || part.part_of != instance.uuid) continue;
    divided = true;
    if (machine.kubelet().Holder(part.uuid) == nullptr) continue;
    problems.push_back(fmt::format("{}: {}@{} on GPU {} was destroyed while {} is held",
                                   machine.kubelet().name(), instance.profile, instance.start,
                                   instance.gpu, part.uuid));
  }
  return divided;
}

}  // namespace

Problems CheckDestruction(const Machine& machine, const device::GpuInstance& instance,
                          const ApiTruth& truth) {
  Problems problems;
  const auto add = [&](const std::string& what) {
    problems.push_back(fmt::format("{}: {}@{} on GPU {} was destroyed {}", machine.kubelet().name(),
                                   instance.profile, instance.start, instance.gpu, what));
  };
  if (!instance.complete) return problems;  // an incomplete instance is unusable
  if (IsDivided(machine, instance, problems)) return problems;
  if (const auto* holder = machine.kubelet().Holder(instance.uuid)) {
    const std::string pod = holder->pod == nullptr ? "(deleted)" : holder->pod->Key();
    add("while pod " + pod + " holds it");
    return problems;
  }
  const std::string resource = SliceResource(instance.profile);
  if (machine.kubelet().devices().offered().contains({resource, instance.uuid})) {
    add("while the kubelet may hand it out");
  }
  const int64_t free = CountFree(machine, resource) - 1;
  const int64_t awaited = CountAwaited(machine, truth.pods, resource);
  if (awaited > free) {
    add(fmt::format("while pods bound here wait for {} of {} and only {} others are free", awaited,
                    resource, free));
  }
  return problems;
}

Problems CheckMachine(const Machine& machine, Time now) {
  Problems problems;
  if (machine.gpus() == nullptr) return problems;
  for (size_t gpu = 0; gpu < machine.gpu_count(); ++gpu) CheckLayout(machine, gpu, problems);
  const std::map<std::string, std::string> devices = Devices(machine);
  std::map<std::string, std::string> holders;
  CheckClaims(machine, devices, problems);
  for (const auto& [uid, pod] : machine.kubelet().pods()) {
    CheckPod(machine.kubelet().spec(), pod, devices, holders, problems);
    CheckRefusal(machine, pod, now, problems);
  }
  return problems;
}

Problems CheckRoom(const cluster::Node& node,
                   const std::vector<std::shared_ptr<const cluster::Pod>>& pods) {
  cluster::ResourceVector asked;
  for (const auto& pod : pods) {
    if (pod->node_name == node.meta.name && !pod->Finished()) asked.Add(cluster::RequestsOf(*pod));
  }
  const auto has = cluster::ResourceVector::From(node.allocatable);
  const bool whole = cluster::RequestedSharingMode(node) == "hybrid";
  Problems problems;
  for (const auto& [id, amount] : asked.entries()) {
    if (cluster::IsSliceResource(id) || amount <= has.Get(id)) continue;
    if (whole && cluster::ResourceName(id) == cluster::kWholeGpuResource) continue;
    problems.push_back(fmt::format("{}: its pods ask for {} of {}, and it has {}", node.meta.name,
                                   amount, cluster::ResourceName(id), has.Get(id)));
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
