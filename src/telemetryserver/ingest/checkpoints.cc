#include "telemetryserver/ingest/checkpoints.h"

#include <algorithm>

namespace nos::telemetryserver {
namespace {

// A checkpoint costs about as much as events for its whole state.
constexpr size_t kEventsBetweenCheckpoints = 5000;

}  // namespace

Status CheckpointSchedule::Load(int64_t cluster) {
  Progress& progress = clusters_[cluster];
  NOS_ASSIGN(progress.at, store_.LatestCheckpoint(cluster));
  NOS_ASSIGN(progress.events, store_.EventsSinceCheckpoint(cluster));
  return Status::Ok();
}

void CheckpointSchedule::AddEvents(int64_t cluster, size_t count) {
  clusters_[cluster].events += static_cast<int64_t>(count);
}

bool CheckpointSchedule::IsDue(const Live& live) const {
  const auto found = clusters_.find(live.id);
  if (found == clusters_.end()) return false;
  return found->second.events >=
         static_cast<int64_t>(std::max(kEventsBetweenCheckpoints, live.state.size()));
}

Status CheckpointSchedule::WriteIfDue(const Live& live) {
  return IsDue(live) ? Write(live) : Status::Ok();
}

void CheckpointSchedule::Written(const Live& live) {
  if (IsDue(live)) Reset(live);
}

void CheckpointSchedule::Reset(const Live& live) { clusters_[live.id] = {live.state.now(), 0}; }

bool CheckpointSchedule::IsLate(int64_t cluster, telemetry::Millis at) const {
  const auto found = clusters_.find(cluster);
  return found != clusters_.end() && at <= found->second.at;
}

}  // namespace nos::telemetryserver
