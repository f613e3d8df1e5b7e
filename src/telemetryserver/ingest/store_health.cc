#include "telemetryserver/ingest/store_health.h"

#include "base/log.h"
#include "telemetryserver/metrics.h"

namespace nos::telemetryserver {

void StoreHealth::Set(const Status& status) {
  if (!status.ok()) metrics_.Count(kWriteErrors, {});
  const std::scoped_lock lock(mutex_);
  if (status_.ok() && !status.ok()) {
    Log(LogLevel::kError, "failed to write to the store, rejecting envelopes until it works again",
        {{"error", status.ToString()}});
  } else if (!status_.ok() && status.ok()) {
    Log(LogLevel::kInfo, "resumed storing telemetry");
  }
  status_ = status;
}

Status StoreHealth::Get() const {
  const std::scoped_lock lock(mutex_);
  return status_;
}

}  // namespace nos::telemetryserver
