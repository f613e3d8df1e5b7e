// Pods of one cluster, by uid and by name.
//
//   PodTable pods(version, gone, durations, nodes);
//   pods.Apply(record, uid, effects);
//   const Pod* pod = pods.Find("team-a", "train-0");
//
// A change of a pod increases the version of its node. Run times and pending times go to
// `durations` once per pod.
//
// Pure: no input or output. Bounded: beyond the limit an ended pod is removed for each new one.
// Internal to this library.
#pragma once

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "telemetryserver/state/durations.h"
#include "telemetryserver/state/nodes.h"
#include "telemetryserver/state/objects.h"
#include "telemetryserver/state/tombstones.h"

namespace nos::telemetryserver {

class PodTable {
 public:
  // All arguments must outlive this object.
  PodTable(Version& version, Tombstones& gone, Durations& durations, NodeTable& nodes)
      : version_(version), gone_(gone), durations_(durations), nodes_(nodes) {}

  void Apply(const telemetry::Record& record, const std::string& uid, Effects& effects);
  // Ignored if the pod was reported later.
  void Remove(telemetry::Millis at, const std::string& uid, Effects& effects);
  // Known pods, reported last at `at` or earlier, that are missing in the list.
  std::vector<std::string> Unlisted(const std::set<std::string>& listed,
                                    telemetry::Millis at) const;
  // Earlier records of the pods are confirmed unchanged by a full list.
  void Confirm(telemetry::Millis listed);
  // Limits all times to `now`, after the clock was ahead.
  void NotAfter(telemetry::Millis now);
  // Sets estimates of pending pods, by uid; other pods have no estimate.
  void SetEstimates(const std::map<std::string, Estimate>& estimates);

  const std::map<std::string, Pod>& all() const { return pods_; }  // by uid
  const Recent<RemovedPod>& removed() const { return removed_; }
  // The newest pod of that name; null: none.
  const Pod* Find(const std::string& ns, const std::string& name) const;

 private:
  void Erase(const std::string& uid);
  void MakeRoom();

  Version& version_;
  Tombstones& gone_;
  Durations& durations_;
  NodeTable& nodes_;
  std::map<std::string, Pod> pods_;
  std::unordered_map<std::string, std::string> uid_of_;  // by ns/name
  Recent<RemovedPod> removed_;
};

}  // namespace nos::telemetryserver
