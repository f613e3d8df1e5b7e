// Output of a DCGM exporter: parsed values are possible ones, and no text hides the next line.
#include <string>

#include "target.h"
#include "telemetryreporter/dcgm_text.h"

using namespace nos;  // NOLINT

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(FuzzText(data, size));
  const std::vector<telemetry::DcgmUse> uses = telemetry::ReadDcgmText(text);
  for (const telemetry::DcgmUse& use : uses) {
    Require(use.active >= 0 && use.active <= 1.1, "a share of the time");
    Require(!use.gpu.empty(), "of some GPU");
  }
  const auto more = telemetry::ReadDcgmText(
      text + "\nDCGM_FI_PROF_GR_ENGINE_ACTIVE{UUID=\"GPU-1\",GPU_I_ID=\"3\"} 0.5\n");
  if (uses.size() < 4096) {
    Require(more.size() == uses.size() + 1 && more.back().instance == 3, "the last line is read");
  }
  return 0;
}
