// Changes of MIG mode on a hybrid node, and the resets that they need
// (docs/decisions/0030-resets.md).
//
//   MigModes modes(ResetRule::kGpu, backend, {minutes(1), hours(1)});
//   modes.AddTo(settings, *node, failures, now);  // what the GPUs can become now
//   modes.Observed(devices.gpus);
//   const Status done = modes.Apply(operation, devices.gpus);  // with the reset, if allowed
//   if (!done.ok() && given_up) modes.Delay(operation, done, devices.gpus, now);
//
// On some GPUs (Ampere) a requested mode is pending until a reset. The reset rule says who resets:
// the agent (kGpu), a reboot that a condition of the node requests (kNode), or nobody (kNever). A
// GPU that cannot be reset keeps its mode for a growing pause, so that plans can use it in that
// mode. A mode that was pending when the agent started may be left over from an agent that crashed;
// if resets are not allowed it is cancelled. Owned by one thread.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "agent/node/devices.h"
#include "agent/node/failures.h"
#include "agent/node_modes.h"
#include "device/actuator.h"
#include "device/backend.h"
#include "kube/work_queue.h"
#include "reconcile/condition.h"

namespace nos::agent {

// True if the operation only cancels a pending MIG mode. It does not change the GPU now or at the
// next reset, so it is safe while pods use the GPU.
bool CancelsPendingMode(const device::Operation& operation,
                        std::span<const device::ObservedGpu> gpus);

class MigModes {
 public:
  using Gpus = std::span<const device::ObservedGpu>;

  // `backend` must outlive this. `pauses`: how long a GPU that could not be reset keeps its mode.
  MigModes(ResetRule resets, device::Backend& backend, kube::BackOff pauses)
      : resets_(resets), backend_(backend), reset_pauses_(pauses) {}

  // Sets the parts of `settings` that are about MIG mode. settings.hybrid must be set. A GPU on
  // which MIG mode cannot be enabled (`failures`) stays without until the node's label changes.
  void AddTo(SharingSettings& settings, const cluster::Node& node, const Failures& failures,
             Time now);
  // Records the pending modes of GPUs as observed.
  void Observed(Gpus gpus);

  // The next operation that cancels a left-over pending mode; no spec has to request it.
  std::optional<device::Operation> NextCancel(
      Gpus gpus, const std::function<bool(const device::Operation&)>& deferred) const;
  // Applies any operation, including the reset that it needs. If a reboot completes it, OK means
  // that the mode is pending. REQUIRES: no pod uses a GPU that it switches.
  Status Apply(const device::Operation& operation, Gpus gpus);
  // After `operation` has failed for good: true if it needs a reset, which is then delayed. The GPU
  // keeps its mode, and no retry is due before a new plan requests it.
  bool Delay(const device::Operation& operation, const Status& error, Gpus gpus, Time now);
  // True if the GPU is in MIG mode and leaves it later: at a reboot, or after a pause.
  bool LeavesLater(const device::GpuInfo& info, Time now) const;

  // The reason why the GPU cannot have the mode that its spec needs; none if that is no matter of
  // MIG mode. `observed`: null if the GPU is not observed.
  std::optional<gpu::Obstacle> WhyNot(int gpu, const device::ObservedGpu* observed) const;
  // Condition kRebootRequired: True while a mode waits for a reset that this agent does not do.
  reconcile::WantedCondition RebootRequired(Gpus gpus) const;

 private:
  bool IsPending(const device::Operation& operation, Gpus gpus) const;

  const ResetRule resets_;
  device::Backend& backend_;
  ResetPauses reset_pauses_;
  std::set<int> no_mig_;  // GPUs of a hybrid node on which MIG mode cannot be enabled
  // UUIDs of GPUs with a pending MIG mode from before this agent started, while resets are not
  // allowed: the pending mode is cancelled. No value: not observed yet.
  std::optional<std::set<std::string>> stale_pending_modes_;
};

}  // namespace nos::agent
