// Runs one reconciler of one key over caches of its own, without a thread: production calls Step in
// a loop on a thread and Wait in between; the simulator calls Step whenever it likes.
//
//   Runner runner(partitioner, transport, {.key = "cluster"});
//   while (runner.Step(clock)) {}
//   world.WakeAt(runner.NextDue());
//
// Destroying runner and reconciler at any point and making new ones is a crash and restart.
#pragma once

#include <optional>
#include <string>

#include "controllers/reconciler.h"
#include "kube/work_queue.h"

namespace nos::controllers {

struct RunnerOptions {
  std::string key = std::string(kClusterKey);
  std::string pod_field_selector{}, node_field_selector{};
  kube::BackOff back_off{};
  Duration relist_every = std::chrono::minutes(10);
};

// What an agent looks at: its own node and the pods bound to it.
RunnerOptions ForNode(const std::string& node);

class Runner {
 public:
  Runner(Reconciler& reconciler, kube::Transport& transport, RunnerOptions options = {});

  // Takes what has arrived from the API server, then reconciles if that or the time asks for it.
  // Returns whether it did anything; if so, there may be more to do at once.
  bool Step(const Clock& clock);
  // When Step will have work even if no event arrives.
  std::optional<Time> NextDue() const;
  // The last reconcile's error, or OK.
  const Status& last_error() const { return last_error_; }
  const View& view() const { return view_; }
  // Both caches have been listed.
  bool synced() const { return pods_.synced() && nodes_.synced(); }

 private:
  void Schedule(const std::string& key, const Outcome& outcome, Time now);

  RunnerOptions options_;
  Reconciler& reconciler_;
  kube::Client client_;
  kube::Cache<cluster::Pod> pods_;
  kube::Cache<cluster::Node> nodes_;
  View view_{pods_, nodes_};
  kube::WorkQueue queue_;
  bool started_ = false;
  Status last_error_;
};

}  // namespace nos::controllers
