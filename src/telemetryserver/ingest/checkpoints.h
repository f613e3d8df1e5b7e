// When to write a checkpoint of a cluster's state: once reading the events since the last one would
// cost more.
//
//   CheckpointSchedule checkpoints(store);
//   checkpoints.AddEvents(live.id, effects.changes.size());
//   NOS_RETURN_IF_ERROR(checkpoints.WriteIfDue(live));  // within a transaction
//   checkpoints.Written(live);                          // after the commit
//
// Used by one thread.
#pragma once

#include <map>

#include "telemetryserver/ingest/live.h"
#include "telemetryserver/store.h"

namespace nos::telemetryserver {

class CheckpointSchedule {
 public:
  // `store` must outlive this object.
  explicit CheckpointSchedule(Store& store) : store_(store) {}

  // At the start.
  Status Load(int64_t cluster);
  void AddEvents(int64_t cluster, size_t count);
  // Within a transaction.
  Status WriteIfDue(const Live& live);
  Status Write(const Live& live) { return store_.AddCheckpoint(live.id, live.state); }
  // Call after the commit of WriteIfDue, with the state unchanged since.
  void Written(const Live& live);
  // Call after the commit of Write.
  void Reset(const Live& live);
  // True if an event of this time is not after the last checkpoint.
  bool IsLate(int64_t cluster, telemetry::Millis at) const;

 private:
  struct Progress {
    telemetry::Millis at = -1;  // of the last checkpoint; -1: none
    int64_t events = 0;         // since then
  };
  bool IsDue(const Live& live) const;

  Store& store_;
  std::map<int64_t, Progress> clusters_;
};

}  // namespace nos::telemetryserver
