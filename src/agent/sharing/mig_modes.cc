#include "agent/sharing/mig_modes.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "agent/conditions.h"
#include "base/text.h"

namespace nos::agent {
namespace {

constexpr size_t kMaxMessage = 1000;  // bytes

const device::ObservedGpu* FindGpu(MigModes::Gpus gpus, int index) {
  const auto found = std::ranges::find(gpus, index, &device::ObservedGpu::index);
  return found == gpus.end() ? nullptr : &*found;
}

bool Switches(const device::Operation& operation, const device::ObservedGpu& gpu) {
  const bool wanted = operation.kind == device::Operation::Kind::kEnableMig;
  return operation.ChangesMig() && wanted != (gpu.mode == device::SharingMode::kMig);
}

bool HasPendingMode(const device::ObservedGpu& gpu) {
  return gpu.mig_after_reset && *gpu.mig_after_reset != (gpu.mode == device::SharingMode::kMig);
}

std::string DescribePendingMode(const device::ObservedGpu& gpu) {
  return fmt::format("GPU {} {} MIG mode", gpu.index,
                     gpu.mig_after_reset.value_or(false) ? "takes" : "leaves");
}

}  // namespace

bool CancelsPendingMode(const device::Operation& operation, MigModes::Gpus gpus) {
  const device::ObservedGpu* gpu = FindGpu(gpus, operation.gpu);
  return operation.ChangesMig() && gpu != nullptr && HasPendingMode(*gpu) &&
         !Switches(operation, *gpu);
}

void MigModes::AddTo(SharingSettings& settings, const cluster::Node& node, const Failures& failures,
                     Time now) {
  settings.resets = resets_;
  const cluster::Condition* noted = FindCondition(node.conditions, std::string(kRebootRequired));
  settings.takes_back = resets_ != ResetRule::kNever || !stale_pending_modes_ ||
                        !stale_pending_modes_->empty() ||
                        (noted != nullptr && noted->status == "True");
  if (!settings.hybrid) {
    no_mig_.clear();
    reset_pauses_.Clear();
  }
  for (int gpu = 0; settings.hybrid && gpu < cluster::kMaxGpusPerNode; ++gpu) {
    if (failures.CannotEnableMig(gpu)) no_mig_.insert(gpu);
    if (reset_pauses_.Pausing(gpu, now)) settings.not_reset.insert(gpu);
  }
  settings.no_mig = no_mig_;
}

// A mode that becomes pending later was set by another tool and is kept if resets are not allowed.
void MigModes::Observed(Gpus gpus) {
  const bool first = !stale_pending_modes_;
  if (first) stale_pending_modes_.emplace();
  for (const device::ObservedGpu& gpu : gpus) {
    if (!HasPendingMode(gpu)) {
      stale_pending_modes_->erase(gpu.uuid);
    } else if (first && resets_ == ResetRule::kNever) {
      stale_pending_modes_->insert(gpu.uuid);
    }
  }
}

std::optional<device::Operation> MigModes::NextCancel(
    Gpus gpus, const std::function<bool(const device::Operation&)>& deferred) const {
  for (const device::ObservedGpu& gpu : gpus) {
    const bool stale = stale_pending_modes_ && stale_pending_modes_->contains(gpu.uuid);
    if (!stale || !HasPendingMode(gpu)) continue;
    using enum device::Operation::Kind;
    const bool mig = gpu.mode == device::SharingMode::kMig;
    device::Operation operation{mig ? kEnableMig : kDisableMig, gpu.index, "", 0, 0, gpu.uuid};
    if (!deferred(operation)) return operation;
  }
  return std::nullopt;
}

// True if the driver has recorded the requested MIG mode as pending until the next reset.
bool MigModes::IsPending(const device::Operation& operation, Gpus gpus) const {
  const device::ObservedGpu* gpu = FindGpu(gpus, operation.gpu);
  if (!operation.ChangesMig() || gpu == nullptr || !gpu->mig_after_reset) return false;
  const Result<std::vector<device::GpuInfo>> infos = backend_.ListGpus();
  if (!infos.ok()) return false;
  const auto info = std::ranges::find(*infos, operation.gpu, &device::GpuInfo::index);
  const bool wanted = operation.kind == device::Operation::Kind::kEnableMig;
  return info != infos->end() && info->uuid == operation.uuid && info->problem.empty() &&
         WaitsForReset(*info) && info->mig_pending == wanted;
}

Status MigModes::Apply(const device::Operation& operation, Gpus gpus) {
  Status done = device::Apply(operation, backend_);
  if (done.ok() || resets_ == ResetRule::kNever || !IsPending(operation, gpus)) return done;
  if (resets_ == ResetRule::kNode) return Status::Ok();  // the reboot completes it
  NOS_RETURN_IF_ERROR(backend_.ResetGpu(operation.gpu));
  reset_pauses_.Succeeded(operation.gpu);
  return Status::Ok();
}

bool MigModes::Delay(const device::Operation& operation, const Status& error, Gpus gpus, Time now) {
  const device::ObservedGpu* gpu = FindGpu(gpus, operation.gpu);
  if (gpu == nullptr || !gpu->mig_after_reset || !Switches(operation, *gpu)) return false;
  reset_pauses_.Failed(operation.gpu, error.message(), now);
  return true;
}

bool MigModes::LeavesLater(const device::GpuInfo& info, Time now) const {
  const bool at_reboot = resets_ == ResetRule::kNode && WaitsForReset(info);
  return info.mig_enabled && (at_reboot || reset_pauses_.Pausing(info.index, now));
}

std::optional<gpu::Obstacle> MigModes::WhyNot(int gpu, const device::ObservedGpu* observed) const {
  if (observed != nullptr && resets_ == ResetRule::kNode && HasPendingMode(*observed)) {
    return gpu::Obstacle{gpu, "", "NeedsReboot",
                         DescribePendingMode(*observed) + " when the node is rebooted"};
  }
  if (const std::string error = reset_pauses_.ErrorOf(gpu); !error.empty()) {
    return gpu::Obstacle{gpu, "", "NotReset",
                         fmt::format("GPU {} stays what it is for now: {}", gpu, error)};
  }
  return std::nullopt;
}

reconcile::WantedCondition MigModes::RebootRequired(Gpus gpus) const {
  std::vector<std::string> waiting;
  for (const device::ObservedGpu& gpu : gpus) {
    if (resets_ != ResetRule::kGpu && HasPendingMode(gpu)) {
      waiting.push_back(DescribePendingMode(gpu));
    }
  }
  if (waiting.empty()) return {std::string(kRebootRequired), "False", "NoRebootPending", ""};
  return {std::string(kRebootRequired), "True", "MigModePending",
          Shortened(Join(waiting, ", ") + " when the node is rebooted", kMaxMessage)};
}

}  // namespace nos::agent
