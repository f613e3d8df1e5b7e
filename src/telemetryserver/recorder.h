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

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/metrics.h"
#include "gpu/catalogue.h"
#include "telemetry/envelope.h"
#include "telemetryserver/ingest/backfill.h"
#include "telemetryserver/store.h"
#include "telemetryserver/store/archive.h"

namespace nos::telemetryserver {

// Current state of a cluster.
struct Live {
  int64_t id = 0;
  std::string name;
  State state;
  Heads heads;
  Derived derived;
  telemetry::Millis derived_flushed = 0;  // computed ticks up to this time are on disk
  // Latest time of object records from each source and boot.
  std::map<std::pair<std::string, std::string>, telemetry::Millis> told_until;
};

struct RecorderOptions {
  StoreOptions store;
  Retention retention;
  Duration flush_every = std::chrono::minutes(10);
  Duration report_every = std::chrono::seconds(10);  // interval configured for reporters
  // Names of journal followers (JournalReader), and limit of the journal kept for them.
  std::vector<std::string> followers;
  int64_t most_backlog = int64_t{1} << 30;  // bytes
  // Names of event followers (Archive::EventsAfter); nothing is kept for them.
  std::vector<std::string> event_followers;
  // Limit of source boots per cluster within 90 days, so that one cluster does not exhaust the
  // total.
  size_t most_sources = 50'000;
};

class Recorder {
 public:
  struct Receipt {
    // kInvalid: permanently rejected; kExhausted, kUnavailable: retry later.
    Status status;
    int64_t sequence = 0;  // highest sequence of this source and boot on disk
  };

  // Replays the journal after a crash. `changed` is called from the recorder's thread after every
  // change. Errors: see Store::Open.
  static Result<std::unique_ptr<Recorder>> Open(const RecorderOptions& options,
                                                const gpu::Catalogue& catalogue, const Clock& clock,
                                                Metrics& metrics, std::function<void()> changed);
  // Writes samples in memory to disk if possible.
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Returns when the envelope is on disk or rejected. `body`: the envelope as gzip.
  Receipt Take(telemetry::Envelope envelope, std::string body);
  // False: the cluster is not known.
  bool Look(const std::string& cluster, FunctionRef<void(const Live&)> visit) const;
  std::vector<std::string> Clusters() const;
  Archive& archive() { return archive_; }
  telemetry::Millis Now() const;
  // Measurements older than this are stale.
  telemetry::Millis stale() const;
  // OK, or why writing fails.
  Status Health() const;
  void Report();  // gauges
  // Position of a follower in the journal or in events. REQUIRES: a configured follower.
  int64_t PositionOf(const std::string& follower) const;
  // Sets the follower's position; it is written with the next transaction.
  void Advance(const std::string& follower, int64_t id);
  // Waits until all received envelopes are applied, flushed and rolled up as far as is due.
  Status Settle();

 private:
  struct Waiting {
    telemetry::Envelope envelope;
    std::string body;
    Receipt receipt;
    bool done = false;
    int64_t cluster = 0, journal = 0;  // journal 0: it was stored before
  };
  using Batch = std::vector<std::shared_ptr<Waiting>>;
  // Results of envelopes on disk that are not on disk themselves.
  struct Pending {
    int64_t cluster = 0;
    State::Effects effects;
    std::string derived;  // an envelope, gzip; empty: none
  };
  using SourceKey = std::tuple<std::string, std::string, std::string>;  // cluster, source, boot

  Recorder(const RecorderOptions& options, const gpu::Catalogue& catalogue, const Clock& clock,
           Metrics& metrics, std::function<void()> changed);
  Status Load();
  Status RecallDecisions(Live& live);
  Status Replay(const JournalRow& row, int64_t applied);
  void Run();
  bool Await(Batch& batch);
  void Round(const Batch& batch);
  Status Write(const Batch& batch);
  Status WritePending(int64_t& last);
  Status WriteCheckpoint(const Live& live);
  void Written();
  Status WriteEnvelope(Waiting& waiting, std::map<SourceKey, int64_t>& sequences);
  Status WriteNewBoot(const Waiting& waiting);
  void Answer(const Batch& batch, const Status& status);
  void SetHealth(const Status& status);
  void SetBack();
  void Fold(Live& live, telemetry::Envelope& envelope);
  void Derive(Live& live);
  void Owe(Live& live, telemetry::Millis from, telemetry::Millis to);
  bool DeriveAgain();
  Live* NextToDerive();
  Result<bool> DerivePast(Live& live);
  Result<int64_t> WritePositions();
  void FlushIfDue();
  Status Flush();
  bool Upkeep();
  Live& LiveOf(int64_t id, const std::string& name);

  const RecorderOptions options_;
  const gpu::Catalogue& catalogue_;
  const Clock& clock_;
  Metrics& metrics_;
  const std::function<void()> changed_;
  std::unique_ptr<Store> store_;
  Archive archive_;

  mutable std::shared_mutex live_mutex_;  // only the thread changes them, under the lock
  std::map<std::string, std::unique_ptr<Live>> live_;

  // Used by the thread only.
  std::map<SourceKey, int64_t> sequences_;
  std::map<std::string, size_t> sources_of_;  // number of sources by cluster
  std::vector<Pending> pending_;
  std::map<int64_t, int64_t> events_since_checkpoint_;
  std::map<int64_t, telemetry::Millis> checkpoint_at_;
  std::map<int64_t, Derived> derived_;  // by cluster, as on disk
  std::unique_ptr<Backfill> past_;      // being recomputed; null: none
  std::string derived_last_;            // cluster that had the last turn
  Time derive_after_{};                 // of the steady clock
  int64_t folded_ = 0;                  // journal position
  telemetry::Millis flushed_at_ = 0, upkeep_at_ = 0;
  bool upkeep_left_ = true, failing_ = false;

  mutable std::mutex positions_mutex_;
  std::map<std::string, int64_t> positions_;  // of followers

  mutable std::mutex queue_mutex_;
  std::condition_variable queue_changed_, answered_;
  std::deque<std::shared_ptr<Waiting>> queue_;
  size_t queued_bytes_ = 0;
  bool stop_ = false, settle_ = false;
  bool settling_ = false;  // value of settle_ at the start of the round
  Status health_;
  std::thread thread_;  // last: uses the other members
};

}  // namespace nos::telemetryserver
