// Deterministic reports of simulated clusters, for tests and benchmarks.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "base/clock.h"
#include "telemetry/records.h"

namespace nos::telemetry {

inline constexpr Millis kReportStart = 1'763'760'000'000;

// Returns the start of the reports until Set is called. Thread-safe.
class SetClock final : public Clock {
 public:
  Time Now() const override { return Time(std::chrono::milliseconds(now_.load())); }
  void Set(Millis now) { now_ = now; }

 private:
  std::atomic<Millis> now_{kReportStart};
};

struct FleetShape {
  int nodes = 1, gpus = 8, slices = 7;  // GPUs per node, slices per GPU
};

// Report of the agent of node `node` at `at`: utilization, memory, power and so on of each GPU and
// slice; every 5 minutes the layout, with a pod on each slice except the last one of a GPU.
Json NodeReport(const FleetShape& shape, int node, Millis at, int64_t sequence,
                const std::string& boot = "boot-1");
Json EnvelopeOf(const std::string& source, int64_t sequence, JsonArray records,
                const std::string& boot = "boot-1");
Json PodRecord(Millis at, const std::string& ns, const std::string& name, const std::string& state,
               const std::string& resource, const std::string& node = "");
std::string NodeName(int node);
std::string GpuName(int node, int gpu);
std::string InstanceName(int node, int gpu, int slice);

}  // namespace nos::telemetry
