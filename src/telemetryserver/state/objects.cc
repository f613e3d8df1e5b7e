// Objects of the state: nodes, quotas, jobs, queues, pools; and their removal.
#include <algorithm>
#include <utility>

#include "telemetryserver/state.h"
#include "telemetryserver/state/refresh.h"

namespace nos::telemetryserver {
namespace {

constexpr size_t kMaxThings = 50'000;

bool BoolOr(const Json& object, std::string_view key, bool fallback) {
  const Json* value = Find(object, key);
  return value != nullptr && value->is_bool() ? value->get_bool() : fallback;
}

telemetry::Record RemovedAt(telemetry::Millis at, const std::string& what, const std::string& key) {
  return {at,
          "removed",
          {{"kind", "removed"}, {"at", at}, {"what", what}, {"id", key}},
          telemetry::Removed{what, key}};
}

}  // namespace

bool SameButTime(const Json& a, const Json& b) {
  if (a.get_object().size() != b.get_object().size()) return false;
  return std::ranges::all_of(a.get_object(), [&](const auto& member) {
    const Json* other = b.get_object().if_contains(member.key());
    return other != nullptr && (member.key() == "at" || *other == member.value());
  });
}

telemetry::Millis ToldAt(const Thing& thing) { return telemetry::IntegerOr(thing.body, "at", 0); }

void Refresh(Thing& thing, telemetry::Millis at) {
  thing.retold = thing.retold || at > ToldAt(thing);
  thing.body.get_object()["at"] = at;
}

void Refresh(Pod& pod, telemetry::Millis at) {
  pod.retold = pod.retold || at > pod.at;
  pod.at = at;
  pod.body.get_object()["at"] = at;
}

void Refresh(Node& node, telemetry::Millis at) {
  node.record_retold = node.record_retold || at > node.record_at;
  node.record_at = at;
  node.body.get_object()["at"] = at;
}

void WriteAgain(std::string_view kind, const std::string& key, const Json& body, bool& retold,
                State::Effects& effects) {
  if (!std::exchange(retold, false)) return;
  effects.changes.push_back({telemetry::IntegerOr(body, "at", 0), std::string(kind), key, body});
}

// A layout has no stored body.
void WriteLayoutAgain(Node& node, State::Effects& effects) {
  WriteAgain("layout", node.name, telemetry::LayoutRecord(node.layout_at, node.layout),
             node.layout_retold, effects);
}

// True if a record of an unknown object is older than the object's removal. It is then written for
// history only, together with the removal.
bool State::IsOver(const telemetry::Record& record, const std::string& key,
                   Effects& effects) const {
  const telemetry::Millis since = gone_.Since(record.kind, key);
  if (record.at >= since) return false;
  effects.changes.push_back({record.at, record.kind, key, record.body});
  if (since == gone_.ListedAt(record.kind)) {
    const telemetry::Record removed = RemovedAt(since, record.kind, key);
    effects.changes.push_back({since, removed.kind, record.kind + "/" + key, removed.body});
  }
  return true;
}

// An unknown node that was missing in a full list later than `at` was removed by then.
void State::ForgetUnlisted(const std::string& node, telemetry::Millis at, Effects& effects) {
  const telemetry::Millis listed = gone_.ListedAt("node");
  if (at >= listed || nodes_.contains(node) || gone_nodes_.contains(node)) return;
  ApplyRemoved(RemovedAt(listed, "node", node), {"node", node}, effects);
}

void State::ApplyNode(const telemetry::Record& record, const telemetry::Object& object,
                      Effects& effects) {
  ForgetUnlisted(object.key, record.at, effects);
  GoneNode back;
  if (const auto gone = gone_nodes_.find(object.key); gone != gone_nodes_.end()) {
    if (record.at < gone->second.at) {
      effects.changes.push_back({record.at, record.kind, object.key, record.body});
      return;
    }
    back = std::move(gone->second);
    gone_nodes_.erase(gone);
  }
  Node* node = NodeNamed(object.key);
  if (node == nullptr) return;
  const bool same = node->record_at >= 0 && SameButTime(node->body, record.body);
  const bool late = record.at < node->record_at;
  if (late || !same) {
    effects.changes.push_back({record.at, record.kind, object.key, record.body});
  }
  if (late) {
    if (!same) WriteAgain(record.kind, object.key, node->body, node->record_retold, effects);
    return;
  }
  if (same) Refresh(*node, record.at);
  node->record_at = record.at;
  node->removed_at = std::max(node->removed_at, back.at);
  if (back.layout_at >= 0) {
    ApplyLayout(
        {back.layout_at, "layout", telemetry::LayoutRecord(back.layout_at, back.layout), {}},
        back.layout, effects);
  }
  if (same) return;
  node->version = ++version_;
  node->body = record.body;
  node->record_retold = false;
  node->ready = BoolOr(record.body, "ready", true);
  node->schedulable = BoolOr(record.body, "schedulable", true);
  const Json none = JsonObject();
  const Json* allocatable = Find(record.body, "allocatable");
  const Json* requested = Find(record.body, "requested");
  const auto free = [&](std::string_view key) {
    return telemetry::NumberOr(allocatable == nullptr ? none : *allocatable, key, 0) -
           telemetry::NumberOr(requested == nullptr ? none : *requested, key, 0);
  };
  node->free_cpu = free("cpu");
  node->free_memory = free("memory");
}

bool State::ApplyThing(const telemetry::Record& record, const telemetry::Object& object,
                       Things& things, Effects& effects) {
  const auto found = things.find(object.key);
  if (found == things.end() && IsOver(record, object.key, effects)) return false;
  if (found == things.end() && things.size() >= kMaxThings) return false;
  const bool same = found != things.end() && SameButTime(found->second.body, record.body);
  const bool late = found != things.end() && record.at < ToldAt(found->second);
  if (late || !same) {
    effects.changes.push_back({record.at, record.kind, object.key, record.body});
  }
  if (late) {
    Thing& thing = found->second;
    if (!same) WriteAgain(record.kind, object.key, thing.body, thing.retold, effects);
    return false;
  }
  if (same) {
    Refresh(found->second, record.at);
  } else {
    things[object.key] = {record.body, false};
  }
  return !same;
}

State::Things* State::ThingsOf(std::string_view what) {
  if (what == "quota") return &quotas_;
  if (what == "job") return &jobs_;
  if (what == "queue") return &queues_;
  return what == "pool" ? &pools_ : nullptr;
}

void State::ApplyRemoved(const telemetry::Record& record, const telemetry::Removed& removed,
                         Effects& effects) {
  effects.changes.push_back(
      {record.at, record.kind, removed.what + "/" + removed.key, record.body});
  if (removed.what == "pod") {
    if (const auto found = pods_.find(removed.key); found != pods_.end()) {
      Pod& pod = found->second;
      if (pod.at > record.at) {
        return WriteAgain(removed.what, removed.key, pod.body, pod.retold, effects);
      }
      ForgetPod(removed.key);
    }
    gone_.Remove(removed.what, removed.key, record.at);
  } else if (removed.what == "node") {
    RemoveNode(record, removed.key, effects);
  } else if (Things* things = ThingsOf(removed.what)) {
    if (const auto found = things->find(removed.key); found != things->end()) {
      Thing& thing = found->second;
      if (ToldAt(thing) > record.at) {
        return WriteAgain(removed.what, removed.key, thing.body, thing.retold, effects);
      }
      things->erase(found);
    }
    gone_.Remove(removed.what, removed.key, record.at);
    ++version_;
    if (things == &quotas_) quotas_version_ = version_;
    if (things == &pools_) pools_version_ = version_;
  } else if (removed.what == "gpu") {
    latest_.erase("gpu/" + removed.key);
  }
}

// Reports of its agent after the removal apply once the node is back.
void State::RemoveNode(const telemetry::Record& record, const std::string& name, Effects& effects) {
  const auto found = nodes_.find(name);
  const bool back = found != nodes_.end() && found->second.record_at > record.at;
  const bool told_since = found != nodes_.end() && found->second.layout_at > record.at;
  if (told_since) WriteLayoutAgain(found->second, effects);
  if (back) {
    Node& node = found->second;
    WriteAgain("node", name, node.body, node.record_retold, effects);
    node.removed_at = std::max(node.removed_at, record.at);
    if (told_since || node.layout_at < 0) return;
    Exchange(node, {}, record.at, effects);
    node.layout_at = -1;
    node.layout_retold = false;
    node.version = ++version_;
    return;
  }
  GoneNode& gone = gone_nodes_[name];
  gone.at = std::max(gone.at, record.at);
  if (told_since) {
    gone.layout_at = found->second.layout_at;
    gone.layout = found->second.layout;
  } else if (gone.layout_at <= gone.at) {
    gone.layout_at = -1;
    gone.layout = {};
  }
  if (found != nodes_.end()) {
    Exchange(found->second, {}, record.at, effects);
    nodes_.erase(found);
    fresh_.erase("node/" + name);
    ++version_;
  }
  if (gone_nodes_.size() > kMaxRecent) {
    gone_nodes_.erase(
        std::ranges::min_element(gone_nodes_, {}, [](const auto& each) { return each.second.at; }));
  }
}

// Same as a removal of every object that is missing in the list, and a repeated record of the
// others.
void State::ApplyPresent(const telemetry::Record& record, const telemetry::Present& present,
                         Effects& effects) {
  const Things* things = ThingsOf(present.what);
  if (present.what != "pod" && present.what != "node" && things == nullptr) return;
  std::vector<std::string> gone;
  const auto look = [&](const std::string& key, telemetry::Millis told) {
    if (told <= record.at && !present.keys.contains(key)) gone.push_back(key);
  };
  if (present.what == "pod") {
    for (const auto& [uid, pod] : pods_) look(uid, pod.at);
  } else if (present.what == "node") {
    for (const auto& [name, node] : nodes_) {
      look(name, node.record_at >= 0 ? node.record_at : node.layout_at);
    }
  } else {
    for (const auto& [key, thing] : *things) look(key, ToldAt(thing));
  }
  for (const std::string& key : gone) {
    ApplyRemoved(RemovedAt(record.at, present.what, key), {present.what, key}, effects);
  }
  Confirm(present.what, record.at);
  Tombstones listing;
  listing.List(present.what, record.at);
  gone_.List(present.what, record.at);
  effects.changes.push_back({record.at, "gone", present.what, listing.ToJson(record.at)});
}

// After a full list of a kind: earlier records of the listed objects are confirmed unchanged.
void State::Confirm(std::string_view what, telemetry::Millis listed) {
  const auto confirm = [&](auto& each, telemetry::Millis told) {
    if (told >= 0 && told < listed) Refresh(each, listed);
  };
  if (what == "pod") {
    for (auto& [uid, pod] : pods_) confirm(pod, pod.at);
  } else if (what == "node") {
    for (auto& [name, node] : nodes_) confirm(node, node.record_at);
  } else if (Things* things = ThingsOf(what)) {
    for (auto& [key, thing] : *things) confirm(thing, ToldAt(thing));
  }
}

}  // namespace nos::telemetryserver
