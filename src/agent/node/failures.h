// Device operations that have failed: when each may be retried, and whether the plan should end
// without it.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "device/actuator.h"
#include "reconcile/back_off_table.h"

namespace nos::agent {

class Failures {
 public:
  Failures(BackOff pauses, int giving_up) : giving_up_(giving_up), entries_(pauses) {}

  void Record(const device::Operation& operation, const Status& error, Time now);
  void Succeeded(const device::Operation& operation) { entries_.Forget(operation.ToString()); }
  void Clear() { entries_.Clear(); }
  // Forgets all operations except these (Operation::ToString): no target requests the others.
  void Keep(const std::set<std::string>& names);

  bool Pausing(const device::Operation& operation, Time now) const {
    return entries_.Resting(operation.ToString(), now);
  }
  std::optional<Time> NextRetry(Time now) const { return entries_.NextEnd(now); }
  // True if the operation has failed so often, or so definitely, that no plan should wait for it.
  // AllGivenUp: true for every failing operation.
  bool GivenUp(const device::Operation& operation) const;
  bool AllGivenUp() const;
  // MIG mode is off and stays off until an administrator acts.
  bool CannotEnableMig(int gpu) const;
  // The failures as obstacles with code "DeviceError".
  std::vector<gpu::Obstacle> Obstacles() const;

 private:
  struct Failure {
    device::Operation operation;
    Status error;
    bool definite = false;
  };
  using Table = reconcile::BackOffTable<std::string, Failure>;  // by Operation::ToString

  bool GivenUp(const Table::Entry& entry) const {
    return entry.note.definite || entry.failures >= giving_up_;
  }

  int giving_up_;
  Table entries_;
};

}  // namespace nos::agent
