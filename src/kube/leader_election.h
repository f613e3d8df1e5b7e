// Leader election among replicas: the holder of a Lease (coordination.k8s.io/v1) leads. Follows
// client-go's leader election, so candidates of both implementations can compete for one Lease.
//
//   LeaderElector elector({.ns = "nos", .name = "nos-partitioner", .identity = "pod-1_6f0c..."});
//   elector.Step(client, clock.Now());            // at NextDue()
//   if (elector.Leads(clock.Now())) { ... }
//   elector.Release(client);                      // at the end, so that a successor need not wait
//
// A state machine without thread or clock. Another replica's lease expires by our own clock: if we
// have seen no change for its lease duration. Clocks of machines are never compared. Not
// thread-safe: one owner.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "base/clock.h"
#include "kube/client.h"

namespace nos::kube {

struct LeaderElectionOptions {
  std::string ns, name;
  std::string identity;  // of this process; never reuse one
  Duration lease = std::chrono::seconds(15);
  Duration renew = std::chrono::seconds(10);  // leadership ends if not renewed for this long
  Duration retry = std::chrono::seconds(2);   // between attempts to acquire or renew it
  // Annotations that the leader keeps on the Lease, for those who want to know how it works. Called
  // at each attempt; null: none.
  std::function<std::map<std::string, std::string>()> annotations = nullptr;
};

class LeaderElector {
 public:
  explicit LeaderElector(LeaderElectionOptions options) : options_(std::move(options)) {}

  // Acquires or renews the lease if that is due. Afterwards `error()` is the cause of a failure, or
  // OK.
  void Step(Client& client, Time now);
  bool Leads(Time now) const { return now < LeadsUntil(); }
  // End of leadership unless renewed before; in the distant past if it does not lead.
  Time LeadsUntil() const { return renewed_ ? *renewed_ + options_.renew : Time{}; }
  Time NextDue() const { return due_; }
  // The holder of the lease as last seen; "": none.
  const std::string& holder() const { return holder_; }
  const Status& error() const { return error_; }
  // Best effort. Afterwards this elector does not lead.
  void Release(Client& client);

 private:
  Status Try(Client& client, Time now);
  Status Take(Client& client, const Json& lease, Time now);
  void Observe(const Json& lease, Time now);
  JsonObject Spec(Time now) const;
  JsonObject Metadata() const;

  LeaderElectionOptions options_;
  Time due_{};
  std::optional<Time> renewed_;   // request time of the last successful renewal
  std::string holder_, version_;  // of the lease as last seen
  Time changed_{};                // when we saw it change
  Status error_;
};

}  // namespace nos::kube
