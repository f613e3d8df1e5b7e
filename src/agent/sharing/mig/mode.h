// Changes of MIG mode on a hybrid node, and the resets that they need
// (docs/decisions/0030-resets.md).
//
// On some GPUs (Ampere) a requested mode is pending until a reset. The reset rule says who resets:
// the agent (kGpu), a reboot that a condition of the node requests (kNode), or nobody (kNever). A
// GPU that cannot be reset keeps its mode for a growing pause, so that plans can use it in that
// mode. A mode that was pending when the agent started may be left over from an agent that crashed;
// if resets are not allowed it is cancelled. Owned by one thread.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "agent/node_modes.h"
#include "agent/sharing_mode.h"

namespace nos::agent {

class MigModes final : public SharingModeStrategy {
 public:
  // `pauses`: how long a GPU that could not be reset keeps its mode.
  MigModes(ResetRule resets, kube::BackOff pauses) : resets_(resets), reset_pauses_(pauses) {}

  std::string_view section() const override { return "hybrid"; }
  void Describe(ConfigFields& fields, DevicePlugins& plugins) override;
  void AddSettings(SharingSettings& settings) const override;
  // A GPU on which MIG mode cannot be enabled (`failures`) stays without until the node's label
  // changes.
  void Adapt(SharingSettings& settings, const cluster::Node& node, const Failures& failures,
             Time now) override;
  // Records the pending modes.
  void OnObserved(ObservedState& round) override;
  std::optional<gpu::Obstacle> WhyNot(int gpu, const device::ObservedGpu* observed) const override;

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
  std::string reset_program_ = "nvidia-smi";
  ResetRule resets_;
  ResetPauses reset_pauses_;
  std::set<int> no_mig_;  // GPUs of a hybrid node on which MIG mode cannot be enabled
  // UUIDs of GPUs with a pending MIG mode from before this agent started, while resets are not
  // allowed: the pending mode is cancelled. No value: not observed yet.
  std::optional<std::set<std::string>> stale_pending_modes_;
};

}  // namespace nos::agent
