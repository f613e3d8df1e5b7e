// Runs one reconciler of one key over caches of its own, without a thread: production runs it in
// RunUntil on a thread; the simulator calls Step whenever it likes.
//
//   Runner runner(partitioner, transport, {.key = "cluster"});
//   while (runner.Step(clock)) {}
//   world.WakeAt(runner.NextDue());
//
// Destroying runner and reconciler at any point and making new ones is a crash and restart.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bell.h"
#include "reconcile/reconciler.h"
#include "kube/work_queue.h"

namespace nos::reconcile {

struct RunnerOptions {
  std::string key = std::string(kClusterKey);
  std::string pod_field_selector{}, node_field_selector{};
  kube::BackOff back_off{};
  Duration relist_every = std::chrono::minutes(10);
  // Whether it also watches what surrounds pods and nodes (View::around).
  bool watch_around = false;
  std::vector<std::string_view> around_kinds{};  // of these alone; none: of all
  // Called from any thread when something has arrived that Step would take.
  std::function<void()> wake{};
};

// What an agent looks at: its own node and the pods bound to it.
RunnerOptions ForNode(const std::string& node);

class Runner {
 public:
  Runner(Reconciler& reconciler, kube::Transport& transport, RunnerOptions options = {})
      : Runner(transport, std::move(options)) {
    Use(&reconciler);
  }
  // A stand-by: keeps its caches current until it is given a reconciler.
  explicit Runner(kube::Transport& transport, RunnerOptions options = {});

  // There is something to reconcile that no cache shows. Thread-safe.
  void Poke(Time now) { queue_.Add(options_.key, now); }
  // From the next Step on, which calls it whatever has changed; null: stand by. It must outlive its
  // use here.
  void Use(Reconciler* reconciler);

  // Takes what has arrived from the API server, then reconciles if that or the time asks for it.
  // Returns whether it did anything; if so, there may be more to do at once.
  bool Step(const Clock& clock);
  // When Step will have work even if no event arrives.
  std::optional<Time> NextDue() const;
  // The last reconcile's error, or OK.
  const Status& last_error() const { return last_error_; }
  // Why the API server could not be read last, or OK.
  Status ReadError() const;
  const View& view() const { return view_; }
  // All caches have been listed.
  bool synced() const {
    return pods_.synced() && nodes_.synced() && (around_ == nullptr || around_->synced());
  }

 private:
  void Schedule(const std::string& key, const Outcome& outcome, Time now);

  RunnerOptions options_;
  Reconciler* reconciler_ = nullptr;
  kube::Client client_;
  kube::Cache<cluster::Pod> pods_;
  kube::Cache<cluster::Node> nodes_;
  std::unique_ptr<AroundCaches> around_;
  Changes changes_;
  View view_{pods_, nodes_, nullptr, &changes_};
  kube::WorkQueue queue_;
  bool news_ = false;  // the reconciler has not been called since something changed
  Status last_error_;
};

// Runs `runner` until `stop` returns true, waiting for `bell` and for the time in between. Ring the
// bell when something has arrived (RunnerOptions::wake) and when `stop` has turned true. `each` is
// called before every step and may replace the reconciler.
void RunUntil(const std::function<bool()>& stop, Runner& runner, Bell& bell, const Clock& clock,
              const std::function<void()>& each);

}  // namespace nos::reconcile
