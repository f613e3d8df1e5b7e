// Stores envelopes and maintains the state of every cluster: the only place where records become
// durable and visible.
//
//   NOS_ASSIGN(auto recorder, Recorder::Open(options, catalogue, clock, metrics, changed));
//   Recorder::Receipt receipt = recorder->Take(std::move(envelope), gzip_body);
//   recorder->Look("prod", [](const Live& live) { ... live.state ... });
//
// A single thread writes. Envelopes that arrive during a commit are committed together, so that
// many envelopes cost one disk sync. Records become visible only after they are on disk.
// Thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/metrics.h"
#include "gpu/catalogue.h"
#include "telemetry/envelope.h"
#include "telemetryserver/ingest/checkpoints.h"
#include "telemetryserver/ingest/derived_series.h"
#include "telemetryserver/ingest/envelope_queue.h"
#include "telemetryserver/ingest/follower_positions.h"
#include "telemetryserver/ingest/live.h"
#include "telemetryserver/ingest/source_sequences.h"
#include "telemetryserver/ingest/store_health.h"
#include "telemetryserver/ingest/upkeep.h"
#include "telemetryserver/store.h"
#include "telemetryserver/store/archive.h"

namespace nos::telemetryserver {

struct RecorderOptions {
  StoreOptions store;
  Retention retention;
  Duration flush_every = std::chrono::minutes(10);
  Duration report_every = std::chrono::seconds(10);  // interval configured for reporters
  Duration max_wait = std::chrono::seconds(10);      // for an envelope to be on disk
  // Names of journal followers (JournalReader), and limit of the journal kept for them.
  std::vector<std::string> followers;
  int64_t max_backlog = int64_t{1} << 30;  // bytes
  // Names of event followers (Archive::EventsAfter); nothing is kept for them.
  std::vector<std::string> event_followers;
  // Limits of source boots within 90 days, of a cluster and of one of its sources.
  size_t max_sources = 50'000, max_boots = 2000;
};

class Recorder {
 public:
  using Receipt = telemetryserver::Receipt;

  // Replays the journal after a crash. `changed` is called from the recorder's thread after every
  // change. Errors: see Store::Open.
  static Result<std::unique_ptr<Recorder>> Open(const RecorderOptions& options,
                                                const gpu::Catalogue& catalogue, const Clock& clock,
                                                Metrics& metrics, std::function<void()> changed);
  // Writes samples in memory to disk if possible.
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Returns when the envelope is on disk or rejected, or after max_wait (kUnavailable). `body`: the
  // envelope as gzip.
  Receipt Take(telemetry::Envelope envelope, std::string body);
  // False: the cluster is not known.
  bool Look(const std::string& cluster, FunctionRef<void(const Live&)> visit) const {
    return clusters_.Look(cluster, visit);
  }
  std::vector<std::string> Clusters() const { return clusters_.Names(); }
  Archive& archive() { return archive_; }
  telemetry::Millis Now() const;
  // Measurements older than this are stale.
  telemetry::Millis stale() const;
  // OK, or why writing fails, or has not ended for long.
  Status Health() const { return health_.Get(); }
  void Report();  // gauges
  // Position of a follower in the journal or in events. REQUIRES: a configured follower.
  int64_t PositionOf(const std::string& follower) const { return positions_.Of(follower); }
  // Sets the follower's position; it is written with the next transaction.
  void Advance(const std::string& follower, int64_t id) { positions_.Advance(follower, id); }
  // Waits until all received envelopes are applied, flushed and rolled up as far as is due.
  Status Settle();

 private:
  using Waiting = EnvelopeQueue::Waiting;
  using Batch = EnvelopeQueue::Batch;
  // Results of envelopes on disk that are not on disk themselves.
  struct Pending {
    int64_t cluster = 0;
    Effects effects;
    std::string derived;  // an envelope, gzip; empty: none
  };

  Recorder(std::unique_ptr<Store> store, const RecorderOptions& options,
           const gpu::Catalogue& catalogue, const Clock& clock, Metrics& metrics,
           std::function<void()> changed);
  Status Load();
  Status RestoreDecisions(Live& live);
  Status Replay(const JournalRow& row, int64_t applied);
  // Records a gap in place of a row that could not be replayed.
  void LeaveOut(const JournalRow& row, const Status& why, const std::string& cluster);
  void Run();
  void Round(const Batch& batch);
  Status Write(const Batch& batch);
  Status WritePending(int64_t& last);
  void Written();
  void RefuseRecords(Waiting& waiting);
  Status WriteEnvelope(Waiting& waiting);
  Status WriteNewBoot(const Waiting& waiting);
  Status WriteMissing(const Waiting& waiting, int64_t known);
  void SetBack();
  void Fold(Live& live, telemetry::Envelope& envelope);
  void FlushIfDue();
  Status Flush();

  const RecorderOptions options_;
  const gpu::Catalogue& catalogue_;
  const Clock& clock_;
  Metrics& metrics_;
  const std::function<void()> changed_;
  const std::unique_ptr<Store> store_;
  Archive archive_;
  LiveClusters clusters_;
  EnvelopeQueue queue_;
  StoreHealth health_;
  FollowerPositions positions_;

  // Used by the thread only.
  SourceSequences sequences_;
  CheckpointSchedule checkpoints_;
  DerivedSeries derived_;
  Upkeep upkeep_;
  std::vector<Pending> pending_;
  int64_t folded_ = 0;  // journal position
  telemetry::Millis flushed_at_ = 0;
  bool work_left_ = true;  // upkeep or backfill is due

  std::thread thread_;  // last: uses the other members
};

}  // namespace nos::telemetryserver
