// Invariant checker of the scaling simulation: replays the actions of a policy and checks
// independently that they were possible.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "study/scaling/stage.h"

namespace nos::study {

// A violation that makes a run impossible.
struct Fault {
  std::string code;         // one of `faults`
  double at = 0;            // seconds
  int job = -1, node = -1;  // -1: it concerns none
};

namespace faults {

// kUnknown: there is no such node, pool, job or GPU.
inline constexpr const char *kTimeGoesBack = "TimeGoesBack", *kUnknown = "Unknown",
                            *kPoolAboveMaximum = "PoolAboveMaximum", *kNodeGone = "NodeGone",
                            *kNodeNotReady = "NodeNotReady",
                            *kNodeRemovedInUse = "NodeRemovedInUse",
                            *kNeverRemoved = "NeverRemoved", *kStartedTwice = "StartedTwice",
                            *kStartedBeforeArrival = "StartedBeforeArrival",
                            *kRunsBeforeStart = "RunsBeforeStart", *kNotRunning = "NotRunning",
                            *kMovedNowhere = "MovedNowhere", *kWrongDuration = "WrongDuration",
                            *kNeverEnded = "NeverEnded", *kCpuExceeded = "CpuExceeded",
                            *kMemoryExceeded = "MemoryExceeded", *kWrongDevices = "WrongDevices",
                            *kDevicesOverlap = "DevicesOverlap",
                            *kComputeExceeded = "ComputeExceeded";

}  // namespace faults

// "at 7 s, job 1, node 0: DevicesOverlap".
std::string ToText(const Fault& fault);

// Checks that every job runs once, after its arrival and for its duration; on nodes that are ready
// and not removed, within their cpu, memory and GPUs, on devices that provide at least what it
// requests; that no pool exceeds its maximum; that nodes are empty when removed, and that all are
// removed. Returns the first violation.
std::optional<Fault> FindFault(std::span<const ScalingJob> jobs, const StageOptions& options,
                               std::span<const StageAction> log);

}  // namespace nos::study
