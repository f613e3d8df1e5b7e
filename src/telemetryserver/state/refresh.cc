#include "telemetryserver/state/refresh.h"

#include <algorithm>
#include <utility>

namespace nos::telemetryserver {

Json RemovedAt(telemetry::Millis at, const std::string& what, const std::string& key) {
  return {{"kind", "removed"}, {"at", at}, {"what", what}, {"id", key}};
}

bool SameButTime(const Json& a, const Json& b) {
  if (a.get_object().size() != b.get_object().size()) return false;
  return std::ranges::all_of(a.get_object(), [&](const auto& member) {
    const Json* other = b.get_object().if_contains(member.key());
    return other != nullptr && (member.key() == "at" || *other == member.value());
  });
}

telemetry::Millis ReportedAt(const Thing& thing) {
  return telemetry::IntegerOr(thing.body, "at", 0);
}

void Refresh(Thing& thing, telemetry::Millis at) {
  thing.repeated = thing.repeated || at > ReportedAt(thing);
  thing.body.get_object()["at"] = at;
}

void Refresh(Pod& pod, telemetry::Millis at) {
  pod.repeated = pod.repeated || at > pod.at;
  pod.at = at;
  pod.body.get_object()["at"] = at;
}

void Refresh(Node& node, telemetry::Millis at) {
  node.record_repeated = node.record_repeated || at > node.record_at;
  node.record_at = at;
  node.body.get_object()["at"] = at;
}

void WriteAgain(std::string_view kind, const std::string& key, const Json& body, bool& repeated,
                Effects& effects) {
  if (!std::exchange(repeated, false)) return;
  effects.changes.push_back({telemetry::IntegerOr(body, "at", 0), std::string(kind), key, body});
}

// A layout has no stored body.
void WriteLayoutAgain(Node& node, Effects& effects) {
  WriteAgain("layout", node.name, telemetry::LayoutRecord(node.layout_at, node.layout),
             node.layout_repeated, effects);
}

bool IsOver(const Tombstones& gone, const telemetry::Record& record, const std::string& key,
            Effects& effects) {
  const telemetry::Millis since = gone.Since(record.kind, key);
  if (record.at >= since) return false;
  effects.changes.push_back({record.at, record.kind, key, record.body});
  if (since == gone.ListedAt(record.kind)) {
    effects.changes.push_back(
        {since, "removed", record.kind + "/" + key, RemovedAt(since, record.kind, key)});
  }
  return true;
}

}  // namespace nos::telemetryserver
