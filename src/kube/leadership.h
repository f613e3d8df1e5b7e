// Keeps the Lease of leader election on a thread of its own, so that a long plan or a slow request
// does not cost the lease. HttpOptions::may_write keeps a replica that does not lead from writing.
//
//   Leadership leadership(lease_transport, options, [&] { bell.Ring(); });
//   HttpTransport transport(connection, {.may_write = [&] { return leadership.Leads(); }});
//
// Thread-safe.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/boot_clock.h"
#include "base/wake_signal.h"
#include "kube/leader_election.h"
#include "kube/transport.h"

namespace nos::kube {

class Leadership {
 public:
  // `on_change`: leadership was acquired or lost; called on the election thread. `transport` must
  // outlive this and should serve nothing else: other requests would delay the renewal. `now`: of a
  // clock that goes on while the machine is suspended, because another replica then takes the
  // lease.
  Leadership(
      Transport& transport, LeaderElectionOptions options, std::function<void()> on_change,
      std::function<Time()> now = [clock = BootClock()] { return clock.Now(); });
  // Releases the lease, so that another replica need not wait for its expiry.
  ~Leadership();
  Leadership(const Leadership&) = delete;
  Leadership& operator=(const Leadership&) = delete;

  bool Leads() const;
  // The holder of the lease as last seen ("": none), and the error of the last attempt.
  std::string holder() const;
  Status error() const;

 private:
  void Run();
  // `announced`: the last announced state. Returns the current state.
  bool Look(bool announced);

  const std::function<Time()> now_;
  Client client_;
  LeaderElector elector_;  // used by the thread
  const std::function<void()> on_change_;
  std::atomic<Time> leads_until_{Time{}};
  mutable std::mutex mutex_;
  std::string holder_;  // guarded by mutex_
  Status error_;        // guarded by mutex_
  std::atomic<bool> stop_{false};
  WakeSignal bell_;
  std::thread thread_;  // last: its thread uses the others
};

}  // namespace nos::kube
