// Runs one reconciler with one key over its own caches. It has no thread: production runs it on a
// thread with RunUntil, the simulator calls Step.
//
//   Runner runner(partitioner, transport, {.key = "cluster"});
//   while (runner.Step(clock)) {}
//   world.WakeAt(runner.NextDue());
//
// Runner and reconciler may be destroyed at any point and created again, as after a crash and
// restart.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/wake_signal.h"
#include "kube/work_queue.h"
#include "reconcile/reconciler.h"

namespace nos::reconcile {

struct RunnerOptions {
  std::string key = std::string(kClusterKey);
  std::string pod_field_selector{}, node_field_selector{};
  BackOff back_off{};
  Duration relist_every = std::chrono::minutes(10);
  // Also watch the cluster context (Listers::context).
  bool watch_context = false;
  std::vector<std::string_view> context_kinds{};  // watch only these kinds; empty: all
  bool watch_devices = true;                      // of all kinds also those of resource.k8s.io
  // Called from any thread when Step has something to process.
  std::function<void()> wake{};
};

// Options for an agent: its own node and the pods bound to it.
RunnerOptions ForNode(const std::string& node);

class Runner {
 public:
  Runner(Reconciler& reconciler, kube::Transport& transport, RunnerOptions options = {})
      : Runner(transport, std::move(options)) {
    Use(&reconciler);
  }
  // A stand-by: keeps its caches current until Use gives it a reconciler.
  explicit Runner(kube::Transport& transport, RunnerOptions options = {});

  // Requests a reconciliation although no cache has changed. Thread-safe.
  void Poke(Time now) { queue_.Add(options_.key, now); }
  // Uses this reconciler from the next Step on, which calls it at once; null: stand by. The
  // reconciler must outlive its use.
  void Use(Reconciler* reconciler);

  // Processes the API server's events, then calls the reconciler if something changed or its time
  // has come. Returns true if anything was done; then call Step again at once.
  bool Step(const Clock& clock);
  // When Step has work even if no event arrives.
  std::optional<Time> NextDue() const;
  // The error of the last reconciliation, or OK.
  const Status& last_error() const { return last_error_; }
  // The error of the last failed list or watch, or OK.
  Status ReadError() const;
  const Listers& view() const { return view_; }
  // True if all caches have been listed.
  bool synced() const {
    return pods_.synced() && nodes_.synced() && (context_ == nullptr || context_->synced());
  }

 private:
  void Schedule(const std::string& key, const ReconcileResult& outcome, Time now);

  RunnerOptions options_;
  Reconciler* reconciler_ = nullptr;
  kube::Client client_;
  kube::Cache<cluster::Pod> pods_;
  kube::Cache<cluster::Node> nodes_;
  std::unique_ptr<ContextCaches> context_;
  Changes changes_;
  Listers view_{pods_, nodes_, nullptr, &changes_};
  kube::WorkQueue queue_;
  bool news_ = false;  // something changed since the last call of the reconciler
  Status last_error_;
};

// Runs `runner` until `stop` returns true. Between steps it waits for the wake signal `bell` or the
// next due time. Signal it when something has arrived (RunnerOptions::wake) and when `stop` has
// become true. `each` is called before every step and may replace the reconciler.
void RunUntil(const std::function<bool()>& stop, Runner& runner, WakeSignal& bell,
              const Clock& clock, const std::function<void()>& each);

}  // namespace nos::reconcile
