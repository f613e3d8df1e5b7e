// The state of the scaling simulation: pending, running and ended jobs, requested, ready and
// removed nodes, and the time. A Scaler makes the decisions.
//
//   Stage stage(jobs, options);
//   MyScaler scaler(stage);
//   NOS_RETURN_IF_ERROR(stage.Run(scaler));
//   if (const auto fault = FindFault(jobs, options, stage.log())) ...   // checker.h
//
// The stage executes and logs every action without checking it; FindFault checks the log.
#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <queue>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "base/status.h"
#include "study/scaling/jobs.h"

namespace nos::study {

// A pool of equal nodes. A node costs its number of GPUs per hour.
struct ScalingPool {
  std::string name;
  int gpus = 8;
  int64_t cpu_milli = 128'000, memory_mib = 1'048'576;
  int max = 1000;
};

struct StageOptions {
  std::vector<ScalingPool> pools;
  double start_seconds = 300;   // from the request of a node until it runs jobs
  double restart_seconds = 60;  // during which a moved job does not run
  std::function<void(size_t ended)> on_progress;
};

// A device of the job's node, by GPU index. `profile`: "" is the whole GPU.
struct ScalingDevice {
  int gpu = 0;
  std::string profile;
  int start = 0;
  friend bool operator==(const ScalingDevice&, const ScalingDevice&) = default;
};

struct StageNode {
  int pool = 0;
  double asked = 0, ready = 0;
  double gone = std::numeric_limits<double>::infinity();
  std::set<int> jobs;  // running on it
  bool there(double now) const { return ready <= now && now < gone; }
};

struct StageAction {
  enum Kind { kAsk, kStart, kMove, kEnd, kRemove } kind = kAsk;
  double at = 0;
  int job = -1, node = -1;
  std::vector<ScalingDevice> devices{};
  double runs_from = 0;  // only for kStart
  int pool = -1;         // only for kAsk
};

class Stage;

// A policy. It must keep track of pending jobs itself.
class Scaler {
 public:
  Scaler() = default;
  Scaler(const Scaler&) = delete;
  Scaler& operator=(const Scaler&) = delete;
  virtual ~Scaler() = default;
  virtual Status Arrived(int job) = 0;
  virtual Status Ended(int job, int node) = 0;
  virtual Status Ready(int node) = 0;
  // Time of the next Look call, later than the last one; nullopt: not before the next event.
  virtual std::optional<double> NextLook() const = 0;
  virtual Status Look() = 0;
};

class Stage {
 public:
  // Both arguments must outlive the stage; jobs are sorted by arrival.
  Stage(std::span<const ScalingJob> jobs, const StageOptions& options);

  // Runs until every job has ended and every node is removed. Error: kInternal if that never
  // happens; the scaler's error.
  Status Run(Scaler& scaler);

  double now() const { return now_; }
  const StageOptions& options() const { return options_; }
  const ScalingJob& job(int job) const { return jobs_[job]; }
  const std::set<int>& waiting() const { return waiting_; }       // by arrival
  const std::vector<StageNode>& nodes() const { return nodes_; }  // all nodes ever requested
  const std::set<int>& live() const { return live_; }    // indices of nodes that are not removed
  int CountOf(int pool) const { return counts_[pool]; }  // live nodes only

  // Requests a node and returns its index; it is ready start_seconds later.
  int Ask(int pool);
  // The job runs after `delay`. REQUIRES: it is pending.
  void Start(int job, int node, std::vector<ScalingDevice> devices, double delay);
  // REQUIRES: the job runs.
  void Move(int job, int node, std::vector<ScalingDevice> devices);
  void Remove(int node);

  // The results of the run.
  const std::vector<StageAction>& log() const { return log_; }
  const std::vector<double>& waits() const { return waits_; }  // by job; seconds without running
  int max_nodes() const { return most_; }
  int moves() const { return moves_; }
  size_t ended() const { return ended_; }

 private:
  // Order of simultaneous events.
  enum class Happens { kEnd, kReady, kArrival };
  using Event = std::tuple<double, Happens, int>;  // with the job or node

  Status Handle(const Event& event, Scaler& scaler);

  std::span<const ScalingJob> jobs_;
  const StageOptions& options_;
  double now_ = 0;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::set<int> waiting_, live_;
  std::vector<StageNode> nodes_;
  std::vector<int> counts_;   // by pool
  std::vector<int> node_of_;  // by job; -1: not running
  std::vector<double> ends_;  // by job: expected end
  std::vector<double> waits_;
  std::vector<StageAction> log_;
  size_t ended_ = 0;
  int most_ = 0, moves_ = 0;
};

}  // namespace nos::study
