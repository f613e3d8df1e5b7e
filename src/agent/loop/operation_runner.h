// Chooses the next device operation, and performs it only while no pod can use the device.
//
//   const device::Progress progress = runner.Decide(round, now);
//   if (progress.next) {
//     ...                                            // observe again, without caches
//     if (!runner.MayPerform(*progress.next, round, now)) return;  // decide again later
//     const Status done = runner.Perform(*progress.next, round, clock);
//   }
//
// An operation waits (Decide skips it, others proceed) while its device drains or may be given to a
// pod that is being admitted, while a daemon serves it, and while it pauses after a failure.
// After enough failures the plan ends without it (failures().AllGivenUp()). An error of Perform
// needs no handling beyond a report: the next observation shows the actual state.
//
// Owned by one thread; the references outlive it.
#pragma once

#include <functional>
#include <string>

#include "agent/loop/device_offer.h"
#include "agent/node/failures.h"
#include "agent/node/observed_state.h"
#include "agent/sharing_modes.h"
#include "base/back_off.h"
#include "base/function_ref.h"
#include "base/metrics.h"
#include "device/actuator.h"
#include "device/backend.h"

namespace nos::agent {

class OperationRunner {
 public:
  struct Options {
    BackOff retries{};
    int failures_before_giving_up = 1;
    Metrics* metrics = nullptr;  // null: not measured
  };

  OperationRunner(Options options, device::Backend& backend, DeviceOffer& offer,
                  const SharingModes& modes);

  // The next operation, or the obstacles of the plan if there is none. Sets round.waits if an
  // operation waits for something other than a drain or a retry.
  device::Progress Decide(ObservedState& round, Time now);
  // True if the operation takes away or changes a device, so that caches must not be trusted.
  static bool NeedsUncachedState(const device::Operation& operation);
  // The last check before such an operation. `round`: observed without caches. False: the device is
  // in use, or about to be, or is gone; or its daemon has to stop first.
  bool MayPerform(const device::Operation& operation, ObservedState& round, Time now);
  // Performs the operation and remembers a failure.
  Status Perform(const device::Operation& operation, const ObservedState& round,
                 const Clock& clock);

  const Failures& failures() const { return failures_; }
  // A new plan starts without the failures of the old one.
  void ClearFailures() { failures_.Clear(); }

 private:
  bool Any(FunctionRef<bool(SharingModeStrategy&)> answer) const;
  bool IsHarmless(const device::Operation& operation, const ObservedState& round) const;
  bool MustWait(const device::Operation& operation, ObservedState& round, Time now) const;
  Status Apply(const device::Operation& operation, const ObservedState& round);

  device::Backend& backend_;
  DeviceOffer& offer_;
  const SharingModes& modes_;
  Metrics* const metrics_;
  Failures failures_;
};

}  // namespace nos::agent
