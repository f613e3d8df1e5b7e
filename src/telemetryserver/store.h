// The one file in which telemetry is kept (SQLite, write-ahead log, every commit synced).
//
// Envelopes go into a journal before they are acknowledged. What they mean is written later, each
// in one transaction with the place in the journal up to which it is done: changes of state as
// events
// (`applied`), samples as chunks (`flushed`: the journal has no more of them). After a crash the
// journal is gone through again from there, so that nothing is lost or counted twice.
//
//   NOS_ASSIGN(auto store, Store::Open({.path = "telemetry.db"}));
//   store->Transaction([&] { return store->Journal(row, id); });
//
// One thread writes. Reading: Archive.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "telemetryserver/store/heads.h"
#include "telemetryserver/levels.h"
#include "telemetryserver/store/sqlite.h"
#include "telemetryserver/state.h"

namespace nos::telemetryserver {

struct StoreOptions {
  std::string path = "telemetry.db";
  int64_t most_bytes = 0;  // the file grows no larger; 0: as large as the disk
  // Of one cluster; kMostClusters have room for so many. They are forgotten with their last
  // samples.
  int64_t most_subjects = int64_t{1} << 21;
};

struct JournalRow {
  int64_t id = 0;  // given by the store
  int64_t cluster = 0;
  std::string source;  // "": of this server's own making
  std::string boot;
  int64_t sequence = 0;
  telemetry::Millis received = 0;
  std::string body;  // the envelope, gzip
};

struct Retention {
  telemetry::Millis raw = kDay, rollups_5m = 31 * kDay, rollups_1h = 400 * kDay, events = 400 * kDay;
};

// Up to where the series of this server's own making are made, and the stretch of them that is to
// be made again, as some of what they are made of came late: [again_from, again_to).
struct Derived {
  telemetry::Millis until = 0, again_from = 0, again_to = 0;
  bool Again() const { return again_from < again_to; }
  friend bool operator==(const Derived&, const Derived&) = default;
};

class Store {
 public:
  // Brings older files up to date. Errors: as Sqlite; kInvalid for a file that a newer version
  // made.
  static Result<std::unique_ptr<Store>> Open(const StoreOptions& options);

  // All or nothing of what `write` does. The next ones may succeed where this one fails.
  Status Transaction(FunctionRef<Status()> write);

  // --- Within a transaction ---
  Result<int64_t> ClusterId(const std::string& name);
  Status Journal(JournalRow& row);
  Status SetApplied(int64_t journal_id);
  // `late`: earlier than a checkpoint that has been made.
  Status AddEvent(int64_t cluster, const State::Change& change, bool late);
  Status AddHold(int64_t cluster, const State::Hold& hold);
  Status AddCheckpoint(int64_t cluster, const State& state);
  // Writes the heads as one flush.
  Status Flush(int64_t cluster, const Heads& heads);
  // Of the subjects whose names begin so, in [from, to): what is not rolled up.
  Status RemoveSamples(int64_t cluster, std::span<const std::string_view> prefixes, telemetry::Millis from,
                       telemetry::Millis to);
  Status SetDerived(int64_t cluster, const Derived& derived);
  // As State::NotAfter, of what is written down.
  Status NotAfter(int64_t cluster, telemetry::Millis now);
  // The journal up to `flushed` is not needed by the store any more. It is taken away up to `held`,
  // what followers have not had yet is kept, but no more than about `most_bytes` of it.
  Status CutJournal(int64_t flushed, int64_t held, int64_t most_bytes);
  // What a follower has had, of the journal or of events.
  Status SetPosition(const std::string& follower, int64_t id);
  // How many values of the cluster were not written since, as it has too many subjects.
  int64_t TakeUnkept(int64_t cluster);
  // After the commit: `heads` gets the numbers that its subjects were given.
  void TakeNumbers(int64_t cluster, Heads& heads);

  // --- Each a transaction of its own, of bounded work ---
  // Writes some rollups that are due. False: none is.
  Result<bool> RollUp(telemetry::Millis now);
  // Removes some of what is older than it is to be kept. False: there is nothing.
  Result<bool> Expire(telemetry::Millis now, const Retention& retention);

  // --- At the start ---
  Status EachCluster(FunctionRef<void(int64_t id, const std::string& name)> visit);
  Status EachSource(FunctionRef<void(int64_t cluster, const std::string& source,
                                     const std::string& boot, int64_t sequence)>
                        visit);
  // In order, from the oldest that is not flushed.
  Status EachJournaled(FunctionRef<void(const JournalRow&)> visit);
  Result<int64_t> Applied();
  // Of a follower; that of one never heard of is before the journal's first.
  Result<int64_t> Position(const std::string& follower);
  // Of one that follows events; one never heard of has had all of them.
  Result<int64_t> EventPosition(const std::string& follower);
  Result<Derived> DerivedOf(int64_t cluster);
  // Of the latest checkpoint; -1: none.
  Result<telemetry::Millis> LatestCheckpoint(int64_t cluster);
  Result<int64_t> EventsSinceCheckpoint(int64_t cluster);
  // Bytes of the file, without what is free in it.
  Result<int64_t> UsedBytes();

 private:
  Store(Sqlite db, UniqueFd lock, int64_t most_subjects)
      : lock_(std::move(lock)), db_(std::move(db)), most_subjects_(most_subjects) {}
  Status Migrate();
  Status Limit(int64_t most_bytes);
  Result<int64_t> Meta(const std::string& key, int64_t fallback = 0);
  Result<int64_t> OldestKept(int64_t flushed, int64_t most_bytes);
  Status SetMeta(const std::string& key, int64_t value);
  // Prepared once.
  Result<SqliteStatement*> Statement(const char* sql);
  // 0: there are too many.
  Result<int64_t> SubjectId(int64_t cluster, const std::string& name, telemetry::Millis seen);
  Result<int64_t> CountSubjects(int64_t cluster);
  Status RemoveFrom(int64_t row, telemetry::Millis from, telemetry::Millis to);
  Status MarkSeen(int64_t subject, telemetry::Millis seen);
  Result<bool> ExpireSubjects(telemetry::Millis now, const Retention& retention);
  Result<int64_t> MetricId(const std::string& name);
  Status MarkLate(int64_t subject, const SampleBlock& block);
  Status WriteHeads(int64_t cluster, const HeadsBySubject& heads);
  Status WriteHead(int64_t flush, int64_t cluster, const std::string& subject, const Head& head);
  struct Rolled {
    size_t level = 0;
    int64_t window = 0;
    std::vector<int64_t> sources;  // windows of the level below that it is made of
  };
  Result<std::vector<int64_t>> SourcesOf(size_t level, int64_t window);
  Result<bool> RollLevel(size_t level, telemetry::Millis now);
  static void LeaveOut(const Rolled& rolled, int64_t subject, const Status& why);
  Status RollSubjects(const Rolled& rolled, int64_t first, int64_t last);
  Result<bool> RollLate();
  Status Replace(const Rolled& rolled, int64_t subject, WindowSums& sums);
  Result<bool> ExpireRaw(telemetry::Millis now, telemetry::Millis keep);
  Result<bool> ExpireLevel(size_t level, telemetry::Millis now, telemetry::Millis keep);
  Result<bool> ExpireEvents(telemetry::Millis now, telemetry::Millis keep);

  const UniqueFd lock_;  // of the file, while this lives
  Sqlite db_;
  const int64_t most_subjects_;
  std::map<int64_t, int64_t> subjects_;  // of clusters: how many; as far as they were counted
  std::map<int64_t, int64_t> unkept_;    // by cluster
  std::map<std::string, SqliteStatement, std::less<>> statements_;
  std::map<std::string, int64_t> metrics_;
  // Of subjects of clusters, given since the last TakeNumbers.
  std::map<std::pair<int64_t, std::string>, int64_t> numbers_;
};

}  // namespace nos::telemetryserver
