// History of a cluster's state: events, checkpoints of the whole state, and the slices that pods
// held (tables `events`, `checkpoints` and `holds`).
//
//   NOS_RETURN_IF_ERROR(events.Add(cluster, change, /*late=*/false));
//   NOS_RETURN_IF_ERROR(events.AddCheckpoint(cluster, state));
//
// The state at a time is the last checkpoint before it and all events since; see Archive::StateAt.
// One thread uses it. Errors: see Sqlite. Internal to this library.
#pragma once

#include <span>

#include "telemetryserver/state.h"
#include "telemetryserver/store/database.h"

namespace nos::telemetryserver {

class EventTable {
 public:
  // `db` must outlive this object.
  explicit EventTable(Database& db) : db_(db) {}

  // --- Within a transaction ---
  // `late`: earlier than an existing checkpoint.
  Status Add(int64_t cluster, const State::Change& change, bool late);
  Status AddHold(int64_t cluster, const State::Hold& hold);
  Status AddCheckpoint(int64_t cluster, const State& state);
  // Limits stored times to `now`, as State::NotAfter does; removes later checkpoints.
  Status NotAfter(int64_t cluster, telemetry::Millis now);

  // Removes some rows older than `before`, in its own transaction. False: there are none.
  Result<bool> Expire(std::span<const int64_t> clusters, telemetry::Millis before);

  // Time of the latest checkpoint; -1: none.
  Result<telemetry::Millis> LatestCheckpoint(int64_t cluster);
  Result<int64_t> CountSinceCheckpoint(int64_t cluster);

 private:
  Database& db_;
};

}  // namespace nos::telemetryserver
