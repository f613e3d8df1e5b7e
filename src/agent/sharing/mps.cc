#include "agent/sharing/mps.h"

#include <algorithm>
#include <utility>

#include "agent/node/divided_instances.h"
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

std::vector<device::Target> MpsSharing::TargetsToLeave(const ObservedState& round) const {
  std::vector<device::Target> targets;
  for (const device::ObservedGpu& gpu : round.devices.gpus) {
    if (HasStrangers(gpu) || IsOverfull(gpu, round.devices)) targets.push_back({gpu.index, {}});
  }
  if (round.mode.per_gpu) return targets;  // on a hybrid node no mode is outdated
  const bool to_mps = round.mode.mps;
  for (const device::ObservedGpu& gpu : round.devices.gpus) {
    // A GPU that is about to be shared must not be partitioned again, even if an old spec requests
    // it.
    const bool cut = gpu.mig_enabled || to_mps;
    if (!cut || gpu.model->counted() == to_mps) continue;
    if (!to_mps || enabled_) targets.push_back({gpu.index, {}});
  }
  return targets;
}

// UUIDs of GPUs that an earlier agent shared and this one does not share yet: pods hold shares of
// them, or a daemon runs.
std::set<std::string> MpsSharing::WereShared(const ObservedState& round) const {
  std::set<std::string> shared;
  for (const auto& [id, pod] : round.devices.holders) {
    if (const auto share = device::ParseMpsShareId(id)) shared.insert(share->gpu_uuid);
  }
  for (const device::GpuInfo& info : round.devices.infos) {
    const bool exclusive = info.compute_mode == device::ComputeMode::kExclusiveProcess;
    const bool served = daemons_ != nullptr && daemons_->HasLeft(info.uuid);
    // On a hybrid node no other tool sets this compute mode, which prevents pods from taking turns
    // on the GPU.
    const bool ours = served || round.mode.per_gpu;
    // A GPU in MIG mode has the compute mode from an earlier time.
    if (exclusive && ours && !info.mig_enabled) shared.insert(info.uuid);
    if (info.share_gib > 0) shared.erase(info.uuid);
  }
  return shared;
}

std::set<int> MpsSharing::NotTakenOver(const ObservedState& round) const {
  std::set<int> gpus;
  const bool hybrid = round.mode.per_gpu;
  const std::set<std::string> were_shared = WereShared(round);
  for (const device::GpuInfo& info : round.devices.infos) {
    const bool ours = were_shared.contains(info.uuid) && (hybrid || !info.mig_enabled);
    if (ours) gpus.insert(info.index);
  }
  return gpus;
}

std::optional<device::Operation> MpsSharing::NextSwitch(
    const ObservedState& round, const std::function<bool(const device::GpuInfo&)>& delayed,
    const Deferred& deferred) const {
  if (!enabled_) return NextPutBack(round, deferred);
  const std::set<std::string> were_shared = WereShared(round);
  std::vector<device::GpuInfo> infos = round.devices.infos;
  if (round.mode.per_gpu) {
    // The specs decide about all other GPUs.
    std::erase_if(infos, [&](const device::GpuInfo& info) {
      return delayed(info) || (info.share_gib == 0 && !were_shared.contains(info.uuid));
    });
  }
  return device::NextSwitch(round.mode.mps, infos, round.devices.gpus, were_shared, round.keep,
                            deferred);
}

bool MpsSharing::PutsBack(const device::Operation& operation) const {
  return !enabled_ && operation.kind == device::Operation::Kind::kDisableMps;
}

// Resets the compute mode of GPUs that an earlier agent shared, if this agent shares none and no
// pod holds a share.
std::optional<device::Operation> MpsSharing::NextPutBack(const ObservedState& round,
                                                         const Deferred& deferred) const {
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
void MpsSharing::AddDividedInstances(const ObservedState& round,
                                     std::vector<device::MpsGpu>& served,
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
    std::set<std::string> left = daemons_->Left();
    for (const device::GpuInfo& info : devices.infos) {  // for these GPUs it is known
      if (info.share_gib > 0) left.erase(info.uuid);
    }
    undecided.merge(left);
  }
}

void MpsSharing::WithholdUnserved(ObservedState& round) const {
  if (daemons_ == nullptr) return;
  std::set<std::string> serving, starting;
  for (const device::MpsState& state : daemons_->States()) {
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

bool MpsSharing::MustEndDaemon(const device::Operation& operation, const ObservedState& round) {
  const auto part = device::ParseMigPartId(operation.uuid);
  if (!part || !IsServed(part->mig_uuid)) return false;
  if (DividedInstancesOf(round.devices)[part->mig_uuid].parts.size() > 1) return false;
  ending_.insert(part->mig_uuid);
  KeepDaemons(round);
  return true;
}

void MpsSharing::KeepDaemons(const ObservedState& round) {
  if (daemons_ == nullptr) return;
  const bool hybrid = round.mode.per_gpu, to_mps = round.mode.mps;
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
  if (const Status kept = daemons_->Keep(served, undecided); !kept.ok()) {
    Log(LogLevel::kWarn, "failed to keep MPS daemons of GPUs", {{"error", kept.message()}});
  }
}

bool MpsSharing::IsServed(const std::string& gpu_uuid) const {
  return daemons_ != nullptr &&
         std::ranges::any_of(daemons_->States(), [&](const device::MpsState& state) {
           return state.gpu_uuid == gpu_uuid;
         });
}

bool MpsSharing::IsBeingServed(int gpu) const {
  if (health_ == nullptr) return false;
  std::vector<device::HealthCondition> conditions = health_->Conditions();
  std::erase_if(conditions, [&](const device::HealthCondition& one) {
    return one.gpu != gpu || one.instance || !one.Disables();
  });
  if (conditions.empty()) return true;
  const bool faulty = std::ranges::any_of(conditions, [](const device::HealthCondition& one) {
    return one.kind != device::HealthCondition::Kind::kMps;
  });
  if (faulty) return false;
  return daemons_ != nullptr &&
         std::ranges::any_of(daemons_->States(), [&](const device::MpsState& state) {
           using enum device::MpsState::Phase;
           const bool first = state.phase == kStarting && state.starts <= 1;
           return state.gpu == gpu && (first || state.phase == kServing || state.phase == kLeaving);
         });
}

}  // namespace nos::agent
