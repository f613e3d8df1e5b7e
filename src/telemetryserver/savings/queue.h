// Lets pods wait for devices in one queue, as a cluster without repartitioning would serve them.
//
//   const QueueResult result = RunQueue(pods, classes, changes, {from, to}, out_of_time);
//   result.waited     // sum over all pods, until each started or the time ended
//
// By priority, then by time; a pod that does not fit lets later ones pass. Nothing is evicted, so
// pods that ran at the beginning go first. A device that is taken away while it is in use is gone
// once its pod has ended. Starting costs no time.
//
// Pure, except for `out_of_time`. Internal to this library.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/function_ref.h"
#include "telemetryserver/savings/past.h"

namespace nos::telemetryserver {

// One of several devices that serve a request, and how many of them it takes.
struct DeviceOption {
  size_t device = 0;  // index in Devices::all()
  int64_t count = 1;
};

// Pods of one class request the same: from each entry of `needs` one option, the earliest that is
// free. No needs: nothing serves it.
struct PodClass {
  std::vector<std::vector<DeviceOption>> needs;
};

struct QueuedPod {
  size_t pod_class = 0;
  int64_t priority = 0;
  telemetry::Millis asked = 0;
  telemetry::Millis run = kEndless;  // not negative
  bool ran = false;                  // at the beginning
};

struct CapacityChange {
  telemetry::Millis at = 0;
  size_t device = 0;
  int64_t by = 0;
};

struct QueueTimes {
  telemetry::Millis from = 0, to = 0;
  // The run may stop once pods have waited for longer, and its result is incomplete.
  telemetry::Millis max_waited = kEndless;
};

struct QueueResult {
  telemetry::Millis waited = 0;
  size_t started = 0;
  bool stopped = false;  // out of time: the others are not known
};

// REQUIRES: pods and changes are in order of time.
QueueResult RunQueue(const std::vector<QueuedPod>& pods, const std::vector<PodClass>& classes,
                     const std::vector<CapacityChange>& changes, const QueueTimes& times,
                     FunctionRef<bool()> out_of_time);

}  // namespace nos::telemetryserver
