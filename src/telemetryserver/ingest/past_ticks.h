// The series of this server's own making, of a stretch of the past: in steps, so that whoever takes
// what reporters tell is not kept from it. Internal to this room.
//
//   PastTicks ticks(archive, catalogue, cluster, name, stale);
//   ticks.Begin(from, to);
//   while (!*ticks.Step(heads)) ...       // each takes about 200 ms
//   store->Flush(cluster, ticks.made());  // and begin with the next stretch
#pragma once

#include <string>
#include <vector>

#include "gpu/catalogue.h"
#include "telemetryserver/store/archive.h"
#include "telemetryserver/store/heads.h"
#include "telemetryserver/state.h"

namespace nos::telemetryserver {

class PastTicks {
 public:
  // All must outlive it. `stale`: as Recorder::stale.
  PastTicks(Archive& archive, const gpu::Catalogue& catalogue, int64_t id, std::string name,
            telemetry::Millis stale)
      : archive_(archive), catalogue_(catalogue), id_(id), name_(std::move(name)), stale_(stale) {}

  int64_t id() const { return id_; }
  // Ticks of [from, to): multiples of kDeriveEvery, from where it ended before or anywhere, if it
  // has not begun. All events until then are on disk.
  Status Begin(telemetry::Millis from, telemetry::Millis to);
  telemetry::Millis from() const { return from_; }
  telemetry::Millis to() const { return to_; }
  bool begun() const { return to_ > from_; }
  // It can begin again where it has ended.
  void End() { from_ = to_; }
  // True: it is done. `heads`: what is not on disk yet.
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
  telemetry::Millis at_ = -1;  // of the state; -1: none has been read
  State state_;
  std::vector<std::string> subjects_;
  size_t gathered_ = 0;                       // of the subjects
  std::vector<std::vector<Sample>> samples_;  // by tick before which they were taken
  std::vector<bool> heard_;                   // likewise: anybody measured anything
  Heads made_;
};

}  // namespace nos::telemetryserver
