// Rollups and retention of the store, in short steps between commits.
//
//   Upkeep upkeep(store, retention, metrics);
//   while (upkeep.Step(now, /*hurry=*/true)) continue;
//
// A step that fails is logged, counted, and retried after a minute. Used by one thread.
#pragma once

#include "base/metrics.h"
#include "telemetryserver/store.h"

namespace nos::telemetryserver {

class Upkeep {
 public:
  // `store` and `metrics` must outlive this object.
  Upkeep(Store& store, const Retention& retention, Metrics& metrics)
      : store_(store), retention_(retention), metrics_(metrics) {}

  // One bounded step of the work that is due. `hurry`: a step even before the minute is over. True:
  // more is due.
  bool Step(telemetry::Millis now, bool hurry);

 private:
  bool More(const Result<bool>& more, const char* failure);

  Store& store_;
  const Retention retention_;
  Metrics& metrics_;
  telemetry::Millis at_ = 0;  // of the last step
};

}  // namespace nos::telemetryserver
