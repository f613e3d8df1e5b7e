// Parts of one GPU over an interval without changes: whose they are, and how they were used.
//
//   for (const GpuPart& part : PartsOf(gpu, use, {cost, time, 0})) ledger.Add(KeyOf(part),
//   part.sums);
//
// A slice has the share of its GPU that its memory slots have: 3g.20gb has 4 of the 8 of an A100.
// Slots are what the map, the overview and quotas count, and those of all slices never exceed the
// GPU, which the larger of memory and compute share does. The parts add up to the whole.
//
// Pure. Internal to this library.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "telemetryserver/cost/ledger.h"
#include "telemetryserver/state.h"

namespace nos::telemetryserver {

struct GpuUse {
  bool reported = true;
  bool stranded = false;          // see FreeSlots
  std::optional<int64_t> usable;  // free slots that pods could use; nullopt: all
  // By subject, "instance/MIG-1" or "gpu/GPU-1"; nullopt: not measured.
  FunctionRef<std::optional<double>(const std::string& subject)> utilization;
};

struct GpuPart {
  const telemetry::Holder* holder = nullptr;  // null: no pod has it
  Category category = Category::kFree;
  CostSums sums;
};

std::vector<GpuPart> PartsOf(const telemetry::Gpu& gpu, const GpuUse& use, const CostSums& sums);

}  // namespace nos::telemetryserver
