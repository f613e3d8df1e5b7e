#include "study/scaling/checker.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

namespace nos::study {
namespace {

constexpr double kRounding = 1e-3;  // seconds

struct Ledger {
  int pool = 0;
  double ready = 0;
  bool gone = false;
  int64_t cpu = 0, memory = 0;  // in use
  std::vector<uint32_t> slots;  // by GPU: bit set of slots in use
  std::vector<int> compute;     // by GPU: compute slices in use
  std::set<int> jobs;
};

struct Run {
  enum { kComing, kRuns, kDone } state = kComing;
  int node = -1;
  double runs_from = 0, paused = 0;
  std::vector<ScalingDevice> devices;
};

class Checker {
 public:
  Checker(std::span<const ScalingJob> jobs, const StageOptions& options)
      : jobs_(jobs), options_(options), runs_(jobs.size()), counts_(options.pools.size()) {}

  std::optional<Fault> Hear(const StageAction& action) {
    if (action.at < now_) return Wrong(action, faults::kTimeGoesBack);
    now_ = action.at;
    if (action.kind == StageAction::kAsk) return Ask(action);
    if (action.node < 0 || action.node >= static_cast<int>(nodes_.size())) {
      return Wrong(action, faults::kUnknown);
    }
    if (action.kind == StageAction::kRemove) return Remove(action);
    if (action.job < 0 || action.job >= static_cast<int>(jobs_.size())) {
      return Wrong(action, faults::kUnknown);
    }
    if (action.kind == StageAction::kEnd) return End(action);
    return action.kind == StageAction::kStart ? Start(action) : Move(action);
  }

  std::optional<Fault> Close() const {
    for (size_t j = 0; j < runs_.size(); ++j) {
      if (runs_[j].state == Run::kDone) continue;
      return Fault{faults::kNeverEnded, now_, static_cast<int>(j), runs_[j].node};
    }
    for (size_t n = 0; n < nodes_.size(); ++n) {
      if (nodes_[n].gone) continue;
      return Fault{faults::kNeverRemoved, now_, -1, static_cast<int>(n)};
    }
    return std::nullopt;
  }

 private:
  static Fault Wrong(const StageAction& action, const char* code) {
    return {code, action.at, action.job, action.node};
  }

  std::optional<Fault> Ask(const StageAction& action) {
    if (action.node != static_cast<int>(nodes_.size())) return Wrong(action, faults::kUnknown);
    if (action.pool < 0 || action.pool >= static_cast<int>(counts_.size())) {
      return Wrong(action, faults::kUnknown);
    }
    const ScalingPool& pool = options_.pools[action.pool];
    Ledger& node = nodes_.emplace_back();
    node.pool = action.pool;
    node.ready = action.at + options_.start_seconds;
    node.slots.resize(pool.gpus);
    node.compute.resize(pool.gpus);
    if (++counts_[action.pool] > pool.max) return Wrong(action, faults::kPoolAboveMaximum);
    return std::nullopt;
  }

  std::optional<Fault> Remove(const StageAction& action) {
    Ledger& node = nodes_[action.node];
    if (node.gone) return Wrong(action, faults::kNodeGone);
    if (!node.jobs.empty()) return Wrong(action, faults::kNodeRemovedInUse);
    node.gone = true;
    --counts_[node.pool];
    return std::nullopt;
  }

  std::optional<Fault> Start(const StageAction& action) {
    Run& run = runs_[action.job];
    if (run.state != Run::kComing) return Wrong(action, faults::kStartedTwice);
    if (action.at < jobs_[action.job].arrival) return Wrong(action, faults::kStartedBeforeArrival);
    if (action.runs_from < action.at) return Wrong(action, faults::kRunsBeforeStart);
    run.state = Run::kRuns;
    run.runs_from = action.runs_from;
    return Take(action, run);
  }

  std::optional<Fault> Move(const StageAction& action) {
    Run& run = runs_[action.job];
    if (run.state != Run::kRuns) return Wrong(action, faults::kNotRunning);
    if (run.node == action.node) return Wrong(action, faults::kMovedNowhere);
    Free(action.job, run);
    run.paused += options_.restart_seconds;
    return Take(action, run);
  }

  std::optional<Fault> End(const StageAction& action) {
    Run& run = runs_[action.job];
    if (run.state != Run::kRuns || run.node != action.node) {
      return Wrong(action, faults::kNotRunning);
    }
    const double due = run.runs_from + jobs_[action.job].duration + run.paused;
    if (std::abs(action.at - due) > kRounding) return Wrong(action, faults::kWrongDuration);
    Free(action.job, run);
    run.state = Run::kDone;
    return std::nullopt;
  }

  void Free(int job, const Run& run) {
    Ledger& node = nodes_[run.node];
    node.cpu -= jobs_[job].cpu_milli;
    node.memory -= jobs_[job].memory_mib;
    node.jobs.erase(job);
    for (const ScalingDevice& device : run.devices) {
      const auto [bits, compute] = Size(device);
      node.slots[device.gpu] &= ~bits;
      node.compute[device.gpu] -= compute;
    }
  }

  std::optional<Fault> Take(const StageAction& action, Run& run) {
    const ScalingJob& job = jobs_[action.job];
    Ledger& node = nodes_[action.node];
    const ScalingPool& pool = options_.pools[node.pool];
    if (node.gone || action.at < node.ready) return Wrong(action, faults::kNodeNotReady);
    run.node = action.node;
    run.devices = action.devices;
    node.jobs.insert(action.job);
    node.cpu += job.cpu_milli;
    node.memory += job.memory_mib;
    if (node.cpu > pool.cpu_milli) return Wrong(action, faults::kCpuExceeded);
    if (node.memory > pool.memory_mib) return Wrong(action, faults::kMemoryExceeded);
    if (!IsServed(job, action.devices)) return Wrong(action, faults::kWrongDevices);
    for (const ScalingDevice& device : action.devices) {
      if (device.gpu < 0 || device.gpu >= pool.gpus) return Wrong(action, faults::kUnknown);
      const auto [bits, compute] = Size(device);
      if ((node.slots[device.gpu] & bits) != 0) return Wrong(action, faults::kDevicesOverlap);
      node.slots[device.gpu] |= bits;
      node.compute[device.gpu] += compute;
      if (node.compute[device.gpu] > ScalingModel().compute_slices()) {
        return Wrong(action, faults::kComputeExceeded);
      }
    }
    return std::nullopt;
  }

  // The slots as a bit set, and the number of compute slices.
  static std::pair<uint32_t, int> Size(const ScalingDevice& device) {
    const gpu::Model& model = ScalingModel();
    if (device.profile.empty()) return {(1U << model.slots()) - 1, model.compute_slices()};
    const gpu::Profile& profile = ScalingProfile(device.profile);
    return {((1U << profile.slots) - 1) << device.start, profile.compute};
  }

  static bool IsServed(const ScalingJob& job, const std::vector<ScalingDevice>& devices) {
    const gpu::Model& model = ScalingModel();
    for (const ScalingDevice& device : devices) {
      if (device.profile.empty()) continue;
      const auto profile = model.FindProfile(device.profile);
      if (!profile) return false;
      const auto& starts = model.profile(*profile).starts;
      if (std::find(starts.begin(), starts.end(), device.start) == starts.end()) return false;
    }
    if (job.slice.empty()) {
      return static_cast<int>(devices.size()) == job.gpus &&
             std::ranges::all_of(devices, [](const auto& d) { return d.profile.empty(); });
    }
    if (devices.size() != 1) return false;
    if (devices[0].profile.empty()) return true;
    const gpu::Profile& got = ScalingProfile(devices[0].profile);
    const gpu::Profile& asked = ScalingProfile(job.slice);
    return got.compute >= asked.compute && got.slots >= asked.slots;
  }

  std::span<const ScalingJob> jobs_;
  const StageOptions& options_;
  double now_ = 0;
  std::vector<Ledger> nodes_;
  std::vector<Run> runs_;
  std::vector<int> counts_;  // by pool
};

}  // namespace

std::optional<Fault> FindFault(std::span<const ScalingJob> jobs, const StageOptions& options,
                               std::span<const StageAction> log) {
  Checker checker(jobs, options);
  for (const StageAction& action : log) {
    if (auto fault = checker.Hear(action)) return fault;
  }
  return checker.Close();
}

std::string ToText(const Fault& fault) {
  return fmt::format("at {} s, job {}, node {}: {}", fault.at, fault.job, fault.node, fault.code);
}

}  // namespace nos::study
