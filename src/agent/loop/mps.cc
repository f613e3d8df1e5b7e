// Which GPUs of its node an agent has shared by MPS, and by which daemons.
#include <algorithm>
#include <iterator>
#include <utility>

#include "base/log.h"
#include "agent/node_agent.h"
#include "agent/node/divided_instances.h"
#include "agent/nebuly_plugin.h"
#include "device/mig_parts.h"
#include "device/mps_share.h"
#include "device/plain_gpus.h"
#include "gpu/occupancy.h"
#include "gpu/shares.h"

namespace nos::agent {
namespace {

// Whether there is something that exists in memory only and that its model does not have: pods have
// held it since the agent had other settings.
bool HasStrangers(const device::ObservedGpu& gpu) {
  return std::ranges::any_of(gpu.instances, [&](const device::GpuInstance& instance) {
    if (device::IsMigProfile(instance.profile)) return false;
    const auto profile = gpu.model->FindProfile(instance.profile);
    return !profile || !gpu::Occupancy(*gpu.model).Add({*profile, instance.start});
  });
}

// Whether pods hold more shares than it may have by now.
bool IsOverfull(const device::ObservedGpu& gpu, const NodeDevices& devices) {
  const auto info = std::ranges::find(devices.infos, gpu.index, &device::GpuInfo::index);
  return info != devices.infos.end() && info->share_gib > 0 &&
         gpu.model != &gpu::SharesOf(info->share_gib, info->most_shares);
}

// GiB that a client of its daemon may have at most: a share that is more than the GPU may have by
// now keeps it.
int MostOf(const device::GpuInfo& info, const device::ObservedGpu* gpu) {
  int most = info.share_gib;
  if (gpu == nullptr) return most;
  for (const device::GpuInstance& share : gpu->instances) {
    most = std::max(most, device::ParseMpsProfile(share.profile).value_or(0));
  }
  return most;
}

}  // namespace

// Whether its owner wants its GPUs shared by MPS; cluster::PartitioningOf says so only when they
// are.
bool Agent::WantsMps(const cluster::Node& node) {
  return cluster::ChosenPartitioning(node) == "mps";
}

// What lies on GPUs that are to be divided otherwise goes as it falls free. Nobody can plan beside
// what their models do not have, nor is anything new made beside what is too much.
void Agent::LeaveOldModes(Round& round) {
  for (const device::ObservedGpu& gpu : round.devices.gpus) {
    if (HasStrangers(gpu) || IsOverfull(gpu, round.devices))
      round.targets.push_back({gpu.index, {}});
  }
  if (IsHybrid(*round.node)) return;  // none is old
  const bool to_mps = WantsMps(*round.node);
  for (const device::ObservedGpu& gpu : round.devices.gpus) {
    // One that is about to be shared must not be cut once more, whatever an old spec asks.
    const bool cut = gpu.mig_enabled || to_mps;
    if (!cut || gpu.model->counted() == to_mps) continue;
    if (!to_mps || extras_.shares_gpus) round.targets.push_back({gpu.index, {}});
  }
}

// Nebuly's plugin numbers shares in its own way.
void Agent::MatchTargets(Round& round) const {
  if (!extras_.nebuly_shares) return;
  std::vector<gpu::Obstacle> obstacles = MatchShares(round.targets, round.devices);
  std::ranges::move(obstacles, std::back_inserter(round.unreadable));
}

// What is on its way out and need not be offered until it is gone: shares of Nebuly's plugin, which
// so is told once.
std::set<std::string> Agent::GivenUp(const Round& round) const {
  std::set<std::string> shares;
  for (const auto& [id, resource] : round.unwanted) {
    if (extras_.nebuly_shares && device::ParseMpsShareId(id)) shares.insert(id);
  }
  return shares;
}

// UUIDs of GPUs that a former agent has shared, and this one not yet: pods hold shares of them, or
// a daemon is there.
std::set<std::string> Agent::WereShared(const Round& round) const {
  std::set<std::string> shared;
  for (const auto& [id, pod] : round.devices.holders) {
    if (const auto share = device::ParseMpsShareId(id)) shared.insert(share->gpu_uuid);
  }
  for (const device::GpuInfo& info : round.devices.infos) {
    const bool exclusive = info.compute_mode == device::ComputeMode::kExclusiveProcess;
    const bool served = extras_.daemons != nullptr && extras_.daemons->HasLeft(info.uuid);
    // On a hybrid node nobody else sets that mode, in which no two pods could take turns.
    const bool ours = served || IsHybrid(*round.node);
    // One that is cut has that mode from before.
    if (exclusive && ours && !info.mig_enabled) shared.insert(info.uuid);
    if (info.share_gib > 0) shared.erase(info.uuid);
  }
  return shared;
}

// GPUs that a former agent has shared, and this one not yet: what they look like is not what they
// are. Nodes that are not hybrid never take over those in MIG mode, nor have shares there.
std::set<int> Agent::NotTakenOver(const Round& round) const {
  std::set<int> gpus;
  const bool hybrid = IsHybrid(*round.node);
  const std::set<std::string> were_shared = WereShared(round);
  for (const device::GpuInfo& info : round.devices.infos) {
    const bool ours = were_shared.contains(info.uuid) && (hybrid || !info.mig_enabled);
    if (ours) gpus.insert(info.index);
  }
  return gpus;
}

// An agent that shares no GPUs puts back the compute mode of those that a former one has shared,
// once nobody holds a share.
std::optional<device::Operation> Agent::NextPutBack(
    const Round& round, const std::function<bool(const device::Operation&)>& deferred) const {
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

// Instances that are divided are served while they are, but for those whose last part goes. What a
// former agent has left goes on while pods may hold it.
void Agent::AddDividedInstances(Round& round, std::vector<device::MpsGpu>& served,
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
    for (const device::GpuInfo& info : devices.infos) {  // of these it is known
      if (info.share_gib > 0) left.erase(info.uuid);
    }
    undecided.merge(left);
  }
}

// Nobody new gets a part of an instance that is not served: without a daemon it has no limit.
void Agent::WithholdUnserved(Round& round) const {
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

// Whether it would take an instance from its MPS daemon, which is told to end then. REQUIRES:
// nobody can be given any more what is to be destroyed.
bool Agent::MustEndDaemon(const device::Operation& operation, Round& round) {
  const auto part = device::ParseMigPartId(operation.uuid);
  if (!part || !IsServed(part->mig_uuid)) return false;
  if (DividedInstancesOf(round.devices)[part->mig_uuid].parts.size() > 1) return false;
  ending_.insert(part->mig_uuid);
  KeepDaemons(round);
  return true;
}

// One for each GPU that is shared, until it is to be shared no more and has no shares left. What a
// former agent has left goes on until this one has taken it over.
void Agent::KeepDaemons(Round& round) {
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
    // While its daemon ends the GPU counts as broken, hence has no target.
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
    Log(LogLevel::kWarn, "a GPU has no MPS daemon", {{"error", kept.message()}});
  }
}

// Those that may have to be switched to MPS or back without being asked for. Of a hybrid node,
// those that are shared, or were.
std::vector<device::GpuInfo> Agent::InfosToSwitch(const Round& round, Time now) const {
  std::vector<device::GpuInfo> infos = round.devices.infos;
  if (!IsHybrid(*round.node)) return infos;
  const std::set<std::string> were_shared = WereShared(round);
  std::erase_if(infos, [&](const device::GpuInfo& info) {
    // What somebody else's reset brings, or none does now, is not asked for again and again.
    const bool noted = extras_.resets == ResetRule::kNode && WaitsForReset(info);
    const bool waits = info.mig_enabled && (noted || reset_pauses_.Pausing(info.index, now));
    return waits || (info.share_gib == 0 && !were_shared.contains(info.uuid));
  });
  return infos;
}

// Whether its MPS daemon is still there.
bool Agent::IsServed(const std::string& gpu_uuid) const {
  return extras_.daemons != nullptr &&
         std::ranges::any_of(extras_.daemons->States(), [&](const device::MpsState& state) {
           return state.gpu_uuid == gpu_uuid;
         });
}

// Whether its MPS daemon is about to serve, for the first time or taken over, or to end, or has
// done so meanwhile: no fault, then, if nothing else is wrong with the GPU.
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

// To the pods that it concerns, once each.
void Agent::AnnounceLacks(const Round& round, kube::Client& client, Time now) {
  std::erase_if(told_lacks_, [&](const MpsLack& told) {
    return std::ranges::find(round.lacks, told) == round.lacks.end();
  });
  kube::Client hasty = client.Within(std::chrono::seconds(3));
  for (const MpsLack& lack : round.lacks) {
    if (std::ranges::find(told_lacks_, lack) != told_lacks_.end()) continue;
    events_.Record(hasty, {"Pod", lack.ns, lack.name, lack.uid}, kube::EventType::kWarning,
                   lack.reason, lack.message, now);
    told_lacks_.push_back(lack);
  }
}

}  // namespace nos::agent
