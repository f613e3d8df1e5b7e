// Readings of a GPU or one of its instances: numbers, and the reason for each metric that cannot be
// read. A plain value.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace nos::device {

// Names and units. Shares are fractions of 1. The window of rates and shares is the driver's own
// (up to a second) or, if counters are compared, the time since the last reading.
namespace metric {
inline constexpr std::string_view kUtilization = "utilization";  // share of time with work on it
inline constexpr std::string_view kMemoryUtilization = "memory_utilization";  // bandwidth
inline constexpr std::string_view kMemoryUsed = "memory_used";                // MiB
inline constexpr std::string_view kMemoryTotal = "memory_total";              // MiB
inline constexpr std::string_view kPower = "power";                           // W
inline constexpr std::string_view kPowerLimit = "power_limit";                // W
inline constexpr std::string_view kTemperature = "temperature";               // degrees Celsius
inline constexpr std::string_view kSmClock = "sm_clock";                      // MHz
inline constexpr std::string_view kMemoryClock = "memory_clock";              // MHz
// Errors since the driver was loaded.
inline constexpr std::string_view kEccCorrected = "ecc_corrected";
inline constexpr std::string_view kEccUncorrected = "ecc_uncorrected";
inline constexpr std::string_view kPcieTx = "pcie_tx";  // KiB/s, from the GPU
inline constexpr std::string_view kPcieRx = "pcie_rx";  // KiB/s, to the GPU
// Not a number: key in Readings::unmeasured if the processes cannot be listed.
inline constexpr std::string_view kProcesses = "processes";
}  // namespace metric

struct GpuProcess {
  uint32_t pid = 0;    // in the host's namespace
  std::string name{};  // the program's file name; "" if unknown
  std::optional<int64_t> memory_mib{};
  std::optional<uint32_t> instance{};  // GpuInstance::id; empty: on the whole GPU
};

struct Readings {
  std::map<std::string, double, std::less<>> metrics;
  std::map<std::string, std::string, std::less<>> unmeasured;  // metric -> reason, a sentence
  std::vector<GpuProcess> processes{};  // of all instances; only for a GPU; by pid

  // Records the value, or the reason of the error. An impossible value is recorded as unmeasured.
  void Take(std::string_view metric, const Result<double>& value);
  // The value; empty if unmeasured.
  std::optional<double> Find(std::string_view metric) const;
};

// Every metric unmeasured for one reason: for a GPU that does not answer.
Readings NothingMeasured(const std::string& why);

}  // namespace nos::device
