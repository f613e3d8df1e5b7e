// The single file that stores telemetry (SQLite, write-ahead log, every commit synced).
//
// Envelopes are written to a journal before they are acknowledged. Their content is written later,
// in one transaction with the journal position up to which it is complete: changes of state as
// events (`applied`), samples as chunks (`flushed`; the journal contains no older ones). After a
// crash the journal is replayed from there, so that nothing is lost or counted twice.
//
//   NOS_ASSIGN(auto store, Store::Open({.path = "telemetry.db"}));
//   store->Transaction([&] { return store->Journal(row, id); });
//
// One thread writes. Reading: see Archive.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "telemetryserver/levels.h"
#include "telemetryserver/state.h"
#include "telemetryserver/store/heads.h"
#include "telemetryserver/store/sqlite.h"

namespace nos::telemetryserver {

struct StoreOptions {
  std::string path = "telemetry.db";
  int64_t most_bytes = 0;  // maximum file size; 0: limited by the disk
  // Limit per cluster; kMaxClusters times this limit is possible. A subject is removed with its
  // last samples.
  int64_t most_subjects = int64_t{1} << 21;
};

struct JournalRow {
  int64_t id = 0;  // assigned by the store
  int64_t cluster = 0;
  std::string source;  // "": derived by this server
  std::string boot;
  int64_t sequence = 0;
  telemetry::Millis received = 0;
  std::string body;  // the envelope, gzip
};

struct Retention {
  telemetry::Millis raw = kDay, rollups_5m = 31 * kDay, rollups_1h = 400 * kDay,
                    events = 400 * kDay;
};

// Progress of the derived series: computed until `until`, and to be computed again in [again_from,
// again_to), because some inputs arrived late.
struct Derived {
  telemetry::Millis until = 0, again_from = 0, again_to = 0;
  bool Again() const { return again_from < again_to; }
  friend bool operator==(const Derived&, const Derived&) = default;
};

class Store {
 public:
  // Migrates older files. Errors: see Sqlite; kInvalid for a file of a newer version.
  static Result<std::unique_ptr<Store>> Open(const StoreOptions& options);

  // Atomic: all writes of `write` or none. A later transaction may succeed after a failure.
  Status Transaction(FunctionRef<Status()> write);

  // --- Within a transaction ---
  Result<int64_t> ClusterId(const std::string& name);
  Status Journal(JournalRow& row);
  Status SetApplied(int64_t journal_id);
  // `late`: earlier than an existing checkpoint.
  Status AddEvent(int64_t cluster, const State::Change& change, bool late);
  Status AddHold(int64_t cluster, const State::Hold& hold);
  Status AddCheckpoint(int64_t cluster, const State& state);
  // Writes the heads as one flush.
  Status Flush(int64_t cluster, const Heads& heads);
  // Removes samples in [from, to) of subjects with these prefixes, as far as they are not rolled
  // up.
  Status RemoveSamples(int64_t cluster, std::span<const std::string_view> prefixes,
                       telemetry::Millis from, telemetry::Millis to);
  Status SetDerived(int64_t cluster, const Derived& derived);
  // Same as State::NotAfter, for stored times.
  Status NotAfter(int64_t cluster, telemetry::Millis now);
  // The store needs the journal only after `flushed`. Rows up to `held` are removed; later rows are
  // kept for followers, but only about `most_bytes` of them.
  Status CutJournal(int64_t flushed, int64_t held, int64_t most_bytes);
  // Position of a follower in the journal or in events.
  Status SetPosition(const std::string& follower, int64_t id);
  // Number of values of the cluster not stored since the last call, because it has too many
  // subjects.
  int64_t TakeUnkept(int64_t cluster);
  // Call after the commit: `heads` receives the IDs assigned to its subjects.
  void TakeNumbers(int64_t cluster, Heads& heads);

  // --- Each a transaction of its own, of bounded work ---
  // Writes some rollups that are due. False: none are due.
  Result<bool> RollUp(telemetry::Millis now);
  // Removes some rows beyond their retention. False: there are none.
  Result<bool> Expire(telemetry::Millis now, const Retention& retention);

  // --- At the start ---
  Status EachCluster(FunctionRef<void(int64_t id, const std::string& name)> visit);
  Status EachSource(FunctionRef<void(int64_t cluster, const std::string& source,
                                     const std::string& boot, int64_t sequence)>
                        visit);
  // In order, starting at the oldest row that is not flushed.
  Status EachJournaled(FunctionRef<void(const JournalRow&)> visit);
  Result<int64_t> Applied();
  // Position of a follower; an unknown follower starts before the first journal row.
  Result<int64_t> Position(const std::string& follower);
  // Position of an event follower; an unknown follower starts after the last event.
  Result<int64_t> EventPosition(const std::string& follower);
  Result<Derived> DerivedOf(int64_t cluster);
  // Time of the latest checkpoint; -1: none.
  Result<telemetry::Millis> LatestCheckpoint(int64_t cluster);
  Result<int64_t> EventsSinceCheckpoint(int64_t cluster);
  // Size of the file in bytes, without free pages.
  Result<int64_t> UsedBytes();

 private:
  Store(Sqlite db, UniqueFd lock, int64_t most_subjects)
      : lock_(std::move(lock)), db_(std::move(db)), most_subjects_(most_subjects) {}
  Status Migrate();
  Status Limit(int64_t most_bytes);
  Result<int64_t> Meta(const std::string& key, int64_t fallback = 0);
  Result<int64_t> OldestKept(int64_t flushed, int64_t most_bytes);
  Status SetMeta(const std::string& key, int64_t value);
  // Prepared once and cached.
  Result<SqliteStatement*> Statement(const char* sql);
  // 0: too many subjects.
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
    std::vector<int64_t> sources;  // windows of the level below that it consists of
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

  const UniqueFd lock_;  // of the file, held while this lives
  Sqlite db_;
  const int64_t most_subjects_;
  std::map<int64_t, int64_t> subjects_;  // number of subjects by cluster, as far as counted
  std::map<int64_t, int64_t> unkept_;    // by cluster
  std::map<std::string, SqliteStatement, std::less<>> statements_;
  std::map<std::string, int64_t> metrics_;
  // IDs assigned to subjects since the last TakeNumbers.
  std::map<std::pair<int64_t, std::string>, int64_t> numbers_;
};

}  // namespace nos::telemetryserver
