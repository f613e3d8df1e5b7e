// The journal of received envelopes, the last sequence of each source, and how far readers of the
// journal are (tables `journal`, `sources` and `meta`).
//
//   NOS_RETURN_IF_ERROR(journal.Append(row));            // sets row.id; then acknowledge it
//   NOS_RETURN_IF_ERROR(journal.SetApplied(row.id));     // its events are written
//   NOS_RETURN_IF_ERROR(journal.Cut(row.id, held, max)); // its samples are written
//
// A row is appended, applied, flushed, and removed once every follower has read it. One thread uses
// it. Errors: see Sqlite. Internal to this library.
#pragma once

#include <string>

#include "telemetry/envelope.h"
#include "telemetry/records.h"
#include "telemetryserver/store/database.h"

namespace nos::telemetryserver {

struct JournalRow {
  int64_t id = 0;  // assigned by the store
  int64_t cluster = 0;
  std::string source;  // "": derived by this server
  std::string boot;
  int64_t sequence = 0;
  telemetry::Millis received = 0;
  std::string body;  // the envelope, gzip
};

// The envelope of a row as stored. `derived`: the row has no source. Error: kInvalid (damaged).
Result<telemetry::Envelope> ReadJournaled(std::string_view body, bool derived,
                                          telemetry::Millis received);

class JournalTable {
 public:
  // `db` must outlive this object.
  explicit JournalTable(Database& db) : db_(db) {}

  // --- Within a transaction ---
  Status Append(JournalRow& row);
  Status SetApplied(int64_t id);
  // Only rows after `flushed` are needed for a replay. Rows up to `held` are removed; later rows
  // are kept for followers, but only about `max_bytes` of them.
  Status Cut(int64_t flushed, int64_t held, int64_t max_bytes);
  // Position of a follower in the journal or in events.
  Status SetPosition(const std::string& follower, int64_t id);

  // Removes sources that were silent for 90 days, in its own transaction. False: there are none.
  Result<bool> ExpireSources(telemetry::Millis now);

  Result<int64_t> Applied();
  // An unknown follower starts before the first row.
  Result<int64_t> Position(const std::string& follower);
  // An unknown follower starts after the last event.
  Result<int64_t> EventPosition(const std::string& follower);
  Status EachSource(FunctionRef<void(int64_t cluster, const std::string& source,
                                     const std::string& boot, int64_t sequence)>
                        visit);
  // In order, starting at the oldest row that is not flushed.
  Status EachUnflushed(FunctionRef<void(const JournalRow&)> visit);

 private:
  Result<int64_t> OldestKept(int64_t flushed, int64_t max_bytes);

  Database& db_;
};

}  // namespace nos::telemetryserver
