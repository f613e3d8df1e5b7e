// A sample as tables for people, as `nos agent --once --print` shows it.
#pragma once

#include <string>

#include "telemetry/node_sample.h"

namespace nos::telemetry {

// Numbers as nvidia-smi prints them (whole per cent, MiB and MHz, tenths of a watt); "-" for what
// is unmeasured, with the reasons below.
std::string SampleText(const NodeSample& sample);

}  // namespace nos::telemetry
