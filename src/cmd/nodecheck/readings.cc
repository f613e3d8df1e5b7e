// Every reading of the agent: does it answer, and is it plausible?
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "cmd/nodecheck/topics.h"

namespace nos::cmd {
namespace {

namespace metric = device::metric;
using device::Readings;

struct Expected {
  std::string_view name, code, unit;
  double least, most;
  std::string_view bound{};  // a reading that it does not exceed
};
constexpr double kAny = std::numeric_limits<double>::infinity();
constexpr std::array<Expected, 13> kExpected{
    {{metric::kMemoryTotal, "ReadingMemoryTotal", "MiB", 1, 4 << 20},
     {metric::kMemoryUsed, "ReadingMemoryUsed", "MiB", 0, 4 << 20, metric::kMemoryTotal},
     {metric::kUtilization, "ReadingUtilization", "of the time", 0, 1},
     {metric::kMemoryUtilization, "ReadingMemoryUtilization", "of the time", 0, 1},
     {metric::kPower, "ReadingPower", "W", 0, 5000},
     {metric::kPowerLimit, "ReadingPowerLimit", "W", 1, 5000},
     {metric::kTemperature, "ReadingTemperature", "C", 1, 120},
     {metric::kSmClock, "ReadingSmClock", "MHz", 1, 10000},
     {metric::kMemoryClock, "ReadingMemoryClock", "MHz", 1, 50000},
     {metric::kEccCorrected, "ReadingEccCorrected", "errors", 0, kAny},
     {metric::kEccUncorrected, "ReadingEccUncorrected", "errors", 0, 0},
     {metric::kPcieTx, "ReadingPcieTx", "KiB/s", 0, 512 << 20},
     {metric::kPcieRx, "ReadingPcieRx", "KiB/s", 0, 512 << 20}}};

bool Plausible(const Expected& expected, double value, const Readings& readings) {
  const auto bound = expected.bound.empty() ? std::nullopt : readings.Find(expected.bound);
  return value >= expected.least && value <= expected.most && (!bound || value <= *bound);
}

void CheckReading(const Machine& machine, const Expected& expected, Findings& findings) {
  std::vector<std::string> strange, unmeasured;
  double least = kAny, most = -kAny;
  std::string why;
  for (const GpuFacts& gpu : machine.gpus) {
    const std::string name = fmt::format("GPU {}", gpu.described.info.index);
    if (const auto value = gpu.readings.Find(expected.name)) {
      least = std::min(least, *value);
      most = std::max(most, *value);
      if (!Plausible(expected, *value, gpu.readings)) {
        strange.push_back(fmt::format("{}: {} {}", name, *value, expected.unit));
      }
      continue;
    }
    unmeasured.push_back(name);
    const auto reason = gpu.readings.unmeasured.find(expected.name);
    if (reason != gpu.readings.unmeasured.end()) why = reason->second;
  }
  const std::string code(expected.code);
  const bool measured = least <= most;
  if (!strange.empty()) {
    const bool errors = expected.name == metric::kEccUncorrected;
    return findings.Fail(code, errors ? "uncorrected memory errors" : "implausible values",
                         errors ? "reset the GPU; if it happens again, replace it"
                                : "compare with nvidia-smi -q, and report the difference",
                         strange);
  }
  if (!measured) return findings.NotChecked(code, "not readable on these GPUs: " + why);
  std::string text = fmt::format("{:g}{} {}", least,
                                 most > least ? fmt::format(" to {:g}", most) : "", expected.unit);
  if (unmeasured.empty()) return findings.Ok(code, text);
  findings.Ok(code,
              fmt::format("{}; not readable on {}: {}", text, Count(unmeasured.size(), "GPU"), why),
              unmeasured);
}

void CheckProcesses(const Machine& machine, Findings& findings) {
  size_t processes = 0;
  std::vector<std::string> unlisted;
  for (const GpuFacts& gpu : machine.gpus) {
    processes += gpu.readings.processes.size();
    const auto why = gpu.readings.unmeasured.find(metric::kProcesses);
    if (why != gpu.readings.unmeasured.end()) {
      unlisted.push_back(fmt::format("GPU {}: {}", gpu.described.info.index, why->second));
    }
  }
  findings.WarnIfAny("ReadingProcesses", unlisted, "programs on GPUs cannot be listed",
                     "run the command as root, in the host's namespace of processes",
                     Count(processes, "program") + " on GPUs");
}

}  // namespace

void CheckReadings(const Machine& machine, Findings& findings) {
  findings.Begin("Readings");
  if (machine.gpus.empty()) return;
  for (const Expected& expected : kExpected) CheckReading(machine, expected, findings);
  CheckProcesses(machine, findings);
}

}  // namespace nos::cmd
