#include "telemetryserver/ingest/store_health.h"

#include <fmt/format.h>

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
  if (!status_.ok() || !since_) return status_;
  const auto age = std::chrono::floor<std::chrono::seconds>(now_() - *since_);
  if (age <= kMaxRound) return Status::Ok();
  return {Code::kUnavailable,
          fmt::format("the store has not answered for {} s: look at its disk", age.count())};
}

bool StoreHealth::failing() const {
  const std::scoped_lock lock(mutex_);
  return !status_.ok();
}

void StoreHealth::Running(bool runs) {
  const std::scoped_lock lock(mutex_);
  since_ = runs ? std::optional(now_()) : std::nullopt;
}

}  // namespace nos::telemetryserver
