#include "telemetryserver/ingest/upkeep.h"

#include "base/log.h"
#include "telemetryserver/metrics.h"

namespace nos::telemetryserver {
namespace {

constexpr telemetry::Millis kUpkeepEvery = 60'000;

}  // namespace

bool Upkeep::Step(telemetry::Millis now, bool hurry) {
  if (!hurry && now >= at_ && now < at_ + kUpkeepEvery) return false;
  at_ = now;
  return More(store_.RollUp(now), "delaying rollups") ||
         More(store_.Expire(now, retention_), "delaying retention");
}

bool Upkeep::More(const Result<bool>& more, const char* delay) {
  if (more.ok()) return *more;
  metrics_.Count(kWriteErrors, {});
  Log(LogLevel::kWarn, delay, {{"error", more.status().ToString()}});
  return false;
}

}  // namespace nos::telemetryserver
