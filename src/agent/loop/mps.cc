// Decides which GPUs of a node are shared by MPS, and keeps their daemons.
#include <algorithm>
#include <iterator>
#include <utility>

#include "agent/nebuly_plugin.h"
#include "agent/node/divided_instances.h"
#include "agent/node_agent.h"
#include "base/log.h"
#include "device/mig_parts.h"
#include "device/mps_share.h"
#include "device/plain_gpus.h"
#include "gpu/occupancy.h"
#include "gpu/shares.h"

namespace nos::agent {
namespace {

// True if the GPU has a device without a profile in its model. Such a device exists only in memory:
// pods have held it since the agent had other settings.
bool HasStrangers(const device::ObservedGpu& gpu) {
  return std::ranges::any_of(gpu.instances, [&](const device::GpuInstance& instance) {
    if (device::IsMigProfile(instance.profile)) return false;
    const auto profile = gpu.model->FindProfile(instance.profile);
    return !profile || !gpu::Occupancy(*gpu.model).Add({*profile, instance.start});
  });
}

// True if pods hold more shares than the GPU may have now.
bool IsOverfull(const device::ObservedGpu& gpu, const NodeDevices& devices) {
  const auto info = std::ranges::find(devices.infos, gpu.index, &device::GpuInfo::index);
  return info != devices.infos.end() && info->share_gib > 0 &&
         gpu.model != &gpu::SharesOf(info->share_gib, info->most_shares);
}

// Memory limit in GiB for clients of the GPU's daemon. A share in use that is larger than the GPU
// may have now keeps its size.
int MostOf(const device::GpuInfo& info, const device::ObservedGpu* gpu) {
  int most = info.share_gib;
  if (gpu == nullptr) return most;
  for (const device::GpuInstance& share : gpu->instances) {
    most = std::max(most, device::ParseMpsProfile(share.profile).value_or(0));
  }
  return most;
}

}  // namespace

// True if the node's label requests sharing by MPS. cluster::SharingModeOf returns MPS only after
// the GPUs are shared.
bool Agent::WantsMps(const cluster::Node& node) {
  return cluster::RequestedSharingMode(node) == "mps";
}

// Sets empty targets, so that devices are destroyed as they become free: on GPUs whose sharing mode
// must change, on GPUs with devices that their model does not have, because no plan can include
// them, and on GPUs with more shares than allowed, where no new share may be created.
void Agent::LeaveOldModes(ObservedState& round) {
  for (const device::ObservedGpu& gpu : round.devices.gpus) {
    if (HasStrangers(gpu) || IsOverfull(gpu, round.devices))
      round.targets.push_back({gpu.index, {}});
  }
  if (IsHybrid(*round.node)) return;  // on a hybrid node no mode is outdated
  const bool to_mps = WantsMps(*round.node);
  for (const device::ObservedGpu& gpu : round.devices.gpus) {
    // A GPU that is about to be shared must not be partitioned again, even if an old spec requests
    // it.
    const bool cut = gpu.mig_enabled || to_mps;
    if (!cut || gpu.model->counted() == to_mps) continue;
    if (!to_mps || extras_.shares_gpus) round.targets.push_back({gpu.index, {}});
  }
}

// Shares of Nebuly's plugin have fixed numbers, so targets are matched to them.
void Agent::MatchTargets(ObservedState& round) const {
  if (!extras_.nebuly_shares) return;
  std::vector<gpu::Obstacle> obstacles = MatchShares(round.targets, round.devices);
  std::ranges::move(obstacles, std::back_inserter(round.unreadable));
}

// Shares of Nebuly's plugin that are to be destroyed leave the offer at once, so that the plugin is
// reconfigured only once.
std::set<std::string> Agent::GivenUp(const ObservedState& round) const {
  std::set<std::string> shares;
  for (const auto& [id, resource] : round.unwanted) {
    if (extras_.nebuly_shares && device::ParseMpsShareId(id)) shares.insert(id);
  }
  return shares;
}

// UUIDs of GPUs that an earlier agent shared and this one does not share yet: pods hold shares of
// them, or a daemon runs.
std::set<std::string> Agent::WereShared(const ObservedState& round) const {
  std::set<std::string> shared;
  for (const auto& [id, pod] : round.devices.holders) {
    if (const auto share = device::ParseMpsShareId(id)) shared.insert(share->gpu_uuid);
  }
  for (const device::GpuInfo& info : round.devices.infos) {
    const bool exclusive = info.compute_mode == device::ComputeMode::kExclusiveProcess;
    const bool served = extras_.daemons != nullptr && extras_.daemons->HasLeft(info.uuid);
    // On a hybrid node no other tool sets this compute mode, which prevents pods from taking turns
    // on the GPU.
    const bool ours = served || IsHybrid(*round.node);
    // A GPU in MIG mode has the compute mode from an earlier time.
    if (exclusive && ours && !info.mig_enabled) shared.insert(info.uuid);
    if (info.share_gib > 0) shared.erase(info.uuid);
  }
  return shared;
}

// GPUs that an earlier agent shared and this one does not share yet, so that their observed state
// is wrong. Nodes that are not hybrid neither take over GPUs in MIG mode nor share them.
std::set<int> Agent::NotTakenOver(const ObservedState& round) const {
  std::set<int> gpus;
  const bool hybrid = IsHybrid(*round.node);
  const std::set<std::string> were_shared = WereShared(round);
  for (const device::GpuInfo& info : round.devices.infos) {
    const bool ours = were_shared.contains(info.uuid) && (hybrid || !info.mig_enabled);
    if (ours) gpus.insert(info.index);
  }
  return gpus;
}

// Resets the compute mode of GPUs that an earlier agent shared, if this agent shares none and no
// pod holds a share.
std::optional<device::Operation> Agent::NextPutBack(
    const ObservedState& round,
    const std::function<bool(const device::Operation&)>& deferred) const {
  std::set<std::string> held = round.keep;
  for (const auto& [id, pod] : round.devices.holders) {
    if (const auto share = device::ParseMpsShareId(id)) held.insert(share->gpu_uuid);
  }
  const std::set<std::string> were_shared = WereShared(round);
  for (const device::GpuInfo& info : round.devices.infos) {
    const bool left = info.compute_mode == device::ComputeMode::kExclusiveProcess &&
                      were_shared.contains(info.uuid) && !held.contains(info.uuid);
    if (!left || !info.problem.empty()) continue;
    device::Operation operation{
        device::Operation::Kind::kDisableMps, info.index, "", 0, 0, info.uuid};
    if (!deferred(operation)) return operation;
  }
  return std::nullopt;
}

// Divided instances are served as long as they have parts, except those whose last part is being
// destroyed. Daemons of an earlier agent continue while pods may use them.
void Agent::AddDividedInstances(ObservedState& round, std::vector<device::MpsGpu>& served,
                                std::set<std::string>& undecided) {
  const NodeDevices& devices = round.devices;
  const std::map<std::string, DividedInstance> divided = DividedInstancesOf(devices);
  std::erase_if(ending_, [&](const std::string& uuid) {
    const auto left = divided.find(uuid);
    return left == divided.end() || left->second.parts.size() > 1 ||
           !round.unwanted.contains(left->second.parts.front()->uuid);
  });
  for (const auto& [uuid, instance] : divided) {
    const device::GpuInstance& part = *instance.parts.front();
    const auto profile = instance.gpu->model->FindProfile(part.profile);
    if (!profile || ending_.contains(uuid)) continue;
    served.push_back({instance.gpu->index, uuid, 0,
                      instance.gpu->model->profile(*profile).memory_mib,
                      device::DriverIdOf(part.id)});
  }
  for (const auto& [id, pod] : devices.holders) {
    if (const auto part = device::ParseMigPartId(id)) undecided.insert(part->mig_uuid);
  }
  if (devices.unseen_shares || !devices.unreadable.empty()) {
    std::set<std::string> left = extras_.daemons->Left();
    for (const device::GpuInfo& info : devices.infos) {  // for these GPUs it is known
      if (info.share_gib > 0) left.erase(info.uuid);
    }
    undecided.merge(left);
  }
}

// Marks parts of instances without a serving daemon as unhealthy, so that no new pod gets them:
// there would be no memory limit.
void Agent::WithholdUnserved(ObservedState& round) const {
  if (extras_.daemons == nullptr) return;
  std::set<std::string> serving, starting;
  for (const device::MpsState& state : extras_.daemons->States()) {
    using enum device::MpsState::Phase;
    if (state.phase == kServing) serving.insert(state.gpu_uuid);
    if (state.phase == kStarting && state.starts <= 1) starting.insert(state.gpu_uuid);
  }
  for (const auto& [uuid, instance] : DividedInstancesOf(round.devices)) {
    if (serving.contains(uuid)) continue;
    round.waits |= starting.contains(uuid);
    for (const device::GpuInstance* part : instance.parts) {
      round.devices.unhealthy.insert(part->uuid);
    }
  }
}

// If the operation would destroy the last part of a served instance, asks the instance's MPS daemon
// to stop and returns true. REQUIRES: the kubelet cannot give the part to a pod any more.
bool Agent::MustEndDaemon(const device::Operation& operation, ObservedState& round) {
  const auto part = device::ParseMigPartId(operation.uuid);
  if (!part || !IsServed(part->mig_uuid)) return false;
  if (DividedInstancesOf(round.devices)[part->mig_uuid].parts.size() > 1) return false;
  ending_.insert(part->mig_uuid);
  KeepDaemons(round);
  return true;
}

// Keeps one daemon for each shared GPU until the GPU is no longer to be shared and has no shares
// left. Daemons of an earlier agent continue until this agent has taken over their GPUs.
void Agent::KeepDaemons(ObservedState& round) {
  if (extras_.daemons == nullptr) return;
  const bool hybrid = IsHybrid(*round.node), to_mps = WantsMps(*round.node) || hybrid;
  std::set<std::string> undecided = WereShared(round);
  std::vector<device::MpsGpu> served;
  std::set<std::string> leave;
  for (const device::GpuInfo& info : round.devices.infos) {
    if (info.share_gib == 0) {
      if (to_mps && !hybrid) undecided.insert(info.uuid);
      continue;
    }
    const auto gpu = std::ranges::find(round.devices.gpus, info.index, &device::ObservedGpu::index);
    const auto target = std::ranges::find(round.targets, info.index, &device::Target::gpu);
    const bool otherwise =
        target != round.targets.end() && target->model != nullptr && !target->model->counted();
    // While its daemon stops, the GPU counts as unhealthy and therefore has no target.
    const bool ends = leaving_.contains(info.uuid) && round.devices.broken.contains(info.index);
    const bool leaves = hybrid ? otherwise || ends : !to_mps;
    const bool left = leaves && !round.devices.unseen_shares && gpu != round.devices.gpus.end() &&
                      gpu->instances.empty();
    if (left) leave.insert(info.uuid);
    const auto* read = gpu == round.devices.gpus.end() ? nullptr : &*gpu;
    if (!left) served.push_back({info.index, info.uuid, MostOf(info, read)});
  }
  leaving_ = std::move(leave);
  AddDividedInstances(round, served, undecided);
  if (const Status kept = extras_.daemons->Keep(served, undecided); !kept.ok()) {
    Log(LogLevel::kWarn, "failed to keep MPS daemons of GPUs", {{"error", kept.message()}});
  }
}

// GPUs that may have to be switched to MPS or back although no target requests it. On a hybrid
// node: the GPUs that are or were shared.
std::vector<device::GpuInfo> Agent::InfosToSwitch(const ObservedState& round, Time now) const {
  std::vector<device::GpuInfo> infos = round.devices.infos;
  if (!IsHybrid(*round.node)) return infos;
  const std::set<std::string> were_shared = WereShared(round);
  std::erase_if(infos, [&](const device::GpuInfo& info) {
    // A change that waits for a reboot, or that a failed reset delays, is not requested again each
    // time.
    const bool noted = extras_.resets == ResetRule::kNode && WaitsForReset(info);
    const bool waits = info.mig_enabled && (noted || reset_pauses_.Pausing(info.index, now));
    return waits || (info.share_gib == 0 && !were_shared.contains(info.uuid));
  });
  return infos;
}

// True if the GPU's MPS daemon still runs.
bool Agent::IsServed(const std::string& gpu_uuid) const {
  return extras_.daemons != nullptr &&
         std::ranges::any_of(extras_.daemons->States(), [&](const device::MpsState& state) {
           return state.gpu_uuid == gpu_uuid;
         });
}

// True if the GPU is only unhealthy because its MPS daemon is starting for the first time, was just
// taken over, or is stopping, or if it has recovered meanwhile. This is not reported as a fault.
bool Agent::IsBeingServed(int gpu) const {
  if (extras_.health == nullptr) return false;
  std::vector<device::HealthCondition> conditions = extras_.health->Conditions();
  std::erase_if(conditions, [&](const device::HealthCondition& one) {
    return one.gpu != gpu || one.instance || !one.Disables();
  });
  if (conditions.empty()) return true;
  const bool faulty = std::ranges::any_of(conditions, [](const device::HealthCondition& one) {
    return one.kind != device::HealthCondition::Kind::kMps;
  });
  if (faulty) return false;
  return extras_.daemons != nullptr &&
         std::ranges::any_of(extras_.daemons->States(), [&](const device::MpsState& state) {
           using enum device::MpsState::Phase;
           const bool first = state.phase == kStarting && state.starts <= 1;
           return state.gpu == gpu && (first || state.phase == kServing || state.phase == kLeaving);
         });
}

// Publishes each lack once, as an Event on its pod.
void Agent::AnnounceLacks(const ObservedState& round, kube::Client& client, Time now) {
  std::erase_if(told_lacks_, [&](const MpsViolation& told) {
    return std::ranges::find(round.lacks, told) == round.lacks.end();
  });
  kube::Client hasty = client.Within(std::chrono::seconds(3));
  for (const MpsViolation& lack : round.lacks) {
    if (std::ranges::find(told_lacks_, lack) != told_lacks_.end()) continue;
    events_.Record(hasty, {"Pod", lack.ns, lack.name, lack.uid}, kube::EventType::kWarning,
                   lack.reason, lack.message, now);
    told_lacks_.push_back(lack);
  }
}

}  // namespace nos::agent
