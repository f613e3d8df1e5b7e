#include "telemetryserver/state/nodes.h"

#include <algorithm>
#include <utility>

#include "telemetryserver/state/refresh.h"

namespace nos::telemetryserver {
namespace {

constexpr size_t kMaxNodes = 20'000;

std::string PodKey(const std::string& ns, const std::string& name) { return ns + "/" + name; }

// (pod, subject) pairs of all held slices.
std::set<std::pair<std::string, std::string>> HeldIn(const telemetry::Layout& layout) {
  std::set<std::pair<std::string, std::string>> held;
  for (const telemetry::Gpu& gpu : layout.gpus) {
    for (const telemetry::Holder& holder : gpu.holders) {
      held.emplace(PodKey(holder.ns, holder.pod), SubjectOf(gpu));
    }
    for (const telemetry::Instance& instance : gpu.instances) {
      for (const telemetry::Holder& holder : instance.holders) {
        held.emplace(PodKey(holder.ns, holder.pod), SubjectOf(instance));
      }
    }
  }
  return held;
}

bool BoolOr(const Json& object, std::string_view key, bool fallback) {
  const Json* value = Find(object, key);
  return value != nullptr && value->is_bool() ? value->get_bool() : fallback;
}

}  // namespace

Node* NodeTable::Named(const std::string& name) {
  const auto found = nodes_.find(name);
  if (found != nodes_.end()) return &found->second;
  if (nodes_.size() >= kMaxNodes) return nullptr;
  Node& node = nodes_[name];
  node.name = name;
  return &node;
}

// Reports of its agent do not bring a removed node back; only a record of the node does.
void NodeTable::KeepForReturn(const telemetry::Record& record, const telemetry::Layout& layout,
                              Effects& effects) {
  Removed& gone = removed_.at(layout.node);
  const bool late = record.at < std::max(gone.at, gone.layout_at);
  if (late || gone.layout_at < 0 || gone.layout != layout) {
    effects.changes.push_back({record.at, record.kind, layout.node, record.body});
  }
  if (late) return;
  gone.layout_at = record.at;
  gone.layout = layout;
}

void NodeTable::ApplyLayout(const telemetry::Record& record, const telemetry::Layout& layout,
                            Effects& effects) {
  RemoveUnlisted(layout.node, record.at, effects);
  if (removed_.contains(layout.node)) return KeepForReturn(record, layout, effects);
  Node* node = Named(layout.node);
  if (node == nullptr) return;
  const bool same = node->layout_at >= 0 && node->layout == layout;
  const bool late = record.at < std::max(node->layout_at, node->removed_at);
  if (late || !same) {
    effects.changes.push_back({record.at, record.kind, layout.node, record.body});
  }
  if (late) {
    if (!same) WriteLayoutAgain(*node, effects);
    return;
  }
  if (!same) Exchange(*node, layout, record.at, effects);
  node->layout_repeated = same && (node->layout_repeated || record.at > node->layout_at);
  node->layout_at = record.at;
  node->version = version_.Next();
}

void NodeTable::Exchange(Node& node, const telemetry::Layout& layout, telemetry::Millis at,
                         Effects& effects) {
  const auto before = HeldIn(node.layout);
  const auto after = HeldIn(layout);
  for (const auto& [pod, subject] : before) {
    if (!after.contains({pod, subject})) effects.holds.push_back({at, pod, subject, false});
    nodes_of_[pod].erase(node.name);
    if (nodes_of_[pod].empty()) nodes_of_.erase(pod);
  }
  for (const auto& [pod, subject] : after) {
    if (!before.contains({pod, subject})) effects.holds.push_back({at, pod, subject, true});
    nodes_of_[pod].insert(node.name);
  }
  readings_.Move(node.name, node.layout, layout);
  node.layout = layout;
}

// An unknown node that was missing in a full list later than `at` was removed by then.
void NodeTable::RemoveUnlisted(const std::string& name, telemetry::Millis at, Effects& effects) {
  const telemetry::Millis listed = gone_.ListedAt("node");
  if (at >= listed || nodes_.contains(name) || removed_.contains(name)) return;
  effects.changes.push_back({listed, "removed", "node/" + name, RemovedAt(listed, "node", name)});
  Remove(listed, name, effects);
}

void NodeTable::Apply(const telemetry::Record& record, const std::string& name, Effects& effects) {
  RemoveUnlisted(name, record.at, effects);
  Removed back;
  if (const auto gone = removed_.find(name); gone != removed_.end()) {
    if (record.at < gone->second.at) {
      effects.changes.push_back({record.at, record.kind, name, record.body});
      return;
    }
    back = std::move(gone->second);
    removed_.erase(gone);
  }
  Node* node = Named(name);
  if (node == nullptr) return;
  const bool same = node->record_at >= 0 && SameButTime(node->body, record.body);
  const bool late = record.at < node->record_at;
  if (late || !same) {
    effects.changes.push_back({record.at, record.kind, name, record.body});
  }
  if (late) {
    if (!same) WriteAgain(record.kind, name, node->body, node->record_repeated, effects);
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
  node->version = version_.Next();
  node->body = record.body;
  node->record_repeated = false;
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

bool NodeTable::Remove(telemetry::Millis at, const std::string& name, Effects& effects) {
  const auto found = nodes_.find(name);
  const bool known = found != nodes_.end();
  const bool back = known && found->second.record_at > at;
  const bool reported_since = known && found->second.layout_at > at;
  if (reported_since) WriteLayoutAgain(found->second, effects);
  if (back) {
    Node& node = found->second;
    WriteAgain("node", name, node.body, node.record_repeated, effects);
    node.removed_at = std::max(node.removed_at, at);
    if (reported_since || node.layout_at < 0) return false;
    Exchange(node, {}, at, effects);
    node.layout_at = -1;
    node.layout_repeated = false;
    node.version = version_.Next();
    return false;
  }
  Removed& gone = removed_[name];
  gone.at = std::max(gone.at, at);
  if (reported_since) {
    gone.layout_at = found->second.layout_at;
    gone.layout = found->second.layout;
  } else if (gone.layout_at <= gone.at) {
    gone.layout_at = -1;
    gone.layout = {};
  }
  if (known) {
    Exchange(found->second, {}, at, effects);
    nodes_.erase(found);
    version_.Next();
  }
  if (removed_.size() > kMaxRecent) {
    removed_.erase(
        std::ranges::min_element(removed_, {}, [](const auto& each) { return each.second.at; }));
  }
  return known;
}

std::vector<std::string> NodeTable::Unlisted(const std::set<std::string>& listed,
                                             telemetry::Millis at) const {
  std::vector<std::string> names;
  for (const auto& [name, node] : nodes_) {
    const telemetry::Millis reported = node.record_at >= 0 ? node.record_at : node.layout_at;
    if (reported <= at && !listed.contains(name)) names.push_back(name);
  }
  return names;
}

void NodeTable::Confirm(telemetry::Millis listed) {
  for (auto& [name, node] : nodes_) {
    if (node.record_at >= 0 && node.record_at < listed) Refresh(node, listed);
  }
}

void NodeTable::NotAfter(telemetry::Millis now) {
  for (auto& [name, node] : nodes_) {
    if (node.record_at > now) node.body.get_object()["at"] = now;
    for (telemetry::Millis* at : {&node.layout_at, &node.record_at, &node.removed_at}) {
      *at = std::min(*at, now);
    }
    node.version = version_.Next();
  }
  for (auto& [name, gone] : removed_) {
    gone.at = std::min(gone.at, now);
    gone.layout_at = std::min(gone.layout_at, now);
  }
}

void NodeTable::Touch(const std::string& name) {
  if (const auto found = nodes_.find(name); found != nodes_.end()) {
    found->second.version = version_.Next();
  }
}

std::vector<Slice> NodeTable::SlicesOf(const std::string& ns, const std::string& pod) const {
  std::vector<Slice> slices;
  const auto nodes = nodes_of_.find(PodKey(ns, pod));
  if (nodes == nodes_of_.end()) return slices;
  const auto held = [&](const std::vector<telemetry::Holder>& holders) {
    return std::ranges::any_of(holders, [&](const telemetry::Holder& holder) {
      return holder.ns == ns && holder.pod == pod;
    });
  };
  for (const std::string& node_name : nodes->second) {
    const Node& node = nodes_.at(node_name);
    for (const telemetry::Gpu& gpu : node.layout.gpus) {
      if (held(gpu.holders)) slices.push_back({&node, &gpu, nullptr});
      for (const telemetry::Instance& instance : gpu.instances) {
        if (held(instance.holders)) slices.push_back({&node, &gpu, &instance});
      }
    }
  }
  return slices;
}

void NodeTable::AppendRecords(std::vector<Json>& records) const {
  for (const auto& [name, node] : nodes_) {
    if (node.removed_at >= 0) records.push_back(RemovedAt(node.removed_at, "node", name));
    if (node.record_at >= 0) records.push_back(node.body);
    if (node.layout_at >= 0)
      records.push_back(telemetry::LayoutRecord(node.layout_at, node.layout));
  }
  for (const auto& [name, gone] : removed_) {
    records.push_back(RemovedAt(gone.at, "node", name));
    if (gone.layout_at >= 0)
      records.push_back(telemetry::LayoutRecord(gone.layout_at, gone.layout));
  }
}

}  // namespace nos::telemetryserver
