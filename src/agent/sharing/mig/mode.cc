// Changes of MIG mode on a hybrid node, and the resets that they need
// (docs/decisions/0030-resets.md).
//
// On some GPUs (Ampere) a requested mode is pending until a reset. The reset rule says who resets:
// the agent (kGpu), a reboot that a condition of the node requests (kNode), or no component
// (kNever). A GPU that cannot be reset keeps its mode for a growing pause, so that plans can use it
// in that mode. A mode that was pending when the agent started may be left over from an agent that
// crashed; if resets are not allowed it is cancelled. Owned by one thread, except Prefer()'s
// function.
#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "agent/conditions.h"
#include "agent/sharing/mig/dense.h"
#include "agent/sharing/strategies.h"
#include "base/text.h"
#include "reconcile/back_off_table.h"

namespace nos::agent {
namespace {

constexpr size_t kMaxMessage = 1000;  // bytes

const device::ObservedGpu* FindGpu(SharingModeStrategy::Gpus gpus, int index) {
  const auto found = std::ranges::find(gpus, index, &device::ObservedGpu::index);
  return found == gpus.end() ? nullptr : &*found;
}

bool Switches(const device::Operation& operation, const device::ObservedGpu& gpu) {
  const bool wanted = operation.kind == device::Operation::Kind::kEnableMig;
  return operation.ChangesMig() && wanted != (gpu.mode == device::GpuMode::kMig);
}

bool HasPendingMode(const device::ObservedGpu& gpu) {
  return gpu.mig_after_reset && *gpu.mig_after_reset != (gpu.mode == device::GpuMode::kMig);
}

std::string DescribePendingMode(const device::ObservedGpu& gpu) {
  return fmt::format("GPU {} {} MIG mode", gpu.index,
                     gpu.mig_after_reset.value_or(false) ? "takes" : "leaves");
}

// True if the driver has recorded the requested MIG mode as pending until the next reset.
bool IsPending(const device::Operation& operation, SharingModeStrategy::Gpus gpus,
               device::Backend& backend) {
  const device::ObservedGpu* gpu = FindGpu(gpus, operation.gpu);
  if (!operation.ChangesMig() || gpu == nullptr || !gpu->mig_after_reset) return false;
  const Result<std::vector<device::GpuInfo>> infos = backend.ListGpus();
  if (!infos.ok()) return false;
  const auto info = std::ranges::find(*infos, operation.gpu, &device::GpuInfo::index);
  const bool wanted = operation.kind == device::Operation::Kind::kEnableMig;
  return info != infos->end() && info->uuid == operation.uuid && info->problem.empty() &&
         WaitsForReset(*info) && info->mig_pending == wanted;
}

class MigModes final : public SharingModeStrategy {
 public:
  // `pauses`: how long a GPU that could not be reset keeps its mode.
  MigModes(ResetRule resets, BackOff pauses) : resets_(resets), reset_pauses_(pauses) {}

  std::string_view section() const override { return "hybrid"; }
  void Describe(ConfigFields& fields, DevicePlugins&) override;
  void AddSettings(SharingSettings& settings) const override {
    settings.resets = resets_;
    settings.reset_program = reset_program_;
  }
  // A GPU on which MIG mode cannot be enabled (`failures`) stays without until the node's label
  // changes.
  void Adapt(SharingSettings& settings, const cluster::Node& node, const Failures& failures,
             Time now) override;
  // Records the pending modes, and the devices for DenseChoice.
  void OnObserved(ObservedState& round) override;
  std::optional<gpu::Obstacle> WhyNot(int gpu, const device::ObservedGpu* observed) const override;
  std::function<std::vector<std::string>(const kubelet::Choice&)> Prefer() const override {
    return [dense = dense_](const kubelet::Choice& choice) { return dense->Prefer(choice); };
  }

  // Cancels a left-over pending mode.
  std::optional<device::Operation> Next(const ObservedState& round,
                                        const Deferral& deferral) const override;
  // True if the GPU is in MIG mode and leaves it later: at a reboot, or after a pause.
  bool Delays(const device::GpuInfo& gpu, Time now) const override;
  // True if the operation only cancels a pending MIG mode, now or at the next reset.
  bool IsHarmless(const device::Operation& operation, Gpus gpus) const override;
  // Includes the reset that the operation needs. If a reboot completes it, OK means that the mode
  // is pending.
  std::optional<Status> Apply(const device::Operation& operation, Gpus gpus,
                              device::Backend& backend) override;
  // The GPU keeps its mode if the operation needs a reset.
  bool Delay(const device::Operation& operation, const Status& error, Gpus gpus, Time now) override;

  // kRebootRequired: True while a mode waits for a reset that this agent does not do.
  std::optional<reconcile::WantedCondition> Condition(Gpus gpus) const override;

 private:
  const std::shared_ptr<DenseChoice> dense_ = std::make_shared<DenseChoice>();
  std::string reset_program_ = "nvidia-smi";
  ResetRule resets_;
  // GPUs whose reset has failed, with the error. They keep their mode meanwhile.
  reconcile::BackOffTable<int, std::string> reset_pauses_;
  std::set<int> no_mig_;  // GPUs of a hybrid node on which MIG mode cannot be enabled
  // UUIDs of GPUs with a pending MIG mode from before this agent started, while resets are not
  // allowed: the pending mode is cancelled. No value: not observed yet.
  std::optional<std::set<std::string>> stale_pending_modes_;
};

void MigModes::Describe(ConfigFields& fields, DevicePlugins&) {
  std::string rule = "never";
  fields.Word(
      "reset", rule, {"never", "gpu", "node"},
      "For GPUs of such a node that need a reset to change MIG mode (A100, A30). never: they "
      "keep their mode. gpu: the agent resets a GPU that no process uses. node: the mode changes "
      "at a reboot, which the node condition nos.nebuly.com/RebootRequired requests.");
  resets_ = ParseResetRule(rule).value_or(ResetRule::kNever);
  fields.Text("resetProgram", reset_program_,
              "nvidia-smi, used to reset GPUs: a path, or a name in $PATH.");
}

bool MigModes::IsHarmless(const device::Operation& operation, Gpus gpus) const {
  const device::ObservedGpu* gpu = FindGpu(gpus, operation.gpu);
  return operation.ChangesMig() && gpu != nullptr && HasPendingMode(*gpu) &&
         !Switches(operation, *gpu);
}

void MigModes::Adapt(SharingSettings& settings, const cluster::Node& node, const Failures& failures,
                     Time now) {
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
    if (reset_pauses_.Resting(gpu, now)) settings.not_reset.insert(gpu);
  }
  settings.no_mig = no_mig_;
}

// A mode that becomes pending later was set by another tool and is kept if resets are not allowed.
void MigModes::OnObserved(ObservedState& round) {
  dense_->Look(round.devices);
  const bool first = !stale_pending_modes_;
  if (first) stale_pending_modes_.emplace();
  for (const device::ObservedGpu& gpu : round.devices.gpus) {
    if (!HasPendingMode(gpu)) {
      stale_pending_modes_->erase(gpu.uuid);
    } else if (first && resets_ == ResetRule::kNever) {
      stale_pending_modes_->insert(gpu.uuid);
    }
  }
}

std::optional<device::Operation> MigModes::Next(const ObservedState& round,
                                                const Deferral& deferral) const {
  for (const device::ObservedGpu& gpu : round.devices.gpus) {
    const bool stale = stale_pending_modes_ && stale_pending_modes_->contains(gpu.uuid);
    if (!stale || !HasPendingMode(gpu)) continue;
    using enum device::Operation::Kind;
    const bool mig = gpu.mode == device::GpuMode::kMig;
    device::Operation operation{mig ? kEnableMig : kDisableMig, gpu.index, "", 0, 0, gpu.uuid};
    if (!deferral.operation(operation)) return operation;
  }
  return std::nullopt;
}

std::optional<Status> MigModes::Apply(const device::Operation& operation, Gpus gpus,
                                      device::Backend& backend) {
  if (!operation.ChangesMig()) return std::nullopt;
  Status done = device::Apply(operation, backend);
  const bool resets = resets_ != ResetRule::kNever;
  if (done.ok() || !resets || !IsPending(operation, gpus, backend)) return done;
  if (resets_ == ResetRule::kNode) return Status::Ok();  // the reboot completes it
  NOS_RETURN_IF_ERROR(backend.ResetGpu(operation.gpu));
  reset_pauses_.Forget(operation.gpu);
  return Status::Ok();
}

bool MigModes::Delay(const device::Operation& operation, const Status& error, Gpus gpus, Time now) {
  const device::ObservedGpu* gpu = FindGpu(gpus, operation.gpu);
  if (gpu == nullptr || !gpu->mig_after_reset || !Switches(operation, *gpu)) return false;
  reset_pauses_.Failed(operation.gpu, now).note = error.message();
  return true;
}

bool MigModes::Delays(const device::GpuInfo& info, Time now) const {
  const bool at_reboot = resets_ == ResetRule::kNode && WaitsForReset(info);
  return info.mig_enabled && (at_reboot || reset_pauses_.Resting(info.index, now));
}

std::optional<gpu::Obstacle> MigModes::WhyNot(int gpu, const device::ObservedGpu* observed) const {
  if (observed != nullptr && resets_ == ResetRule::kNode && HasPendingMode(*observed)) {
    return gpu::Obstacle{gpu, "", gpu::obstacles::kNeedsReboot,
                         DescribePendingMode(*observed) + " when the node is rebooted"};
  }
  if (const auto* failed = reset_pauses_.Find(gpu)) {
    return gpu::Obstacle{gpu, "", gpu::obstacles::kNotReset,
                         fmt::format("GPU {} keeps its MIG mode for now: {}", gpu, failed->note)};
  }
  return std::nullopt;
}

std::optional<reconcile::WantedCondition> MigModes::Condition(Gpus gpus) const {
  std::vector<std::string> waiting;
  for (const device::ObservedGpu& gpu : gpus) {
    if (resets_ != ResetRule::kGpu && HasPendingMode(gpu)) {
      waiting.push_back(DescribePendingMode(gpu));
    }
  }
  const std::string type(kRebootRequired);
  if (waiting.empty()) return reconcile::WantedCondition{type, "False", "NoRebootPending", ""};
  return reconcile::WantedCondition{
      type, "True", "MigModePending",
      Shortened(Join(waiting, ", ") + " when the node is rebooted", kMaxMessage)};
}

}  // namespace

std::shared_ptr<SharingModeStrategy> MakeMigModes(const SharingOptions& options) {
  return std::make_shared<MigModes>(options.resets, options.reset_pauses);
}

}  // namespace nos::agent
