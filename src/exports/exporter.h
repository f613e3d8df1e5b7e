// Sends journaled records of the telemetry server to another system, in order, until it accepts
// them.
//
//   Exporter exporter("remoteWrite", recorder, std::move(journal), sink, metrics);
//   for (;;) wait for exporter.Step(clock.Now())
//
// Undelivered records stay in the journal across restarts, up to the recorder's limit
// (RecorderOptions::max_backlog); records dropped there are counted. After a crash the last
// records may be delivered twice. Owns no thread; a step blocks on the other system's answers. Used
// by one thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "base/status.h"
#include "exports/metrics.h"
#include "telemetryserver/journal.h"
#include "telemetryserver/recorder.h"

namespace nos::exports {

// A system that receives telemetry.
class Sink {
 public:
  virtual ~Sink() = default;
  // Passes the rows to deliver next. Called again only after all earlier rows are delivered.
  virtual void Take(std::span<const telemetryserver::Journaled> rows) = 0;
  // OK: all rows are delivered, or permanently rejected and counted. Otherwise call again;
  // delivered rows are not sent again. `wish`: pause that the other system requests, if any.
  virtual Status Send(Time now, Duration& wish) = 0;
};

class Exporter {
 public:
  // All arguments must outlive this object. REQUIRES: `name` is a follower of the recorder.
  Exporter(std::string name, telemetryserver::Recorder& recorder,
           telemetryserver::JournalReader journal, Sink& sink, Metrics& metrics);

  // Delivers a batch if it is due. Returns the time until the next step. `now`: from a monotonic
  // clock.
  Duration Step(Time now);
  // The current problem; OK after a successful delivery.
  const Status& trouble() const { return trouble_; }

 private:
  Status Next();
  Duration Pause(Duration wish);
  void LogOutcome(const Status& outcome);
  void ShowLag();

  const std::string name_;
  telemetryserver::Recorder& recorder_;
  telemetryserver::JournalReader journal_;
  Sink& sink_;
  Metrics& metrics_;
  Random random_;
  int64_t taken_ = 0;             // journal position up to which the sink received rows
  telemetry::Millis oldest_ = 0;  // its arrival time; 0: the sink has nothing to deliver
  int failures_ = 0;              // in a row
  Time not_before_{};
  Status trouble_;
};

}  // namespace nos::exports
