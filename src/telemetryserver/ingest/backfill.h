// Computes derived series for a past stretch of time, in short steps, because the recorder's thread
// also stores envelopes. Internal to this library.
//
//   Backfill ticks(archive, catalogue, cluster, name, stale);
//   ticks.Begin(from, to);
//   while (!*ticks.Step(heads)) ...       // each takes about 200 ms
//   store->Flush(cluster, ticks.made());  // then Begin the next stretch
#pragma once

#include <string>
#include <vector>

#include "gpu/catalogue.h"
#include "telemetryserver/state.h"
#include "telemetryserver/store/archive.h"
#include "telemetryserver/store/heads.h"

namespace nos::telemetryserver {

class Backfill {
 public:
  // All arguments must outlive this object. `stale`: see Recorder::stale.
  Backfill(Archive& archive, const gpu::Catalogue& catalogue, int64_t id, std::string name,
           telemetry::Millis stale)
      : archive_(archive), catalogue_(catalogue), id_(id), name_(std::move(name)), stale_(stale) {}

  int64_t id() const { return id_; }
  // Starts the ticks in [from, to): multiples of kDeriveEvery. `from` must be where the previous
  // stretch ended, or any time at the first call. REQUIRES: all events until `to` are on disk.
  Status Begin(telemetry::Millis from, telemetry::Millis to);
  telemetry::Millis from() const { return from_; }
  telemetry::Millis to() const { return to_; }
  bool begun() const { return to_ > from_; }
  // Ends the stretch; Begin may continue from here.
  void End() { from_ = to_; }
  // True: the stretch is finished. `heads`: samples that are not on disk yet.
  Result<bool> Step(const Heads& heads);
  const Heads& made() const { return made_; }

 private:
  struct Sample {
    uint32_t subject = 0;
    telemetry::Millis at = 0;
    double value = 0;
  };
  Status Gather(const Heads& heads);
  void Take(size_t subject, std::string_view metric, telemetry::Millis at, double value);
  Status Derive(telemetry::Millis tick);

  Archive& archive_;
  const gpu::Catalogue& catalogue_;
  const int64_t id_;
  const std::string name_;
  const telemetry::Millis stale_;
  telemetry::Millis from_ = 0, to_ = 0;
  telemetry::Millis at_ = -1;  // time of the state; -1: not read yet
  State state_;
  std::vector<std::string> subjects_;
  size_t gathered_ = 0;                       // number of subjects that were read
  std::vector<std::vector<Sample>> samples_;  // by the tick that they count for
  std::vector<bool> heard_;                   // by tick: any subject was measured
  Heads made_;
};

}  // namespace nos::telemetryserver
