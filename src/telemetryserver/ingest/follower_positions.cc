#include "telemetryserver/ingest/follower_positions.h"

#include <algorithm>
#include <limits>

namespace nos::telemetryserver {

Status FollowerPositions::Load() {
  const std::scoped_lock lock(mutex_);
  for (const std::string& follower : of_journal_) {
    NOS_ASSIGN(positions_[follower], store_.Position(follower));
  }
  for (const std::string& follower : of_events_) {
    NOS_ASSIGN(positions_[follower], store_.EventPosition(follower));
  }
  return Status::Ok();
}

int64_t FollowerPositions::Of(const std::string& follower) const {
  const std::scoped_lock lock(mutex_);
  return positions_.at(follower);
}

void FollowerPositions::Advance(const std::string& follower, int64_t id) {
  const std::scoped_lock lock(mutex_);
  positions_.at(follower) = id;
}

Result<int64_t> FollowerPositions::Write() const {
  std::map<std::string, int64_t> positions;
  {
    const std::scoped_lock lock(mutex_);
    positions = positions_;
  }
  int64_t held = std::numeric_limits<int64_t>::max();
  for (const auto& [follower, position] : positions) {
    NOS_RETURN_IF_ERROR(store_.SetPosition(follower, position));
  }
  for (const std::string& follower : of_journal_) {
    held = std::min(held, positions.at(follower));
  }
  return held;
}

}  // namespace nos::telemetryserver
