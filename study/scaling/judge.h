// Whether a run of the scaling simulation was possible: what a policy did, played again by somebody
// who believes nothing of it.
#pragma once

#include <span>

#include "base/status.h"
#include "study/scaling/stage.h"

namespace nos::study {

// Every job that is there runs once, after it came, for as long as it says; on nodes that are ready
// and not gone, within their cpu, memory and GPUs, on devices that are what it asks for or more; no
// pool exceeds its maximum; nodes go empty, and all of them do.
// Error: kInternal saying what was wrong, and when.
Status JudgeRun(std::span<const ScalingJob> jobs, const StageOptions& options,
                std::span<const StageAction> log);

}  // namespace nos::study
