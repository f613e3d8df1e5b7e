#include "telemetryserver/state.h"

#include <algorithm>

#include "telemetryserver/state/refresh.h"

namespace nos::telemetryserver {
namespace {

constexpr size_t kMaxSources = 40'000;

}  // namespace

State::Effects State::Apply(const telemetry::Record& record, std::string_view source) {
  Effects effects;
  // 1. The source is alive, even if the record is late.
  now_ = std::max(now_, record.at);
  if (auto known = fresh_.find(source); known != fresh_.end()) {
    known->second = std::max(known->second, record.at);
  } else if (fresh_.size() < kMaxSources) {
    fresh_.emplace(source, record.at);
  }
  // 2. The table of its kind decides whether the record changes the state, history, or neither.
  if (const auto* readings = std::get_if<telemetry::Readings>(&record.what)) {
    const std::string* node = readings_.Add(record.at, *readings);
    if (node != nullptr) nodes_.Touch(*node);
  } else if (const auto* layout = std::get_if<telemetry::Layout>(&record.what)) {
    nodes_.ApplyLayout(record, *layout, effects);
  } else if (const auto* removed = std::get_if<telemetry::Removed>(&record.what)) {
    ApplyRemoved(record.at, *removed, record.body, effects);
  } else if (const auto* present = std::get_if<telemetry::Present>(&record.what)) {
    ApplyPresent(record, *present, effects);
  } else if (const auto* happening = std::get_if<telemetry::Happening>(&record.what)) {
    effects.changes.push_back({record.at, record.kind, happening->object, record.body});
  } else if (const auto* object = std::get_if<telemetry::Object>(&record.what)) {
    ApplyObject(record, *object, effects);
  }
  return effects;
}

void State::ApplyObject(const telemetry::Record& record, const telemetry::Object& object,
                        Effects& effects) {
  using Kind = telemetry::Object::Kind;
  switch (object.kind) {
    case Kind::kPod:
      return pods_.Apply(record, object.key, effects);
    case Kind::kNode:
      return nodes_.Apply(record, object.key, effects);
    case Kind::kQuota:
      return ApplyThing(record, object.key, quotas_, effects);
    case Kind::kJob:
      return ApplyThing(record, object.key, jobs_, effects);
    case Kind::kQueue:
      return ApplyThing(record, object.key, queues_, effects);
    case Kind::kPool:
      return ApplyThing(record, object.key, pools_, effects);
    case Kind::kDecision: {
      const Json& decision = decisions_.Add(record, object.key, version_.Next());
      effects.changes.push_back({record.at, record.kind, object.key, decision});
      return;
    }
  }
}

void State::ApplyThing(const telemetry::Record& record, const std::string& key, ThingTable& things,
                       Effects& effects) {
  if (things.Apply(record, key, effects)) Changed(things);
}

void State::Changed(const ThingTable& things) {
  version_.Next();
  if (&things == &quotas_) quotas_version_ = version_.value;
  if (&things == &pools_) pools_version_ = version_.value;
}

ThingTable* State::ThingsOf(std::string_view what) {
  for (ThingTable* things : {&quotas_, &jobs_, &queues_, &pools_}) {
    if (things->kind() == what) return things;
  }
  return nullptr;
}

void State::ApplyRemoved(telemetry::Millis at, const telemetry::Removed& removed, const Json& body,
                         Effects& effects) {
  effects.changes.push_back({at, "removed", removed.what + "/" + removed.key, body});
  if (removed.what == "pod") {
    pods_.Remove(at, removed.key, effects);
  } else if (removed.what == "node") {
    // A node that comes back is fresh only after its agent's next report.
    if (nodes_.Remove(at, removed.key, effects)) fresh_.erase("node/" + removed.key);
  } else if (ThingTable* things = ThingsOf(removed.what)) {
    if (things->Remove(at, removed.key, effects)) Changed(*things);
  } else if (removed.what == "gpu") {
    readings_.Remove("gpu/" + removed.key);
  }
}

// Same as a removal of every object that is missing in the list, and a repeated record of the
// others.
void State::ApplyPresent(const telemetry::Record& record, const telemetry::Present& present,
                         Effects& effects) {
  const ThingTable* things = ThingsOf(present.what);
  std::vector<std::string> missing;
  if (present.what == "pod") {
    missing = pods_.Unlisted(present.keys, record.at);
  } else if (present.what == "node") {
    missing = nodes_.Unlisted(present.keys, record.at);
  } else if (things != nullptr) {
    missing = things->Unlisted(present.keys, record.at);
  } else {
    return;
  }
  for (const std::string& key : missing) {
    ApplyRemoved(record.at, {present.what, key}, RemovedAt(record.at, present.what, key), effects);
  }
  Confirm(present.what, record.at);
  Tombstones listing;
  listing.List(present.what, record.at);
  gone_.List(present.what, record.at);
  effects.changes.push_back({record.at, "gone", present.what, listing.ToJson(record.at)});
}

void State::Confirm(std::string_view what, telemetry::Millis listed) {
  if (what == "pod") {
    pods_.Confirm(listed);
  } else if (what == "node") {
    nodes_.Confirm(listed);
  } else if (ThingTable* things = ThingsOf(what)) {
    things->Confirm(listed);
  }
}

bool State::Restore(const Json& record) {
  if (Durations::IsRecord(record)) {
    durations_.Read(record);
  } else if (Tombstones::IsRecord(record)) {
    gone_.Read(record);
    for (const char* what : {"pod", "node", "quota", "job", "queue", "pool"}) {
      Confirm(what, gone_.ListedAt(what));
    }
  } else {
    return false;
  }
  return true;
}

void State::NotAfter(telemetry::Millis now) {
  now_ = std::min(now_, now);
  for (auto& [source, at] : fresh_) at = std::min(at, now);
  nodes_.NotAfter(now);
  pods_.NotAfter(now);
  for (ThingTable* things : {&quotas_, &jobs_, &queues_, &pools_}) things->NotAfter(now);
  readings_.NotAfter(now);
  gone_.NotAfter(now);
}

telemetry::Millis State::FreshAt(std::string_view source) const {
  const auto found = fresh_.find(source);
  return found == fresh_.end() ? -1 : found->second;
}

std::vector<Json> State::Records() const {
  std::vector<Json> records;
  nodes_.AppendRecords(records);
  for (const auto& [uid, pod] : pods()) records.push_back(pod.body);
  for (const ThingTable* things : {&quotas_, &jobs_, &queues_, &pools_}) {
    for (const auto& [key, thing] : things->all()) records.push_back(thing.body);
  }
  return records;
}

}  // namespace nos::telemetryserver
