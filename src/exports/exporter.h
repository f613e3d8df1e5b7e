// Takes what the telemetry server has journaled on to another system, in order, until that has it.
//
//   Exporter exporter("remoteWrite", recorder, std::move(journal), sink, metrics);
//   for (;;) wait for exporter.Step(clock.Now())
//
// What is not delivered stays in the journal, over restarts, as far as the recorder keeps it
// (RecorderOptions::most_backlog); what is dropped there is counted. After a crash the last moments
// may be delivered again. Owns no thread; a step waits for the other system's answers. One owner.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/random.h"
#include "base/status.h"
#include "telemetryserver/journal.h"
#include "telemetryserver/recorder.h"

namespace nos::exports {

inline constexpr MetricFamily kRequests{
    MetricFamily::Kind::kCounter, "nos_telemetry_export_requests_total",
    "Requests to other systems, by export and result: ok, refused (never taken) or failed."};
inline constexpr MetricFamily kDropped{
    MetricFamily::Kind::kCounter, "nos_telemetry_export_dropped_total",
    "What other systems did not get, by export and reason: samples and rows that are refused or "
    "late, envelopes for whose backlog there was no room."};
inline constexpr MetricFamily kLag{
    MetricFamily::Kind::kGauge, "nos_telemetry_export_lag_seconds",
    "How long the oldest that has not been delivered has been here, by export."};

// A system that takes telemetry.
class Sink {
 public:
  virtual ~Sink() = default;
  // What is to be delivered next. Called again only when all before is delivered.
  virtual void Take(std::span<const telemetryserver::Journaled> rows) = 0;
  // OK: all has been delivered, or is never taken and counted. Else: call again; what has been
  // delivered is not sent again. `wish`: how long the other system asks to be left alone, if it
  // does.
  virtual Status Send(Time now, Duration& wish) = 0;
};

class Exporter {
 public:
  // All must outlive this. REQUIRES: `name` is a follower of the recorder.
  Exporter(std::string name, telemetryserver::Recorder& recorder, telemetryserver::JournalReader journal,
           Sink& sink, Metrics& metrics);

  // Delivers some, if it is time to. When to step again. `now`: of a clock that only goes forward.
  Duration Step(Time now);
  // What is wrong now; OK when the last delivery was taken.
  const Status& trouble() const { return trouble_; }

 private:
  Status Next();
  Duration Pause(Duration wish);
  void Say(const Status& trouble);
  void ShowLag();

  const std::string name_;
  telemetryserver::Recorder& recorder_;
  telemetryserver::JournalReader journal_;
  Sink& sink_;
  Metrics& metrics_;
  Random random_;
  int64_t taken_ = 0;             // of the journal, what the sink has been given
  telemetry::Millis oldest_ = 0;  // when that came; 0: the sink has nothing to deliver
  int failures_ = 0;              // in a row
  Time not_before_{};
  Status trouble_;
};

}  // namespace nos::exports
