#include "telemetry/units.h"

#include <map>

namespace nos::telemetry {
namespace {

const std::map<std::string_view, std::string_view> kUnits = {{"power", "W"},
                                                             {"power_limit", "W"},
                                                             {"temperature", "C"},
                                                             {"sm_clock", "MHz"},
                                                             {"memory_clock", "MHz"},
                                                             {"pcie_tx", "KiB/s"},
                                                             {"pcie_rx", "KiB/s"},
                                                             {"memory_used", "MiB"},
                                                             {"memory_total", "MiB"},
                                                             {"memory_free", "MiB"},
                                                             {"cpu_free", "cores"},
                                                             {"ecc_corrected", "errors"},
                                                             {"ecc_uncorrected", "errors"},
                                                             {"seconds_to_slice", "s"},
                                                             {"pods_pending", "pods"},
                                                             {"pods_running", "pods"},
                                                             {"utilization", "ratio"},
                                                             {"memory_utilization", "ratio"},
                                                             {"allocated", "ratio"},
                                                             {"used", "ratio"},
                                                             {"idle", "ratio"},
                                                             {"free", "ratio"},
                                                             {"fragmented", "ratio"},
                                                             {"stranded", "ratio"},
                                                             // Metrics of quotas have the unit of
                                                             // the resource.
                                                             {"guaranteed", ""},
                                                             {"borrowed", ""},
                                                             {"lent", ""}};

}  // namespace

std::string_view UnitOf(std::string_view metric) {
  const auto found = kUnits.find(metric);
  return found == kUnits.end() ? std::string_view() : found->second;
}

bool IsOurs(std::string_view metric) { return kUnits.contains(metric); }

}  // namespace nos::telemetry
