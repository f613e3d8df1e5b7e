// Raw samples, written one flush after another (tables `chunks`, `flushes` and `metrics`).
//
//   NOS_RETURN_IF_ERROR(db.Transaction([&] { return chunks.Write(cluster, heads); }));
//   chunks.TakeIds(cluster, heads);  // the next flush then needs no lookups
//   heads.Clear();
//
// One thread uses it. Errors: see Sqlite. Internal to this library.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "telemetryserver/store/database.h"
#include "telemetryserver/store/heads.h"
#include "telemetryserver/store/rollups.h"
#include "telemetryserver/store/subject_table.h"

namespace nos::telemetryserver {

class ChunkTable {
 public:
  // All arguments must outlive this object.
  ChunkTable(Database& db, SubjectTable& subjects, Rollups& rollups)
      : db_(db), subjects_(subjects), rollups_(rollups) {}

  // --- Within a transaction ---
  // Writes one chunk per subject and full block.
  Status Write(int64_t cluster, const Heads& heads);
  // Removes samples in [from, to) of subjects with these prefixes.
  Status Remove(int64_t cluster, std::span<const std::string_view> prefixes, telemetry::Millis from,
                telemetry::Millis to);

  // Removes some chunks of the oldest flush that ended before `now - keep` and is rolled up, in its
  // own transaction. False: there is no such flush.
  Result<bool> Expire(telemetry::Millis now, telemetry::Millis keep);

  // Number of values of the cluster not stored since the last call, because it has too many
  // subjects.
  int64_t TakeUnkept(int64_t cluster);
  // Call after the commit: `heads` receives the IDs assigned to its subjects.
  void TakeIds(int64_t cluster, Heads& heads);
  // Call after a rollback: IDs assigned since are void.
  void Discard();

 private:
  Status WriteHeads(int64_t cluster, const HeadsBySubject& heads);
  Status WriteHead(int64_t flush, int64_t cluster, const std::string& subject, const Head& head);
  Result<int64_t> MetricId(const std::string& name);  // 0: too many names
  Status RemoveFromRow(int64_t row, telemetry::Millis from, telemetry::Millis to);

  Database& db_;
  SubjectTable& subjects_;
  Rollups& rollups_;
  std::map<std::string, int64_t> metrics_;
  std::map<int64_t, int64_t> unkept_;  // by cluster
  // IDs assigned to subjects since the last TakeIds.
  std::map<std::pair<int64_t, std::string>, int64_t> assigned_;
};

}  // namespace nos::telemetryserver
