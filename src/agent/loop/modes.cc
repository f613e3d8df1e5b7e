// Sharing modes of the GPUs of a hybrid node, and the MIG mode changes that need a reset
// (docs/decisions/0030-resets.md).
#include <fmt/core.h>

#include <algorithm>

#include "agent/node_agent.h"
#include "base/text.h"
#include "reconcile/condition.h"

namespace nos::agent {
namespace {

constexpr size_t kMaxMessage = 1000;  // bytes

const device::ObservedGpu* FindGpu(const NodeDevices& devices, int index) {
  const auto found = std::ranges::find(devices.gpus, index, &device::ObservedGpu::index);
  return found == devices.gpus.end() ? nullptr : &*found;
}

bool Switches(const device::Operation& operation, const device::ObservedGpu& gpu) {
  const bool wanted = operation.kind == device::Operation::Kind::kEnableMig;
  return operation.ChangesMig() && wanted != (gpu.mode == device::SharingMode::kMig);
}

bool Waits(const device::ObservedGpu& gpu) {
  return gpu.mig_after_reset && *gpu.mig_after_reset != (gpu.mode == device::SharingMode::kMig);
}

std::string WhatWaits(const device::ObservedGpu& gpu) {
  return fmt::format("GPU {} {} MIG mode", gpu.index,
                     gpu.mig_after_reset.value_or(false) ? "takes" : "leaves");
}

}  // namespace

// True if each GPU of the node has its own sharing mode.
bool Agent::IsHybrid(const cluster::Node& node) const {
  return extras_.gives_whole && cluster::RequestedSharingMode(node) == "hybrid";
}

// A GPU on which MIG mode cannot be enabled stays in `no_mig` until the node's label changes.
SharingSettings Agent::SharingSettingsOf(const cluster::Node& node, Time now) {
  SharingSettings division{.hybrid = IsHybrid(node), .time_slices = extras_.time_slices};
  if (division.hybrid && extras_.shares_gpus) division.parts = extras_.parts;
  division.resets = extras_.resets;
  const cluster::Condition* noted = FindCondition(node.conditions, std::string(kRebootRequired));
  division.takes_back = extras_.resets != ResetRule::kNever || !stale_pending_modes_ ||
                        !stale_pending_modes_->empty() ||
                        (noted != nullptr && noted->status == "True");
  if (!division.hybrid) {
    no_mig_.clear();
    reset_pauses_.Clear();
  }
  for (int gpu = 0; division.hybrid && gpu < cluster::kMaxGpusPerNode; ++gpu) {
    if (failures_.CannotEnableMig(gpu)) no_mig_.insert(gpu);
    if (reset_pauses_.Pausing(gpu, now)) division.not_reset.insert(gpu);
  }
  division.no_mig = no_mig_;
  return division;
}

// True if the operation only cancels a pending MIG mode. It does not change the GPU now or at the
// next reset, so it is safe while pods use the GPU.
bool Agent::OnlyTakesBack(const device::Operation& operation, const ObservedState& round) {
  const device::ObservedGpu* gpu = FindGpu(round.devices, operation.gpu);
  return operation.ChangesMig() && gpu != nullptr && Waits(*gpu) && !Switches(operation, *gpu);
}

// A MIG mode that is pending when the agent starts may be left over from an earlier agent that
// crashed. A mode that becomes pending later was set by another tool and is kept if resets are not
// allowed.
void Agent::FindStalePendingModes(const ObservedState& round) {
  const bool first = !stale_pending_modes_;
  if (first) stale_pending_modes_.emplace();
  for (const device::ObservedGpu& gpu : round.devices.gpus) {
    if (!Waits(gpu)) {
      stale_pending_modes_->erase(gpu.uuid);
    } else if (first && extras_.resets == ResetRule::kNever) {
      stale_pending_modes_->insert(gpu.uuid);
    }
  }
}

// Cancels the pending modes of FindStalePendingModes; no spec has to request it.
std::optional<device::Operation> Agent::NextTakeBack(
    const ObservedState& round,
    const std::function<bool(const device::Operation&)>& deferred) const {
  for (const device::ObservedGpu& gpu : round.devices.gpus) {
    if (!stale_pending_modes_ || !stale_pending_modes_->contains(gpu.uuid) || !Waits(gpu)) continue;
    using enum device::Operation::Kind;
    const bool cut = gpu.mode == device::SharingMode::kMig;
    device::Operation operation{cut ? kEnableMig : kDisableMig, gpu.index, "", 0, 0, gpu.uuid};
    if (!deferred(operation)) return operation;
  }
  return std::nullopt;
}

// True if the driver has recorded the requested MIG mode as pending until the next reset.
bool Agent::IsNoted(const device::Operation& operation, const ObservedState& round) const {
  const device::ObservedGpu* gpu = FindGpu(round.devices, operation.gpu);
  if (!operation.ChangesMig() || gpu == nullptr || !gpu->mig_after_reset) return false;
  const Result<std::vector<device::GpuInfo>> infos = backend_.ListGpus();
  if (!infos.ok()) return false;
  const auto info = std::ranges::find(*infos, operation.gpu, &device::GpuInfo::index);
  const bool wanted = operation.kind == device::Operation::Kind::kEnableMig;
  return info != infos->end() && info->uuid == operation.uuid && info->problem.empty() &&
         WaitsForReset(*info) && info->mig_pending == wanted;
}

// Applies the operation including the reset that it needs. REQUIRES: no pod uses a GPU that it
// switches.
Status Agent::ApplyOrReset(const device::Operation& operation, const ObservedState& round) {
  if (operation.kind == device::Operation::Kind::kDisableMps && !extras_.shares_gpus) {
    return backend_.SetComputeMode(operation.gpu, device::ComputeMode::kDefault);
  }
  Status done = device::Apply(operation, backend_);
  if (done.ok() || extras_.resets == ResetRule::kNever || !IsNoted(operation, round)) return done;
  if (extras_.resets == ResetRule::kNode) return Status::Ok();  // the reboot completes it
  NOS_RETURN_IF_ERROR(backend_.ResetGpu(operation.gpu));
  reset_pauses_.Succeeded(operation.gpu);
  return Status::Ok();
}

// If a GPU cannot be reset, it keeps its mode for a while, so that plans can use it in that mode.
void Agent::KeepMode(const device::Operation& operation, const Status& error,
                     const ObservedState& round, Time now) {
  const device::ObservedGpu* gpu = FindGpu(round.devices, operation.gpu);
  const bool resets = gpu != nullptr && gpu->mig_after_reset && Switches(operation, *gpu);
  if (!resets || !failures_.GivenUp(operation)) return;
  failures_.Succeeded(operation);  // no retry before a new plan requests it
  reset_pauses_.Failed(operation.gpu, error.message(), now);
}

// The obstacle for a GPU whose spec is not a layout that the GPU can have now.
gpu::Obstacle Agent::BadSpec(const cluster::Gpu& gpu, const ObservedState& round) const {
  const device::ObservedGpu* observed = FindGpu(round.devices, gpu.index);
  if (observed != nullptr && extras_.resets == ResetRule::kNode && Waits(*observed)) {
    return {gpu.index, "", "NeedsReboot", WhatWaits(*observed) + " when the node is rebooted"};
  }
  if (const std::string error = reset_pauses_.ErrorOf(gpu.index); !error.empty()) {
    return {gpu.index, "", "NotReset",
            fmt::format("GPU {} stays what it is for now: {}", gpu.index, error)};
  }
  return {gpu.index, "", "BadSpec",
          fmt::format("the spec of GPU {} is not one layout that {} can have", gpu.index,
                      gpu.model->name())};
}

// A node gets the condition when a mode is first pending. The condition is updated until none is
// pending, even if the reset rule changes meanwhile.
Status Agent::ReportReboot(const ObservedState& round, kube::Client& client, Time now) {
  std::vector<std::string> waiting;
  for (const device::ObservedGpu& gpu : round.devices.gpus) {
    if (extras_.resets != ResetRule::kGpu && Waits(gpu)) waiting.push_back(WhatWaits(gpu));
  }
  const bool waits = !waiting.empty();
  const reconcile::WantedCondition wanted{
      std::string(kRebootRequired), waits ? "True" : "False",
      waits ? "MigModePending" : "NoRebootPending",
      waits ? Shortened(Join(waiting, ", ") + " when the node is rebooted", kMaxMessage) : ""};
  const bool never_had = FindCondition(round.node->conditions, wanted.type) == nullptr;
  if (reconcile::HasCondition(*round.node, wanted) || (never_had && !waits)) return Status::Ok();
  NOS_RETURN_IF_ERROR(reconcile::WriteCondition(client, *round.node, wanted, now));
  if (waits) {
    Say(client, *round.node, kube::EventType::kNormal, wanted.reason,
        wanted.message + "; the GPU keeps its MIG mode until then", now);
  }
  return Status::Ok();
}

}  // namespace nos::agent
