// A sample as text tables, as printed by `nos agent --once --print`.
#pragma once

#include <string>

#include "telemetryreporter/node_sample.h"

namespace nos::telemetry {

// Numbers in the units of nvidia-smi (whole per cent, MiB and MHz, tenths of a watt); "-" for
// unmeasured values, with the reasons below the tables.
std::string SampleText(const NodeSample& sample);

}  // namespace nos::telemetry
