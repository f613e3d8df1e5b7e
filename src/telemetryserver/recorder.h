// Takes envelopes, and knows how every cluster is: the one place where what is told becomes durable
// and visible.
//
//   NOS_ASSIGN(auto recorder, Recorder::Open(options, catalogue, clock, metrics, changed));
//   Recorder::Receipt receipt = recorder->Take(std::move(envelope), gzip_body);
//   recorder->Look("prod", [](const Live& live) { ... live.state ... });
//
// One thread of its own writes: what has come while it wrote is committed at once, so that many
// envelopes cost one sync of the disk. Nothing is visible before it is on disk. Thread-safe.
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
#include "telemetryserver/store/archive.h"
#include "telemetry/envelope.h"
#include "telemetryserver/ingest/past_ticks.h"
#include "telemetryserver/store.h"

namespace nos::telemetryserver {

// A cluster as it is now.
struct Live {
  int64_t id = 0;
  std::string name;
  State state;
  Heads heads;
  Derived derived;
  telemetry::Millis derived_flushed = 0;  // ticks until then are on disk, as far as they are made
  // The latest time of what each source and boot has told of things.
  std::map<std::pair<std::string, std::string>, telemetry::Millis> told_until;
};

struct RecorderOptions {
  StoreOptions store;
  Retention retention;
  Duration flush_every = std::chrono::minutes(10);
  Duration report_every = std::chrono::seconds(10);  // what reporters are set to
  // Who takes over what is journaled (JournalReader), by name, and how much is kept for them.
  std::vector<std::string> followers;
  int64_t most_backlog = int64_t{1} << 30;  // bytes
  // Who follows events (Archive::EventsAfter), by name; nothing is kept for them.
  std::vector<std::string> event_followers;
  // Boots of sources of one cluster within 90 days: so that none takes what others need.
  size_t most_sources = 50'000;
};

class Recorder {
 public:
  struct Receipt {
    // kInvalid: never; kExhausted, kUnavailable: again later.
    Status status;
    int64_t sequence = 0;  // of this source and boot, the highest that is on disk
  };

  // Goes through what a crash left. `changed` is called, from the recorder's thread, after anything
  // has. Errors: as Store::Open.
  static Result<std::unique_ptr<Recorder>> Open(const RecorderOptions& options,
                                                const gpu::Catalogue& catalogue, const Clock& clock,
                                                Metrics& metrics, std::function<void()> changed);
  // Writes what is in memory, if the disk lets it.
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Returns when it is on disk, or why it is not. `body`: the same as gzip.
  Receipt Take(telemetry::Envelope envelope, std::string body);
  // False: there is no such cluster.
  bool Look(const std::string& cluster, FunctionRef<void(const Live&)> visit) const;
  std::vector<std::string> Clusters() const;
  Archive& archive() { return archive_; }
  telemetry::Millis Now() const;
  // Measurements older than this say nothing about now.
  telemetry::Millis stale() const;
  // Why nothing can be written, if so.
  Status Health() const;
  void Report();  // gauges
  // Of a follower: of the journal, or of events, what it has had. REQUIRES: it is one.
  int64_t PositionOf(const std::string& follower) const;
  // It has had all up to there; on disk with whatever is written next.
  void Advance(const std::string& follower, int64_t id);
  // Waits until all that was taken is folded, flushed and rolled up as far as is due.
  Status Settle();

 private:
  struct Waiting {
    telemetry::Envelope envelope;
    std::string body;
    Receipt receipt;
    bool done = false;
    int64_t cluster = 0, journal = 0;  // journal 0: it was there already
  };
  using Batch = std::vector<std::shared_ptr<Waiting>>;
  // What follows from envelopes on disk and is not on disk itself.
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

  mutable std::shared_mutex live_mutex_;  // the thread alone changes them, under it
  std::map<std::string, std::unique_ptr<Live>> live_;

  // The thread's own.
  std::map<SourceKey, int64_t> sequences_;
  std::map<std::string, size_t> sources_of_;  // by cluster: how many of them
  std::vector<Pending> pending_;
  std::map<int64_t, int64_t> events_since_checkpoint_;
  std::map<int64_t, telemetry::Millis> checkpoint_at_;
  std::map<int64_t, Derived> derived_;  // by cluster, as they are on disk
  std::unique_ptr<PastTicks> past_;     // that are made again now; null: none
  std::string derived_last_;            // the cluster whose turn was last
  Time derive_after_{};                 // of the steady clock
  int64_t folded_ = 0;                  // of the journal
  telemetry::Millis flushed_at_ = 0, upkeep_at_ = 0;
  bool upkeep_left_ = true, failing_ = false;

  mutable std::mutex positions_mutex_;
  std::map<std::string, int64_t> positions_;  // of followers

  mutable std::mutex queue_mutex_;
  std::condition_variable queue_changed_, answered_;
  std::deque<std::shared_ptr<Waiting>> queue_;
  size_t queued_bytes_ = 0;
  bool stop_ = false, settle_ = false;
  bool settling_ = false;  // settle_, as this round began
  Status health_;
  std::thread thread_;  // last: uses the others
};

}  // namespace nos::telemetryserver
