#include "telemetryserver/ingest/arrivals.h"

#include <algorithm>
#include <limits>

#include "telemetryserver/levels.h"

namespace nos::telemetryserver {

void Arrivals::AddSamples(telemetry::Millis at) {
  const std::scoped_lock lock(mutex_);
  Add(at, samples_);
}

void Arrivals::AddChange(telemetry::Millis at) {
  const std::scoped_lock lock(mutex_);
  Add(at, changes_);
}

uint64_t Arrivals::Mark() const {
  const std::scoped_lock lock(mutex_);
  return number_;
}

bool Arrivals::Changed(telemetry::Millis hour, uint64_t mark) const {
  const std::scoped_lock lock(mutex_);
  if (hour <= merged_until_ && merged_ > mark) return true;
  const auto samples = samples_.find(hour);
  if (samples != samples_.end() && samples->second > mark) return true;
  // A change lasts until the next one.
  return std::any_of(changes_.begin(), changes_.upper_bound(hour),
                     [&](const auto& change) { return change.second > mark; });
}

void Arrivals::Add(telemetry::Millis at, Hours& hours) {
  hours[FloorTo(std::max<telemetry::Millis>(0, at), kHour)] = ++number_;
  if (hours.size() <= kMaxHours) return;
  const auto oldest = hours.begin();
  // A merged change lasts, too: it counts for all hours.
  merged_until_ = &hours == &changes_ ? std::numeric_limits<telemetry::Millis>::max()
                                      : std::max(merged_until_, oldest->first);
  merged_ = std::max(merged_, oldest->second);
  hours.erase(oldest);
}

}  // namespace nos::telemetryserver
