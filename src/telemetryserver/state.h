// The state of one cluster according to its reports: layouts, latest measurements, pods, nodes,
// quotas, node pools.
//
//   State state;
//   State::Effects effects = state.Apply(record, "node/gpu-17");
//   Write(effects.changes);
//
// Pure: no input or output. For each object the record with the latest time is valid. An earlier
// record that arrives late does not change the state, but is still a change to write, for history.
// The same is true for late records of removed objects. A record repeated without a change is
// written only if a late record would otherwise follow it. Applying the records of Records(), then
// the records of gone() and durations(), then all later changes in order of time, gives the same
// state.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "telemetry/records.h"
#include "telemetryserver/state/decisions.h"
#include "telemetryserver/state/durations.h"
#include "telemetryserver/state/nodes.h"
#include "telemetryserver/state/objects.h"
#include "telemetryserver/state/pods.h"
#include "telemetryserver/state/readings.h"
#include "telemetryserver/state/things.h"
#include "telemetryserver/state/tombstones.h"

namespace nos::telemetryserver {

class State {
 public:
  using Effects = telemetryserver::Effects;
  using Change = Effects::Change;
  using Hold = Effects::Hold;

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  Effects Apply(const telemetry::Record& record, std::string_view source);

  // Limits all times to `now`, after this server's clock was ahead.
  void NotAfter(telemetry::Millis now);

  // Increases with every change.
  uint64_t version() const { return version_.value; }
  uint64_t quotas_version() const { return quotas_version_; }
  uint64_t pools_version() const { return pools_version_; }
  // The last removed pods (uid) and decisions, with their versions.
  const Recent<RemovedPod>& removed_pods() const { return pods_.removed(); }
  const Recent<Json>& decisions() const { return decisions_.recent(); }
  // The latest time of any record.
  telemetry::Millis now() const { return now_; }
  // Latest time of records of a source; -1 if it never reported.
  telemetry::Millis FreshAt(std::string_view source) const;
  const std::map<std::string, Node>& nodes() const { return nodes_.all(); }
  const std::map<std::string, Pod>& pods() const { return pods_.all(); }  // by uid
  using Things = std::map<std::string, Thing>;
  const Things& quotas() const { return quotas_.all(); }  // by type/ns/name
  const Things& jobs() const { return jobs_.all(); }      // by id
  const Things& queues() const { return queues_.all(); }  // by id
  const Things& pools() const { return pools_.all(); }    // by id
  // Run times and pending times of similar pods (RunsKeys).
  const Durations& durations() const { return durations_; }
  const Tombstones& gone() const { return gone_; }
  // Reads a record of durations() or gone(). False: `record` is neither.
  bool Restore(const Json& record);
  // Sets estimates of pending pods, by uid; other pods have no estimate.
  void SetEstimates(const std::map<std::string, Estimate>& estimates) {
    pods_.SetEstimates(estimates);
  }
  // `kind`: "gpu" or "instance". Null: no reading received.
  const Latest* LatestOf(std::string_view kind, const std::string& uuid) const {
    return readings_.Of(kind, uuid);
  }
  // The node whose layout has the "gpu/..." or "instance/..."; null: none.
  const std::string* NodeOf(const std::string& subject) const { return readings_.NodeOf(subject); }
  // The newest pod of that name; null: none.
  const Pod* FindPod(const std::string& ns, const std::string& name) const {
    return pods_.Find(ns, name);
  }
  std::vector<Slice> SlicesOf(const std::string& ns, const std::string& name) const {
    return nodes_.SlicesOf(ns, name);
  }
  // The whole state as records.
  std::vector<Json> Records() const;
  // Number of records that Records returns.
  size_t size() const {
    return nodes_.records() + pods().size() + quotas().size() + jobs().size() + queues().size() +
           pools().size();
  }

 private:
  void ApplyObject(const telemetry::Record& record, const telemetry::Object& object,
                   Effects& effects);
  void ApplyThing(const telemetry::Record& record, const std::string& key, ThingTable& things,
                  Effects& effects);
  void ApplyRemoved(telemetry::Millis at, const telemetry::Removed& removed, const Json& body,
                    Effects& effects);
  void ApplyPresent(const telemetry::Record& record, const telemetry::Present& present,
                    Effects& effects);
  // Earlier records of the kind are confirmed unchanged by a full list.
  void Confirm(std::string_view what, telemetry::Millis listed);
  ThingTable* ThingsOf(std::string_view what);  // null: another kind
  void Changed(const ThingTable& things);

  Version version_;
  uint64_t quotas_version_ = 0, pools_version_ = 0;
  telemetry::Millis now_ = 0;
  std::map<std::string, telemetry::Millis, std::less<>> fresh_;  // by source
  Tombstones gone_;  // not nodes: NodeTable keeps those itself
  Durations durations_;
  ReadingTable readings_;
  NodeTable nodes_{version_, gone_, readings_};
  PodTable pods_{version_, gone_, durations_, nodes_};
  ThingTable quotas_{"quota", gone_}, jobs_{"job", gone_}, queues_{"queue", gone_},
      pools_{"pool", gone_};
  DecisionLog decisions_;
};

}  // namespace nos::telemetryserver
