// Records if the last write to the store succeeded.
//
//   StoreHealth health(metrics);
//   health.Set(store.Transaction(write));  // logs when writing starts to fail, and when it resumes
//   if (!health.Get().ok()) ...
//
// Thread-safe.
#pragma once

#include <mutex>

#include "base/metrics.h"
#include "base/status.h"

namespace nos::telemetryserver {

class StoreHealth {
 public:
  // `metrics` must outlive this object; failures are counted there.
  explicit StoreHealth(Metrics& metrics) : metrics_(metrics) {}

  void Set(const Status& status);
  // OK, or why writing fails.
  Status Get() const;
  bool failing() const { return !Get().ok(); }

 private:
  Metrics& metrics_;
  mutable std::mutex mutex_;
  Status status_;
};

}  // namespace nos::telemetryserver
