// One of several replicas leads: who holds a Lease (coordination.k8s.io/v1), as client-go's leader
// election does it, so that both kinds of candidates understand each other.
//
//   LeaderElector elector({.ns = "nos", .name = "nos-partitioner", .identity = "pod-1_6f0c..."});
//   elector.Step(client, clock.Now());            // when NextDue() has come
//   if (elector.Leads(clock.Now())) { ... }
//   elector.Release(client);                      // at the end, so that nobody has to wait
//
// A state machine without thread or clock. Another's lease counts as run out by our own clock: when
// it has not changed for as long as it says since we saw it change; clocks of machines are never
// compared. Not thread-safe: one owner.
#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "kube/client.h"

namespace nos::kube {

struct LeaderElectionOptions {
  std::string ns, name;
  std::string identity;  // of this process, never used again
  Duration lease = std::chrono::seconds(15);
  Duration renew = std::chrono::seconds(10);  // leads no longer when not renewed for so long
  Duration retry = std::chrono::seconds(2);   // between attempts to get or keep it
};

class LeaderElector {
 public:
  explicit LeaderElector(LeaderElectionOptions options) : options_(std::move(options)) {}

  // Takes or keeps the lease if that is due. Afterwards `error()` says why that failed, or is OK.
  void Step(Client& client, Time now);
  bool Leads(Time now) const { return now < LeadsUntil(); }
  // Unless renewed before; long ago when it does not lead.
  Time LeadsUntil() const { return renewed_ ? *renewed_ + options_.renew : Time{}; }
  Time NextDue() const { return due_; }
  // Who holds the lease as far as we know; "" nobody.
  const std::string& holder() const { return holder_; }
  const Status& error() const { return error_; }
  // Best effort. Nobody leads here afterwards.
  void Release(Client& client);

 private:
  Status Try(Client& client, Time now);
  Status Take(Client& client, const Json& lease, Time now);
  void Observe(const Json& lease, Time now);
  JsonObject Spec(Time now) const;

  LeaderElectionOptions options_;
  Time due_{};
  std::optional<Time> renewed_;   // when the last renewal that took effect was asked for
  std::string holder_, version_;  // of the lease as last seen
  Time changed_{};                // when we saw it change
  Status error_;
};

}  // namespace nos::kube
