// GPU and MIG device utilization from a DCGM exporter on the same node, for GPUs whose driver does
// not report it in MIG mode (Ampere). Pure functions.
//
// Source of names and labels: NVIDIA/dcgm-exporter, README and etc/default-counters.csv:
//   DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu="0",UUID="GPU-..",GPU_I_PROFILE="1g.5gb",GPU_I_ID="3",...}
//   0.42
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "telemetryreporter/node_sample.h"

namespace nos::telemetry {

struct DcgmUse {
  std::string gpu;                     // UUID
  std::optional<uint32_t> instance{};  // GpuInstance::id; nullopt: the whole GPU
  double active = 0;                   // share of time, 0 to 1
};

// Utilization values in a text in Prometheus' format. Skips lines that cannot be parsed, and values
// beyond the first few thousand.
std::vector<DcgmUse> ReadDcgmText(std::string_view text);

// Fills in utilization that the driver did not measure.
void FillUtilization(const std::vector<DcgmUse>& uses, NodeSample& sample);

}  // namespace nos::telemetry
