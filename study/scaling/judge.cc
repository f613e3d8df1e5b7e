#include "study/scaling/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <string_view>
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

class Judge {
 public:
  Judge(std::span<const ScalingJob> jobs, const StageOptions& options)
      : jobs_(jobs), options_(options), runs_(jobs.size()), counts_(options.pools.size()) {}

  Status Hear(const StageAction& action) {
    if (action.at < now_) return Wrong(action, "time goes back");
    now_ = action.at;
    if (action.kind == StageAction::kAsk) return Ask(action);
    if (action.node < 0 || action.node >= static_cast<int>(nodes_.size())) {
      return Wrong(action, "there is no such node");
    }
    if (action.kind == StageAction::kRemove) return Remove(action);
    if (action.job < 0 || action.job >= static_cast<int>(jobs_.size())) {
      return Wrong(action, "there is no such job");
    }
    if (action.kind == StageAction::kEnd) return End(action);
    return action.kind == StageAction::kStart ? Start(action) : Move(action);
  }

  Status Close() const {
    for (size_t j = 0; j < runs_.size(); ++j) {
      if (runs_[j].state != Run::kDone) return Internal(fmt::format("job {} has not ended", j));
    }
    for (size_t n = 0; n < nodes_.size(); ++n) {
      if (!nodes_[n].gone) return Internal(fmt::format("node {} has not gone", n));
    }
    return Status::Ok();
  }

 private:
  static Status Wrong(const StageAction& action, std::string_view what) {
    return Internal(
        fmt::format("at {} s, job {}, node {}: {}", action.at, action.job, action.node, what));
  }

  Status Ask(const StageAction& action) {
    if (action.node != static_cast<int>(nodes_.size())) return Wrong(action, "nodes are numbered");
    if (action.pool < 0 || action.pool >= static_cast<int>(counts_.size())) {
      return Wrong(action, "there is no such pool");
    }
    const ScalingPool& pool = options_.pools[action.pool];
    Ledger& node = nodes_.emplace_back();
    node.pool = action.pool;
    node.ready = action.at + options_.start_seconds;
    node.slots.resize(pool.gpus);
    node.compute.resize(pool.gpus);
    if (++counts_[action.pool] > pool.max) return Wrong(action, "the pool is at its maximum");
    return Status::Ok();
  }

  Status Remove(const StageAction& action) {
    Ledger& node = nodes_[action.node];
    if (node.gone) return Wrong(action, "it has gone already");
    if (!node.jobs.empty()) return Wrong(action, "jobs run on a node that goes");
    node.gone = true;
    --counts_[node.pool];
    return Status::Ok();
  }

  Status Start(const StageAction& action) {
    Run& run = runs_[action.job];
    if (run.state != Run::kComing) return Wrong(action, "it has started before");
    if (action.at < jobs_[action.job].arrival) return Wrong(action, "it has not come yet");
    if (action.runs_from < action.at) return Wrong(action, "it runs before it starts");
    run.state = Run::kRuns;
    run.runs_from = action.runs_from;
    return Take(action, run);
  }

  Status Move(const StageAction& action) {
    Run& run = runs_[action.job];
    if (run.state != Run::kRuns) return Wrong(action, "what does not run is moved");
    if (run.node == action.node) return Wrong(action, "it is there already");
    Free(action.job, run);
    run.paused += options_.restart_seconds;
    return Take(action, run);
  }

  Status End(const StageAction& action) {
    Run& run = runs_[action.job];
    if (run.state != Run::kRuns || run.node != action.node) {
      return Wrong(action, "what does not run there ends");
    }
    const double due = run.runs_from + jobs_[action.job].duration + run.paused;
    if (std::abs(action.at - due) > kRounding) return Wrong(action, "it has not run as long");
    Free(action.job, run);
    run.state = Run::kDone;
    return Status::Ok();
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

  Status Take(const StageAction& action, Run& run) {
    const ScalingJob& job = jobs_[action.job];
    Ledger& node = nodes_[action.node];
    const ScalingPool& pool = options_.pools[node.pool];
    if (node.gone || action.at < node.ready) return Wrong(action, "the node is not there");
    run.node = action.node;
    run.devices = action.devices;
    node.jobs.insert(action.job);
    node.cpu += job.cpu_milli;
    node.memory += job.memory_mib;
    if (node.cpu > pool.cpu_milli) return Wrong(action, "more cpu than the node has");
    if (node.memory > pool.memory_mib) return Wrong(action, "more memory than the node has");
    if (!IsServed(job, action.devices)) return Wrong(action, "not the devices that it asks for");
    for (const ScalingDevice& device : action.devices) {
      if (device.gpu < 0 || device.gpu >= pool.gpus) return Wrong(action, "there is no such GPU");
      const auto [bits, compute] = Size(device);
      if ((node.slots[device.gpu] & bits) != 0) return Wrong(action, "devices overlap");
      node.slots[device.gpu] |= bits;
      node.compute[device.gpu] += compute;
      if (node.compute[device.gpu] > ScalingModel().compute_slices()) {
        return Wrong(action, "more compute slices than the GPU has");
      }
    }
    return Status::Ok();
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

Status JudgeRun(std::span<const ScalingJob> jobs, const StageOptions& options,
                std::span<const StageAction> log) {
  Judge judge(jobs, options);
  for (const StageAction& action : log) NOS_RETURN_IF_ERROR(judge.Hear(action));
  return judge.Close();
}

}  // namespace nos::study
