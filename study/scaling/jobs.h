// The jobs of the scaling simulation: when each comes, how long it runs, what it asks for.
//
//   NOS_ASSIGN(auto jobs, OpenbJobs({"pods.csv", text}, {.first_day = 115, .days = 7}));
//   auto others = BurstJobs({.days = 14, .seed = 1});
//
// All GPUs are ScalingModel's. Pure: equal options give equal jobs, in the order in which they
// come.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "gpu/catalogue.h"
#include "study/openb/trace.h"

namespace nos::study {

// H100-80GB: its GPUs change between MIG and whole without a reset.
const gpu::Model& ScalingModel();

struct ScalingJob {
  double arrival = 0, duration = 0;  // seconds; it has run that long when it ends
  int64_t cpu_milli = 0, memory_mib = 0;
  int gpus = 0;       // whole GPUs of one node; or
  std::string slice;  // one slice: "3g.40gb"
};

// What part of a GPU it asks for: placement slots, of eight that a whole one has.
int SlotsOf(const ScalingJob& job);

// The openb trace replayed, creation to deletion.
struct OpenbWindow {
  double first_day = 115,
         days = 7;         // of the trace: what was created before, and lives, comes first
  bool by_memory = false;  // how a fraction becomes a slice, see SliceFor
};
// Left out: pods without GPUs, and those that never ran. What outlives the window ends with it.
// Error: kInvalid for a bad file ("pods.csv:17: creation_time: ..."), or when nobody is left.
Result<std::vector<ScalingJob>> OpenbJobs(const OpenbFile& pods, const OpenbWindow& window);

// The smallest slice that is enough of a GPU, counted in compute slices (sevenths) or in memory
// (eighths); "": none but the whole GPU is.
std::string SliceFor(int64_t milli, bool by_memory);

// Jobs like those of a training cluster: several alike at once, powers of two of GPUs, most short
// and a few very long. docs/simulate-scaling.md says which numbers are of a published trace.
struct BurstOptions {
  double days = 14;
  double jobs_a_day = 116;
  double slices = 0;  // 0 to 1: the part of the bursts whose jobs ask for a slice
  uint64_t seed = 1;
};
std::vector<ScalingJob> BurstJobs(const BurstOptions& options);

}  // namespace nos::study
