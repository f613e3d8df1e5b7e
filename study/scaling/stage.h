// Where the scaling simulation plays: jobs that wait, run and end, nodes that are asked for, come
// and go, and the time. Who decides is a Scaler.
//
//   Stage stage(jobs, options);
//   MyScaler scaler(stage);
//   NOS_RETURN_IF_ERROR(stage.Run(scaler));
//   NOS_RETURN_IF_ERROR(JudgeRun(jobs, options, stage.log()));    // judge.h
//
// The stage does as it is told and writes it down; whether that was possible the judge says.
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

// Nodes that are alike. Each costs its GPUs an hour.
struct ScalingPool {
  std::string name;
  int gpus = 8;
  int64_t cpu_milli = 128'000, memory_mib = 1'048'576;
  int max = 1000;
};

struct StageOptions {
  std::vector<ScalingPool> pools;
  double start_seconds = 300;   // from asking for a node until it takes jobs
  double restart_seconds = 60;  // for which a job that is moved does not run
  std::function<void(size_t ended)> on_progress;
};

// On the GPU of this index of the job's node. `profile`: "" is the whole GPU.
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
  std::set<int> jobs;  // on it
  bool there(double now) const { return ready <= now && now < gone; }
};

struct StageAction {
  enum Kind { kAsk, kStart, kMove, kEnd, kRemove } kind = kAsk;
  double at = 0;
  int job = -1, node = -1;
  std::vector<ScalingDevice> devices{};
  double runs_from = 0;  // of kStart
  int pool = -1;         // of kAsk
};

class Stage;

// A policy. What has not been placed waits, and is its to remember.
class Scaler {
 public:
  Scaler() = default;
  Scaler(const Scaler&) = delete;
  Scaler& operator=(const Scaler&) = delete;
  virtual ~Scaler() = default;
  virtual Status Arrived(int job) = 0;
  virtual Status Ended(int job, int node) = 0;
  virtual Status Ready(int node) = 0;
  // When it wants to look around; none: not before something happens. Always later than the last
  // look.
  virtual std::optional<double> NextLook() const = 0;
  virtual Status Look() = 0;
};

class Stage {
 public:
  // Both must outlive it; jobs by arrival.
  Stage(std::span<const ScalingJob> jobs, const StageOptions& options);

  // Until every job has ended and every node has gone. Error: kInternal when that never happens;
  // the scaler's.
  Status Run(Scaler& scaler);

  double now() const { return now_; }
  const StageOptions& options() const { return options_; }
  const ScalingJob& job(int job) const { return jobs_[job]; }
  const std::set<int>& waiting() const { return waiting_; }       // by arrival
  const std::vector<StageNode>& nodes() const { return nodes_; }  // that there ever were
  const std::set<int>& live() const { return live_; }             // of them: asked for and not gone
  int CountOf(int pool) const { return counts_[pool]; }           // of the live ones

  // Returns the node's index; it is ready start_seconds later.
  int Ask(int pool);
  // It begins to run after `delay`. REQUIRES: it waits.
  void Start(int job, int node, std::vector<ScalingDevice> devices, double delay);
  // REQUIRES: it runs.
  void Move(int job, int node, std::vector<ScalingDevice> devices);
  void Remove(int node);

  // What it came to.
  const std::vector<StageAction>& log() const { return log_; }
  const std::vector<double>& waits() const { return waits_; }  // by job; seconds without running
  int most_nodes() const { return most_; }
  int moves() const { return moves_; }
  size_t ended() const { return ended_; }

 private:
  // In this order where they are at once.
  enum class Happens { kEnd, kReady, kArrival };
  using Event = std::tuple<double, Happens, int>;  // of which job or node

  Status Handle(const Event& event, Scaler& scaler);

  std::span<const ScalingJob> jobs_;
  const StageOptions& options_;
  double now_ = 0;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::set<int> waiting_, live_;
  std::vector<StageNode> nodes_;
  std::vector<int> counts_;   // by pool
  std::vector<int> node_of_;  // by job; -1
  std::vector<double> ends_;  // by job: when it will
  std::vector<double> waits_;
  std::vector<StageAction> log_;
  size_t ended_ = 0;
  int most_ = 0, moves_ = 0;
};

}  // namespace nos::study
