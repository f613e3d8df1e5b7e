#include "exports/exporter.h"

#include <algorithm>
#include <functional>

#include "base/back_off.h"
#include "base/log.h"

namespace nos::exports {
namespace {

constexpr Duration kIdle = std::chrono::seconds(1);
constexpr BackOff kPauses{std::chrono::seconds(1), std::chrono::minutes(1)};

}  // namespace

Exporter::Exporter(std::string name, telemetryserver::Recorder& recorder,
                   telemetryserver::JournalReader journal, Sink& sink, Metrics& metrics)
    : name_(std::move(name)),
      recorder_(recorder),
      journal_(std::move(journal)),
      sink_(sink),
      metrics_(metrics),
      random_(std::hash<std::string>()(name_)),
      taken_(recorder.PositionOf(name_)) {}

Duration Exporter::Step(Time now) {
  if (now < not_before_) return not_before_ - now;
  Status sent;
  if (oldest_ == 0) sent = Next();
  ShowLag();
  if (sent.ok() && oldest_ == 0) {
    LogOutcome(sent);
    return kIdle;
  }
  Duration wish{};
  if (sent.ok()) sent = sink_.Send(now, wish);
  LogOutcome(sent);
  if (!sent.ok()) {
    not_before_ = now + Pause(wish);
    return not_before_ - now;
  }
  failures_ = 0;
  oldest_ = 0;
  recorder_.Advance(name_, taken_);
  return Duration::zero();
}

Status Exporter::Next() {
  NOS_ASSIGN(const std::vector<telemetryserver::Journaled> rows, journal_.After(taken_));
  if (rows.empty()) return Status::Ok();
  const int64_t missing = rows.front().id - taken_ - 1;
  if (missing > 0) {
    metrics_.Count(kDropped, {{"export", name_}, {"reason", "backlog"}},
                   static_cast<double>(missing));
    Log(LogLevel::kWarn, "dropped undelivered telemetry: the backlog exceeded its limit",
        {{"export", name_}, {"envelopes", std::to_string(missing)}});
  }
  sink_.Take(rows);
  taken_ = rows.back().id;
  oldest_ = std::max<telemetry::Millis>(1, rows.front().received);
  return Status::Ok();
}

Duration Exporter::Pause(Duration wish) {
  return std::max(kPauses.Jittered(++failures_, random_.Uniform()),
                  std::min(wish, Duration(std::chrono::minutes(10))));
}

void Exporter::LogOutcome(const Status& outcome) {
  if (!outcome.ok() && outcome.message() != trouble_.message()) {
    Log(LogLevel::kWarn, "failed to export telemetry, keeping it in the journal",
        {{"export", name_}, {"error", outcome.message()}});
  }
  if (outcome.ok() && !trouble_.ok()) {
    Log(LogLevel::kInfo, "resumed export of telemetry", {{"export", name_}});
  }
  trouble_ = outcome;
}

void Exporter::ShowLag() {
  const double lag =
      oldest_ == 0 ? 0
                   : static_cast<double>(std::max<int64_t>(0, recorder_.Now() - oldest_)) / 1000;
  metrics_.Set(kLag, {{"export", name_}}, lag);
}

}  // namespace nos::exports
