#include "telemetryserver/state/things.h"

#include "telemetryserver/state/refresh.h"

namespace nos::telemetryserver {
namespace {

constexpr size_t kMaxThings = 50'000;

}  // namespace

bool ThingTable::Apply(const telemetry::Record& record, const std::string& key, Effects& effects) {
  const auto found = things_.find(key);
  if (found == things_.end() && IsOver(gone_, record, key, effects)) return false;
  if (found == things_.end() && things_.size() >= kMaxThings) return false;
  const bool same = found != things_.end() && SameButTime(found->second.body, record.body);
  const bool late = found != things_.end() && record.at < ReportedAt(found->second);
  if (late || !same) effects.changes.push_back({record.at, record.kind, key, record.body});
  if (late) {
    Thing& thing = found->second;
    if (!same) WriteAgain(record.kind, key, thing.body, thing.repeated, effects);
    return false;
  }
  if (same) {
    Refresh(found->second, record.at);
  } else {
    things_[key] = {record.body, false};
  }
  return !same;
}

bool ThingTable::Remove(telemetry::Millis at, const std::string& key, Effects& effects) {
  if (const auto found = things_.find(key); found != things_.end()) {
    Thing& thing = found->second;
    if (ReportedAt(thing) > at) {
      WriteAgain(kind_, key, thing.body, thing.repeated, effects);
      return false;
    }
    things_.erase(found);
  }
  gone_.Remove(kind_, key, at);
  return true;
}

std::vector<std::string> ThingTable::Unlisted(const std::set<std::string>& listed,
                                              telemetry::Millis at) const {
  std::vector<std::string> keys;
  for (const auto& [key, thing] : things_) {
    if (ReportedAt(thing) <= at && !listed.contains(key)) keys.push_back(key);
  }
  return keys;
}

void ThingTable::Confirm(telemetry::Millis listed) {
  for (auto& [key, thing] : things_) {
    const telemetry::Millis reported = ReportedAt(thing);
    if (reported >= 0 && reported < listed) Refresh(thing, listed);
  }
}

void ThingTable::NotAfter(telemetry::Millis now) {
  for (auto& [key, thing] : things_) {
    if (ReportedAt(thing) > now) thing.body.get_object()["at"] = now;
  }
}

}  // namespace nos::telemetryserver
