// Nodes of one cluster with their layouts, the pods that hold slices, and nodes that were removed.
//
//   NodeTable nodes(version, gone, readings);
//   nodes.ApplyLayout(record, layout, effects);
//   for (const Slice& slice : nodes.SlicesOf("team-a", "train-0")) ...
//
// A node is known from its record or from its agent's first layout. A removed node stays known by
// name: only a record of the node brings it back, with the last layout that its agent reported
// meanwhile.
//
// Pure: no input or output. Bounded: nodes beyond the limit are ignored, the oldest removed nodes
// are dropped. Internal to this library.
#pragma once

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "telemetryserver/state/objects.h"
#include "telemetryserver/state/readings.h"
#include "telemetryserver/state/tombstones.h"

namespace nos::telemetryserver {

class NodeTable {
 public:
  // All arguments must outlive this object.
  NodeTable(Version& version, const Tombstones& gone, ReadingTable& readings)
      : version_(version), gone_(gone), readings_(readings) {}

  void ApplyLayout(const telemetry::Record& record, const telemetry::Layout& layout,
                   Effects& effects);
  // The record of the node `name`.
  void Apply(const telemetry::Record& record, const std::string& name, Effects& effects);
  // True: the node was known, and is removed. Reports of its agent after the removal apply once the
  // node is back.
  bool Remove(telemetry::Millis at, const std::string& name, Effects& effects);
  // Known nodes, reported last at `at` or earlier, that are missing in the list.
  std::vector<std::string> Unlisted(const std::set<std::string>& listed,
                                    telemetry::Millis at) const;
  // Earlier records of the nodes are confirmed unchanged by a full list.
  void Confirm(telemetry::Millis listed);
  // Limits all times to `now`, after the clock was ahead.
  void NotAfter(telemetry::Millis now);
  // Increases the version of a node; an unknown name is ignored.
  void Touch(const std::string& name);

  const std::map<std::string, Node>& all() const { return nodes_; }
  std::vector<Slice> SlicesOf(const std::string& ns, const std::string& pod) const;
  void AppendRecords(std::vector<Json>& records) const;
  // Number of records that AppendRecords adds, at most.
  size_t records() const { return nodes_.size() * 2 + removed_.size(); }

 private:
  // A removed node, with later reports of its agent, which may outlive the node's record.
  struct Removed {
    telemetry::Millis at = -1;
    telemetry::Millis layout_at = -1;
    telemetry::Layout layout = {};
  };

  Node* Named(const std::string& name);  // null: too many nodes
  void Exchange(Node& node, const telemetry::Layout& layout, telemetry::Millis at,
                Effects& effects);
  void KeepForReturn(const telemetry::Record& record, const telemetry::Layout& layout,
                     Effects& effects);
  void RemoveUnlisted(const std::string& name, telemetry::Millis at, Effects& effects);

  Version& version_;
  const Tombstones& gone_;
  ReadingTable& readings_;
  std::map<std::string, Node> nodes_;
  std::map<std::string, Removed> removed_;                           // by name, the last kMaxRecent
  std::unordered_map<std::string, std::set<std::string>> nodes_of_;  // by ns/name of a holder
};

}  // namespace nos::telemetryserver
