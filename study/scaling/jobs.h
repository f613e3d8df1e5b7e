// The jobs of the scaling simulation: arrival, duration and requests.
//
//   NOS_ASSIGN(auto jobs, OpenbJobs({"pods.csv", text}, {.first_day = 115, .days = 7}));
//   auto others = BurstJobs({.days = 14, .seed = 1});
//
// All GPUs are of ScalingModel(). Pure: equal options give equal jobs, sorted by arrival.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "gpu/catalogue.h"
#include "study/openb/trace.h"

namespace nos::study {

// H100-80GB, because it switches between MIG and whole GPUs without a reset.
const gpu::Model& ScalingModel();
// REQUIRES: the model has a profile of this name.
const gpu::Profile& ScalingProfile(std::string_view name);

struct ScalingJob {
  double arrival = 0, duration = 0;  // seconds; the job ends after running for `duration`
  int64_t cpu_milli = 0, memory_mib = 0;
  int gpus = 0;       // whole GPUs on one node; or
  std::string slice;  // one slice: "3g.40gb"
};

// The requested placement slots; a whole GPU has eight.
int SlotsOf(const ScalingJob& job);

// Replays the openb trace, from creation to deletion of each pod.
struct OpenbWindow {
  // The window of the trace. Pods created before the window that still run arrive at its start.
  double first_day = 115, days = 7;
  bool by_memory = false;  // converts fractions to slices, see SliceFor
};
// Leaves out pods without GPUs and pods that never ran. Pods that outlive the window end with it.
// Error: kInvalid for an invalid file ("pods.csv:17: creation_time: ..."), or if no job is left.
Result<std::vector<ScalingJob>> OpenbJobs(const OpenbFile& pods, const OpenbWindow& window);

// The smallest slice with at least this share of a GPU, by compute slices (sevenths) or by memory
// (eighths); "" if only the whole GPU is enough.
std::string SliceFor(int64_t milli, bool by_memory);

// Jobs similar to those of a training cluster: several equal ones at once, with a power of two of
// GPUs; most are short, a few very long. docs/simulate-scaling.md states which numbers come from a
// published trace.
struct BurstOptions {
  double days = 14;
  double jobs_a_day = 116;
  double slices = 0;  // 0 to 1: share of the bursts whose jobs request a slice
  uint64_t seed = 1;
};
std::vector<ScalingJob> BurstJobs(const BurstOptions& options);

}  // namespace nos::study
