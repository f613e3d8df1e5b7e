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
// Each table has its own class in `store`; this class says which of them belong together in a
// transaction. One thread writes. Reading: see Archive.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "telemetryserver/levels.h"
#include "telemetryserver/state.h"
#include "telemetryserver/store/chunk_table.h"
#include "telemetryserver/store/cluster_table.h"
#include "telemetryserver/store/database.h"
#include "telemetryserver/store/event_table.h"
#include "telemetryserver/store/heads.h"
#include "telemetryserver/store/journal_table.h"
#include "telemetryserver/store/rollups.h"
#include "telemetryserver/store/subject_table.h"

namespace nos::telemetryserver {

struct StoreOptions {
  std::string path = "telemetry.db";
  int64_t max_bytes = 0;  // maximum file size; 0: limited by the disk
  // Limit per cluster; kMaxClusters times this limit is possible. A subject is removed with its
  // last samples.
  int64_t most_subjects = int64_t{1} << 21;
};

struct Retention {
  telemetry::Millis raw = kDay, rollups_5m = 31 * kDay, rollups_1h = 400 * kDay,
                    events = 400 * kDay;
};

class Store {
 public:
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // Migrates older files. Errors: see Database.
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
  // kept for followers, but only about `max_bytes` of them.
  Status CutJournal(int64_t flushed, int64_t held, int64_t max_bytes);
  // Position of a follower in the journal or in events.
  Status SetPosition(const std::string& follower, int64_t id);
  // Number of values of the cluster not stored since the last call, because it has too many
  // subjects.
  int64_t TakeUnkept(int64_t cluster);
  // Call after the commit: `heads` receives the IDs assigned to its subjects.
  void TakeNumbers(int64_t cluster, Heads& heads);

  // --- Each call is a transaction of its own, with bounded work ---
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
  Store(Database db, int64_t max_subjects);

  Database db_;  // first: the tables use it
  ClusterTable clusters_{db_};
  JournalTable journal_{db_};
  EventTable events_{db_};
  SubjectTable subjects_;
  Rollups rollups_{db_, subjects_};
  ChunkTable chunks_{db_, subjects_, rollups_};
};

}  // namespace nos::telemetryserver
