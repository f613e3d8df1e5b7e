// How busy GPUs and MIG devices are, as a DCGM exporter on the same node tells it: for boards on
// which the driver itself cannot say it in MIG mode (Ampere). Pure.
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

#include "telemetry/node_sample.h"

namespace nos::telemetry {

struct DcgmUse {
  std::string gpu;                     // UUID
  std::optional<uint32_t> instance{};  // GpuInstance::id; empty: the whole GPU
  double active = 0;                   // share of the time
};

// The figures of interest in a text in Prometheus' format; lines that cannot be read, and all after
// the first few thousand figures, are passed over.
std::vector<DcgmUse> ReadDcgmText(std::string_view text);

// Fills in what is unmeasured.
void FillUtilization(const std::vector<DcgmUse>& uses, NodeSample& sample);

}  // namespace nos::telemetry
