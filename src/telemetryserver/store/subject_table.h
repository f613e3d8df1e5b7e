// Numeric IDs of subjects: assigned when their first samples are written, released when their last
// samples are removed (table `subjects`).
//
//   NOS_ASSIGN(int64_t id, subjects.IdOf(cluster, "gpu/GPU-1", last_sample_at));
//   if (id == 0) ...                       // the cluster has too many subjects
//   if (!committed) subjects.Discard();    // after a transaction that was rolled back
//
// One thread uses it. Errors: see Sqlite. Internal to this library.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "telemetry/records.h"
#include "telemetryserver/store/database.h"

namespace nos::telemetryserver {

class SubjectTable {
 public:
  // `db` must outlive this object. `max_subjects`: limit per cluster.
  SubjectTable(Database& db, int64_t max_subjects) : db_(db), max_subjects_(max_subjects) {}

  // --- Within a transaction ---
  // Adds an unknown subject. 0: the cluster has too many. `seen`: time of its last samples.
  Result<int64_t> IdOf(int64_t cluster, const std::string& name, telemetry::Millis seen);
  Status MarkSeen(int64_t subject, telemetry::Millis seen);

  // IDs of the subjects whose names start with the prefix. REQUIRES: it is not empty.
  Result<std::vector<int64_t>> WithPrefix(int64_t cluster, std::string_view prefix);
  // Removes some subjects without samples for longer than `keep`, the longest retention of samples,
  // in its own transaction. False: there are none.
  Result<bool> Expire(telemetry::Millis now, telemetry::Millis keep);
  // Call after a rollback: counts may include subjects that were not added.
  void Discard() { counts_.clear(); }

 private:
  Result<int64_t> Count(int64_t cluster);

  Database& db_;
  const int64_t max_subjects_;
  std::map<int64_t, int64_t> counts_;  // by cluster, as far as counted
};

}  // namespace nos::telemetryserver
