// Errors and deadlines of one step of all relocations.
//
//   StepOutcome outcome(now);
//   outcome.Note(client.Delete(...), "delete placeholder nos/place-r-7k2-0");
//   outcome.Due(deadline);
//   return outcome.Result();   // the first error, and the earliest deadline
//
// A value.
#pragma once

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "reconcile/reconciler.h"

namespace nos::controllers {

class StepOutcome {
 public:
  explicit StepOutcome(Time now) : now_(now) {}

  // Takes the status of a write. A conflict is retried soon, a missing object is no error.
  void Note(const Status& status, std::string_view doing);
  // The next step is due at `time` at the latest.
  void Due(Time time) { due_ = std::min(due_.value_or(time), time); }
  void Due(std::optional<Time> time) {
    if (time) Due(*time);
  }
  reconcile::ReconcileResult Result() const;

 private:
  const Time now_;
  Status error_;
  std::optional<Time> due_;
};

}  // namespace nos::controllers
