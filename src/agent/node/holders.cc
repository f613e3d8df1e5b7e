#include "agent/node/holders.h"

#include <algorithm>
#include <utility>

#include "agent/node/divided_instances.h"
#include "cluster/annotations.h"
#include "cluster/pod_end.h"
#include "device/mig_parts.h"
#include "device/mps_share.h"
#include "device/plain_gpus.h"
#include "gpu/modes.h"
#include "gpu/shares.h"

namespace nos::agent {
namespace {

// Kubelets give containers no less time to end (kubernetes 1.34.2, pkg/kubelet/kuberuntime,
// minimumGracePeriodInSeconds).
constexpr Duration kMinGracePeriod = std::chrono::seconds(2);
// Processes of pods that the API server does not have count for this time as those of a holder
// whose cgroup is not known.
constexpr Duration kForeignCgroupTimeout = std::chrono::minutes(10);

using Pods = std::span<const std::shared_ptr<const cluster::Pod>>;
using Alive = std::map<std::string, const cluster::Pod*>;  // by "ns/name"

bool RunsInitContainers(const cluster::Pod& pod) {
  const cluster::Condition* initialized = pod.FindCondition("Initialized");
  return initialized != nullptr && initialized->status != "True";
}

// Devices of a pod that kubelets list: those of containers that keep running.
std::map<std::string, int64_t> ToBeListed(const cluster::Pod& pod) {
  std::map<std::string, int64_t> devices;
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

// Resources of which an admitted pod may hold more than the kubelet lists. While init containers
// run that request more, the listed devices never suffice: they may belong to an earlier pod of the
// same name.
std::set<std::string> Unlisted(const NodeDevices& devices, const Alive& pods) {
  std::set<std::string> unlisted;
  for (const auto& [key, pod] : pods) {
    if (!IsAdmitted(*pod)) continue;
    std::map<std::string, int64_t> expected = ToBeListed(*pod);
    for (const auto& [resource, amount] : cluster::PodRequests(*pod)) {
      const bool hidden = RunsInitContainers(*pod) && expected[resource] < CountOf(amount);
      if (hidden || devices.Listed(key, resource) < expected[resource]) unlisted.insert(resource);
    }
  }
  return unlisted;
}

// By resource: the number of shares, parts of instances, and on hybrid nodes whole GPUs and time
// slices, that pods hold beyond the listed devices that no listed pod holds.
std::map<std::string, int64_t> UnseenShares(const NodeDevices& devices, const Alive& pods,
                                            const std::set<std::string>& unlisted,
                                            const std::map<std::string, std::string>& resources) {
  std::map<std::string, int64_t> unseen;
  const bool hybrid = std::ranges::any_of(
      AllGpus(devices), [](const device::ObservedGpu* gpu) { return gpu->mode.has_value(); });
  for (const std::string& resource : unlisted) {
    const bool whole = resource == gpu::kWholeGpu || resource == gpu::kTimeSlice;
    const bool share = gpu::IsShareResource(resource) || gpu::IsPartResource(resource);
    if (share || (hybrid && whole)) unseen[resource] = 0;
  }
  for (auto& [resource, count] : unseen) {
    for (const auto& [key, pod] : pods) {
      if (!IsAdmitted(*pod)) continue;
      std::map<std::string, int64_t> held = ToBeListed(*pod);
      const cluster::ResourceList asked = cluster::PodRequests(*pod);
      const auto all = asked.find(resource);
      if (RunsInitContainers(*pod) && all != asked.end()) held[resource] = CountOf(all->second);
      count += std::max<int64_t>(0, held[resource] - devices.Listed(key, resource));
    }
    for (const auto& [uuid, of] : resources) {
      if (of == resource && !devices.holders.contains(uuid)) --count;
    }
  }
  std::erase_if(unseen, [](const auto& entry) { return entry.second <= 0; });
  return unseen;
}

const cluster::Pod* Find(const Alive& pods, const std::string& key) {
  const auto pod = pods.find(key);
  return pod == pods.end() ? nullptr : pod->second;
}

std::string CgroupUid(const cluster::Pod& pod) {
  const auto hash = pod.meta.annotations.find("kubernetes.io/config.mirror");  // of a static pod
  return hash == pod.meta.annotations.end() ? pod.meta.uid : hash->second;
}

// The pods that hold the listed devices. The kubelet lists only names, and successive pods may have
// the same name. Devices listed before the pod is admitted may belong to an earlier pod of that
// name.
Holders Attribute(const NodeDevices& devices, const Holders& seen, const Alive& pods) {
  Holders holders;
  for (const auto& [uuid, key] : devices.holders) {
    Holder& holder = holders[uuid] = {key, "", {}};
    if (const cluster::Pod* pod = Find(pods, key)) {
      if (IsAdmitted(*pod)) {
        holder.uid = pod->meta.uid;
        holder.cgroup = CgroupUid(*pod);
      }
      holder.grace = cluster::GracePeriodOf(*pod);
    } else if (const auto before = seen.find(uuid);
               before != seen.end() && before->second.pod == key) {
      holder = before->second;  // the kubelet lists the device until the pod has ended
      holder.missing = {};
      holder.assumed = false;
    }
  }
  return holders;
}

// Devices that a pod was seen to hold and that the kubelet does not list now. A pod whose devices
// are all listed is skipped: it was probably confused with an earlier pod of its name.
Holders RememberedOfPods(const NodeDevices& devices, const Holders& seen, const Alive& pods,
                         const std::map<std::string, std::string>& resources) {
  Holders remembered;
  for (const auto& [uuid, holder] : seen) {
    const cluster::Pod* pod = Find(pods, holder.pod);
    const bool same = pod != nullptr && !holder.uid.empty() && holder.uid == pod->meta.uid;
    if (!same || holder.assumed || !resources.contains(uuid) || devices.holders.contains(uuid))
      continue;
    const std::string& resource = resources.at(uuid);
    const bool lacks = devices.Listed(holder.pod, resource) < ToBeListed(*pod)[resource];
    if (lacks) remembered[uuid] = holder;
  }
  return remembered;
}

// Devices that have no known holder, and that running init containers may have.
Holders HoldersAssumed(const Holders& known, const Alive& pods,
                       const std::map<std::string, std::string>& resources) {
  Holders assumed;
  for (const auto& [key, pod] : pods) {
    if (!IsAdmitted(*pod) || !RunsInitContainers(*pod)) continue;
    std::map<std::string, int64_t> listed = ToBeListed(*pod);
    for (const auto& [resource, amount] : cluster::PodRequests(*pod)) {
      if (listed[resource] >= CountOf(amount)) continue;
      for (const auto& [uuid, of] : resources) {
        if (of != resource || known.contains(uuid)) continue;
        Holder& holder = assumed[uuid] = {key, pod->meta.uid};
        holder.grace = cluster::GracePeriodOf(*pod);
        holder.cgroup = CgroupUid(*pod);
        holder.assumed = true;
      }
    }
  }
  return assumed;
}

enum class State {
  kRuns,     // its object exists
  kEnded,    // its kubelet has reported the end
  kDeleted,  // before it had ended, as far as is known
};

State StateOf(const Holder& holder, Pods pods, const DepartedPods& departed) {
  if (holder.reported) return State::kDeleted;
  const auto is_holder = [&](const std::string& key, const std::string& uid) {
    return key == holder.pod && (holder.uid.empty() || holder.uid == uid);
  };
  for (const auto& pod : pods) {
    if (!is_holder(pod->Key(), pod->meta.uid)) continue;
    if (!pod->Finished()) return State::kRuns;
    return cluster::HasEnded(*pod) ? State::kEnded : State::kDeleted;
  }
  const bool ended = std::ranges::any_of(
      departed.ended, [&](const auto& one) { return is_holder(one.second, one.first); });
  return ended ? State::kEnded : State::kDeleted;
}

enum class Cgroup { kUnknown, kGone, kEmpty, kInUse };

// The cgroup of the pod; if it is not known which, of all pods that the API server does not have.
Cgroup CgroupOf(const Holder& holder, Pods pods, const DepartedPods& departed) {
  if (!departed.cgroups) return Cgroup::kUnknown;
  std::set<std::string> others;
  if (holder.cgroup.empty()) {
    for (const auto& pod : pods) others.insert(CgroupUid(*pod));
  }
  Cgroup state = Cgroup::kGone;
  for (const auto& [uid, in_use] : *departed.cgroups) {
    if (holder.cgroup.empty() ? others.contains(uid) : holder.cgroup != uid) continue;
    if (in_use) return Cgroup::kInUse;
    state = Cgroup::kEmpty;
  }
  return state;
}

// True if a container of the pod, which was deleted, may still run.
bool MayRun(const Holder& holder, Cgroup cgroup, Time now) {
  if (cgroup == Cgroup::kGone) return now < holder.missing + kMinGracePeriod;  // or not made yet
  // It may be the cgroup of any other pod.
  const bool any = holder.cgroup.empty() && now >= holder.missing + kForeignCgroupTimeout;
  if (cgroup == Cgroup::kInUse && !any) return true;
  return now < holder.missing + std::max(holder.grace, kMinGracePeriod) + cluster::kKillTime;
}

// Devices of pods that do not run according to the API server, and whose containers still may. For
// the first moments of MayRun that includes every pod that a kubelet, which has just started, does
// not list yet.
Holders RememberedOfDeparted(const NodeDevices& devices, const Holders& seen, Pods pods,
                             const std::map<std::string, std::string>& resources,
                             const DepartedPods& departed, Time now) {
  Holders remembered;
  for (const auto& [uuid, before] : seen) {
    if (devices.holders.contains(uuid)) continue;
    // Devices in memory may appear in the next observation (Backend::Adopt).
    if (!resources.contains(uuid) && !before.reported) continue;
    const State state = StateOf(before, pods, departed);
    if (state == State::kRuns) continue;
    Holder holder = before;
    if (holder.missing == Time{}) holder.missing = now;
    const Cgroup cgroup = CgroupOf(holder, pods, departed);
    const bool holds = state == State::kEnded ? !holder.cgroup.empty() && cgroup == Cgroup::kInUse
                                              : MayRun(holder, cgroup, now);
    if (holds) remembered[uuid] = std::move(holder);
  }
  return remembered;
}

// The device of an instance in the node's status; "" if there is none. Devices in memory need not
// exist: a new agent lists MIG instances before it knows their parts.
std::string DeviceIdOf(const cluster::Gpu& gpu, const gpu::Placement& placement,
                       const NodeDevices& devices) {
  const gpu::Profile& profile = gpu.model->profile(placement.profile);
  const auto info = std::ranges::find(devices.infos, gpu.index, &device::GpuInfo::index);
  if (info == devices.infos.end()) return "";
  if (const auto gib = device::ParseMpsProfile(profile.name)) {
    return device::MpsShareId({info->uuid, *gib, placement.start});
  }
  if (profile.resource_name == gpu::kTimeSlice) {
    return device::TimeSliceId({info->uuid, placement.start});
  }
  if (profile.resource_name == gpu::kWholeGpu) return info->uuid;
  const auto part = gpu::ParsePartName(profile.name);
  const auto observed = std::ranges::find(devices.gpus, gpu.index, &device::ObservedGpu::index);
  if (observed == devices.gpus.end()) return "";
  for (const device::GpuInstance& instance : observed->instances) {
    const int number = placement.start - instance.start;
    if (!instance.complete || instance.profile != (part ? part->profile : profile.name)) continue;
    if (!part && number == 0) return instance.uuid;
    if (part && number >= 0 && number < part->count) {
      return device::MigPartId({instance.uuid, part->count, number});
    }
  }
  return "";
}

}  // namespace

Holders RestoreHolders(NodeDevices& devices, const Holders& seen, Pods pods,
                       const DepartedPods& departed, Time now) {
  Alive alive;
  for (const auto& pod : pods) {
    if (!pod->Finished()) alive[pod->Key()] = pod.get();
  }
  const std::map<std::string, std::string> resources = ResourcesOf(devices);
  Holders holders = Attribute(devices, seen, alive);
  for (const auto& [uuid, holder] : holders) {
    const cluster::Pod* pod = Find(alive, holder.pod);
    const bool theirs = pod != nullptr && holder.uid != pod->meta.uid;
    if (theirs && resources.contains(uuid)) --devices.listed[{holder.pod, resources.at(uuid)}];
  }
  const Holders remembered = RememberedOfPods(devices, seen, alive, resources);
  for (const auto& [uuid, holder] : remembered) {
    devices.holders[uuid] = holder.pod;
    ++devices.listed[{holder.pod, resources.at(uuid)}];
    holders[uuid] = holder;
  }
  const std::set<std::string> unlisted = Unlisted(devices, alive);
  for (const auto& [uuid, holder] :
       RememberedOfDeparted(devices, seen, pods, resources, departed, now)) {
    holders[uuid] = holder;
    if (!resources.contains(uuid)) continue;
    if (holder.assumed) {
      devices.doubtful.insert(uuid);
      devices.departed.insert(uuid);
      continue;
    }
    // The name may be that of another pod by now.
    devices.holders[uuid] = Find(alive, holder.pod) == nullptr ? holder.pod : "";
    // The report of a former agent may be out of date: the pod has ended, or it runs and the
    // kubelet does not list its devices yet.
    const bool doubted = holder.reported && (unlisted.contains(resources.at(uuid)) ||
                                             CgroupOf(holder, pods, departed) == Cgroup::kGone);
    if (!doubted) devices.departed.insert(uuid);
  }
  holders.merge(HoldersAssumed(holders, alive, resources));
  for (const auto& [uuid, holder] : holders) {
    if (holder.assumed) continue;
    const cluster::Pod* pod = Find(alive, holder.pod);
    // The cgroup of a pod that has not been admitted, as far as is known, may be a guess.
    const std::string guess = pod == nullptr ? "" : CgroupUid(*pod);
    devices.users[uuid] = holder.cgroup.empty() ? guess : holder.cgroup;
  }
  for (const auto& [uuid, resource] : resources) {
    if (unlisted.contains(resource) && !devices.holders.contains(uuid))
      devices.doubtful.insert(uuid);
  }
  const bool slices = unlisted.contains(std::string(gpu::kTimeSlice));
  // A leftover time slice may hold the whole GPU.
  for (const std::string& uuid : devices.undivided) {
    if (slices && !devices.holders.contains(uuid)) devices.doubtful.insert(uuid);
  }
  const std::map<std::string, int64_t> unseen = UnseenShares(devices, alive, unlisted, resources);
  devices.unseen_shares = !unseen.empty();
  DoubtInstancesOfParts(unseen, devices);
  return holders;
}

Holders ReportedHolders(const cluster::Node& node, const NodeDevices& devices,
                        const gpu::Catalogue& catalogue) {
  Holders holders;
  for (const cluster::Gpu& reported : cluster::ReadNodeGpus(node, catalogue).gpus) {
    if (reported.assumed_starts) continue;
    for (const cluster::Instance& instance : reported.instances) {
      if (!instance.used) continue;
      const std::string id = DeviceIdOf(reported, instance.placement, devices);
      if (id.empty()) continue;
      Holder& holder = holders[id] = {instance.pod, "", {}, kDefaultGracePeriod};
      holder.reported = true;
    }
  }
  return holders;
}

bool HasDeparted(const Holders& seen, Pods pods) {
  return std::ranges::any_of(
      seen, [&](const auto& holder) { return StateOf(holder.second, pods, {}) != State::kRuns; });
}

}  // namespace nos::agent
