// Invariant checker of the scaling simulation: replays the actions of a policy and checks
// independently that they were possible.
#pragma once

#include <span>

#include "base/status.h"
#include "study/scaling/stage.h"

namespace nos::study {

// Checks that every job runs once, after its arrival and for its duration; on nodes that are ready
// and not removed, within their cpu, memory and GPUs, on devices that provide at least what it
// requests; that no pool exceeds its maximum; that nodes are empty when removed, and that all are
// removed. Error: kInternal with the violation and its time.
Status JudgeRun(std::span<const ScalingJob> jobs, const StageOptions& options,
                std::span<const StageAction> log);

}  // namespace nos::study
