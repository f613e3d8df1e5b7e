// A copy of the nodes, pods and related objects of a cluster, kept current by watches on its own
// thread.
//
//   ClusterWatch watch(transport);
//   NOS_ASSIGN(const ClusterObjects objects, watch.Objects());
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/wake_signal.h"
#include "cmd/telemetry/read_cluster.h"
#include "kube/transport.h"
#include "reconcile/runner.h"

namespace nos::cmd {

class ClusterWatch {
 public:
  // `transport` must outlive it.
  explicit ClusterWatch(kube::Transport& transport);
  ~ClusterWatch();
  ClusterWatch(const ClusterWatch&) = delete;
  ClusterWatch& operator=(const ClusterWatch&) = delete;

  // The current objects. Waits briefly for caches to sync. Error: kUnavailable: not synced yet,
  // with the reason. Thread-safe.
  Result<ClusterObjects> Objects();

 private:
  void Run();

  std::timed_mutex mutex_;  // guards runner_
  std::condition_variable_any stepped_;
  WakeSignal bell_;
  std::atomic<bool> stop_{false};
  reconcile::Runner runner_;
  std::thread thread_;  // last: uses the other members
};

}  // namespace nos::cmd
