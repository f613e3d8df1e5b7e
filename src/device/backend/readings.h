// What a GPU or one of its instances measures: numbers, and for what cannot be measured the reason.
// A plain value.
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
// (up to a second) or, where counters are compared, the time since the last reading.
namespace metric {
inline constexpr std::string_view kUtilization = "utilization";  // time with work on it
inline constexpr std::string_view kMemoryUtilization = "memory_utilization";  // memory's bandwidth
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
// No number: stands in Readings::unmeasured when the processes cannot be listed.
inline constexpr std::string_view kProcesses = "processes";
}  // namespace metric

struct GpuProcess {
  uint32_t pid = 0;    // of the host
  std::string name{};  // the program's file name; "" when it is not known
  std::optional<int64_t> memory_mib{};
  std::optional<uint32_t> instance{};  // GpuInstance::id; empty: on the whole GPU
};

struct Readings {
  std::map<std::string, double, std::less<>> metrics;
  std::map<std::string, std::string, std::less<>> unmeasured;  // why, in a sentence
  std::vector<GpuProcess> processes{};  // those of all instances; of a GPU only, by pid

  // Takes the value, or why there is none. One that no such thing can have is none.
  void Take(std::string_view metric, const Result<double>& value);
  // The value or nothing.
  std::optional<double> Find(std::string_view metric) const;
};

// Everything asked for is unmeasured for one reason: for a GPU that does not answer.
Readings NothingMeasured(const std::string& why);

}  // namespace nos::device
