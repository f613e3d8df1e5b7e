// Queries of State.
#include <algorithm>

#include "telemetryserver/state.h"

namespace nos::telemetryserver {
namespace {

Json RemovedNode(const std::string& name, telemetry::Millis at) {
  return {{"kind", "removed"}, {"at", at}, {"what", "node"}, {"id", name}};
}

}  // namespace

telemetry::Millis State::FreshAt(std::string_view source) const {
  const auto found = fresh_.find(source);
  return found == fresh_.end() ? -1 : found->second;
}

const Latest* State::LatestOf(std::string_view kind, const std::string& uuid) const {
  static thread_local std::string subject;
  subject.assign(kind).append("/").append(uuid);
  const auto found = latest_.find(subject);
  return found == latest_.end() ? nullptr : &found->second;
}

const Pod* State::FindPod(const std::string& ns, const std::string& name) const {
  // Reuses the buffer, because this is called for each holder of a fleet.
  static thread_local std::string key;
  key.assign(ns).append("/").append(name);
  const auto uid = uid_of_.find(key);
  if (uid == uid_of_.end()) return nullptr;
  const auto found = pods_.find(uid->second);
  return found == pods_.end() ? nullptr : &found->second;
}

std::vector<Slice> State::SlicesOf(const std::string& ns, const std::string& name) const {
  std::vector<Slice> slices;
  const auto nodes = nodes_of_.find(ns + "/" + name);
  if (nodes == nodes_of_.end()) return slices;
  const auto held = [&](const std::vector<telemetry::Holder>& holders) {
    return std::ranges::any_of(holders, [&](const telemetry::Holder& holder) {
      return holder.ns == ns && holder.pod == name;
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

std::vector<Json> State::Records() const {
  std::vector<Json> records;
  for (const auto& [name, node] : nodes_) {
    if (node.removed_at >= 0) records.push_back(RemovedNode(name, node.removed_at));
    if (node.record_at >= 0) records.push_back(node.body);
    if (node.layout_at >= 0)
      records.push_back(telemetry::LayoutRecord(node.layout_at, node.layout));
  }
  for (const auto& [name, gone] : gone_nodes_) {
    records.push_back(RemovedNode(name, gone.at));
    if (gone.layout_at >= 0)
      records.push_back(telemetry::LayoutRecord(gone.layout_at, gone.layout));
  }
  for (const auto& [uid, pod] : pods_) records.push_back(pod.body);
  for (const Things* things : {&quotas_, &jobs_, &queues_, &pools_}) {
    for (const auto& [key, thing] : *things) records.push_back(thing.body);
  }
  return records;
}

}  // namespace nos::telemetryserver
