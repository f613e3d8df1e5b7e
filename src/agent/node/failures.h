// Device operations that have failed: when each may be retried, and whether the plan should end
// without it.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "device/actuator.h"
#include "kube/work_queue.h"

namespace nos::agent {

class Failures {
 public:
  Failures(kube::BackOff pauses, int giving_up) : pauses_(pauses), giving_up_(giving_up) {}

  void Record(const device::Operation& operation, const Status& error, Time now);
  void Succeeded(const device::Operation& operation);
  void Clear() { entries_.clear(); }
  // Forgets all operations except these (Operation::ToString): no target requests the others.
  void Keep(const std::set<std::string>& names);

  bool Pausing(const device::Operation& operation, Time now) const;
  std::optional<Time> NextRetry(Time now) const;
  // True if the operation has failed so often, or so definitely, that no plan should wait for it.
  // AllGivenUp: true for every failing operation.
  bool GivenUp(const device::Operation& operation) const;
  bool AllGivenUp() const;
  // MIG mode is off and stays off until an administrator acts.
  bool CannotEnableMig(int gpu) const;
  // The failures as obstacles with code "DeviceError".
  std::vector<gpu::Obstacle> Obstacles() const;

 private:
  struct Entry {
    device::Operation operation;
    Status error;
    int count = 0;
    bool definite = false;
    Time retry_at{};
  };

  bool GivenUp(const Entry& entry) const { return entry.definite || entry.count >= giving_up_; }

  kube::BackOff pauses_;
  int giving_up_;
  std::map<std::string, Entry> entries_;
};

}  // namespace nos::agent
