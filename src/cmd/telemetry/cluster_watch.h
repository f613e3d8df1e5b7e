// A copy of what a cluster has, kept by watches on a thread of its own: nodes, pods, and what
// surrounds them.
//
//   ClusterWatch watch(transport);
//   NOS_ASSIGN(const ClusterObjects objects, watch.Objects());
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/bell.h"
#include "cmd/telemetry/read_cluster.h"
#include "reconcile/runner.h"
#include "kube/transport.h"

namespace nos::cmd {

class ClusterWatch {
 public:
  // `transport` must outlive it.
  explicit ClusterWatch(kube::Transport& transport);
  ~ClusterWatch();
  ClusterWatch(const ClusterWatch&) = delete;
  ClusterWatch& operator=(const ClusterWatch&) = delete;

  // As it is now. Waits a moment for what is being read. Error: kUnavailable: it could not be read
  // yet, and why. Thread-safe.
  Result<ClusterObjects> Objects();

 private:
  void Run();

  std::timed_mutex mutex_;  // of the runner
  std::condition_variable_any stepped_;
  Bell bell_;
  std::atomic<bool> stop_{false};
  reconcile::Runner runner_;
  std::thread thread_;  // last: uses the others
};

}  // namespace nos::cmd
