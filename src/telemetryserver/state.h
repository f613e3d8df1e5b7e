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

#include <deque>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "telemetry/records.h"
#include "telemetryserver/state/durations.h"
#include "telemetryserver/state/tombstones.h"

namespace nos::telemetryserver {

// Estimated start of a pending pod.
struct Estimate {
  telemetry::Millis at = 0;  // 0: unknown
  std::string_view by{};     // source: "plan", "reclaim", "history"; else why it is unknown
  friend bool operator==(const Estimate&, const Estimate&) = default;
};

struct Pod {
  std::string uid, ns, name, state, node, quota;
  std::string job;  // "Job/train"; "": none
  int64_t priority = 0;
  telemetry::Millis at = 0, created = 0, scheduled = 0, started = 0, finished = 0;
  telemetry::Millis ends = 0;  // deletion deadline of a pod being deleted; 0: it is not
  Estimate estimate{};
  std::vector<std::pair<std::string, double>> requests;
  Json body;             // the record
  uint64_t version = 0;  // version of the state at its last change
  bool retold = false;   // repeated at `at` without a change since it was written

  // True if it requests GPUs or parts of GPUs.
  bool WantsGpu() const;
  double Request(std::string_view resource) const;  // 0: none
};

struct Node {
  std::string name;
  telemetry::Millis layout_at = -1, record_at = -1;  // -1: none received
  telemetry::Millis removed_at =
      -1;  // removal before it came back: layouts reported until then are over
  telemetry::Layout layout;
  bool ready = true, schedulable = true;
  double free_cpu = 0, free_memory = 0;               // requestable cores and MiB
  Json body;                                          // the record of the node; or null
  bool layout_retold = false, record_retold = false;  // see Pod::retold
  uint64_t version = 0;                               // version of the state at its last change
};

// A quota, a job, a queue or a node pool.
struct Thing {
  Json body;            // the record
  bool retold = false;  // see Pod::retold
  friend bool operator==(const Thing&, const Thing&) = default;
};

struct Latest {
  telemetry::Millis at = -1;
  telemetry::Readings readings;
};

// A slice, or a whole GPU (null instance), that a pod holds.
struct Slice {
  const Node* node = nullptr;
  const telemetry::Gpu* gpu = nullptr;
  const telemetry::Instance* instance = nullptr;
};

// Keys of pods with similar run times, closest first: pods of one job, or with similar names; "ns"
// alone: all pods of a namespace.
std::vector<std::string> RunsKeys(const Pod& pod);

// Maximum number of removals and decisions that a State keeps for its followers.
inline constexpr size_t kMaxRecent = 1000;

class State {
 public:
  // A change to write: the state of an object from `at` on.
  struct Change {
    telemetry::Millis at = 0;
    std::string kind, object;  // of the record; node, uid, type/ns/name, ...
    Json body;
  };
  // A pod received a slice ("gpu/..." or "instance/...") or released it.
  struct Hold {
    telemetry::Millis at = 0;
    std::string pod;  // ns/name
    std::string subject;
    bool begins = false;
  };
  struct Effects {
    std::vector<Change> changes;
    std::vector<Hold> holds;
  };

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  Effects Apply(const telemetry::Record& record, std::string_view source);

  // Limits all times to `now`, after this server's clock was ahead.
  void NotAfter(telemetry::Millis now);

  // Increases with every change.
  uint64_t version() const { return version_; }
  uint64_t quotas_version() const { return quotas_version_; }
  uint64_t pools_version() const { return pools_version_; }
  // The last removed pods (uid) and decisions, with their versions.
  template <typename T>
  using Recent = std::deque<std::pair<uint64_t, T>>;
  struct RemovedPod {
    std::string ns, uid;
  };
  const Recent<RemovedPod>& removed_pods() const { return removed_pods_; }
  const Recent<Json>& decisions() const { return decisions_; }
  // The latest time of any record.
  telemetry::Millis now() const { return now_; }
  // Latest time of records of a source; -1 if it never reported.
  telemetry::Millis FreshAt(std::string_view source) const;
  const std::map<std::string, Node>& nodes() const { return nodes_; }
  const std::map<std::string, Pod>& pods() const { return pods_; }  // by uid
  using Things = std::map<std::string, Thing>;
  const Things& quotas() const { return quotas_; }  // by type/ns/name
  const Things& jobs() const { return jobs_; }      // by id
  const Things& queues() const { return queues_; }  // by id
  const Things& pools() const { return pools_; }    // by id
  // Run times and pending times of similar pods (RunsKeys).
  const Durations& durations() const { return durations_; }
  const Tombstones& gone() const { return gone_; }
  // Reads a record of durations() or gone(). False: `record` is neither.
  bool Recall(const Json& record);
  // Sets estimates of pending pods, by uid; other pods have no estimate.
  void SetEstimates(const std::map<std::string, Estimate>& estimates);
  // `kind`: "gpu" or "instance". Null: no reading received.
  const Latest* LatestOf(std::string_view kind, const std::string& uuid) const;
  // The newest pod of that name; null: none.
  const Pod* FindPod(const std::string& ns, const std::string& name) const;
  std::vector<Slice> SlicesOf(const std::string& ns, const std::string& name) const;
  // The whole state as records.
  std::vector<Json> Records() const;
  // Number of records that Records returns.
  size_t size() const {
    return nodes_.size() * 2 + gone_nodes_.size() + pods_.size() + quotas_.size() + jobs_.size() +
           queues_.size() + pools_.size();
  }

 private:
  void ApplyReadings(const telemetry::Record& record, const telemetry::Readings& readings);
  void ApplyLayout(const telemetry::Record& record, const telemetry::Layout& layout,
                   Effects& effects);
  void Exchange(Node& node, const telemetry::Layout& layout, telemetry::Millis at,
                Effects& effects);
  void ApplyPod(const telemetry::Record& record, const telemetry::Object& object, Effects& effects);
  void ApplyNode(const telemetry::Record& record, const telemetry::Object& object,
                 Effects& effects);
  // True if the object changed.
  bool ApplyThing(const telemetry::Record& record, const telemetry::Object& object, Things& things,
                  Effects& effects);
  Things* ThingsOf(std::string_view what);  // null: another kind
  void ApplyRemoved(const telemetry::Record& record, const telemetry::Removed& removed,
                    Effects& effects);
  void RemoveNode(const telemetry::Record& record, const std::string& name, Effects& effects);
  void ApplyPresent(const telemetry::Record& record, const telemetry::Present& present,
                    Effects& effects);
  void Confirm(std::string_view what, telemetry::Millis listed);
  bool IsOver(const telemetry::Record& record, const std::string& key, Effects& effects) const;
  void ForgetUnlisted(const std::string& node, telemetry::Millis at, Effects& effects);
  Json DecisionOf(const telemetry::Record& record, const std::string& id) const;
  void ForgetPod(const std::string& uid);
  void MakeRoomForPod();
  Node* NodeNamed(const std::string& name);  // null: too many nodes
  void KeepForReturn(const telemetry::Record& record, const telemetry::Layout& layout,
                     Effects& effects);
  void Touch(const std::string& node);

  uint64_t version_ = 0, quotas_version_ = 0, pools_version_ = 0;
  Recent<RemovedPod> removed_pods_;
  Recent<Json> decisions_;
  telemetry::Millis now_ = 0;
  std::map<std::string, telemetry::Millis, std::less<>> fresh_;  // by source
  std::map<std::string, Node> nodes_;
  // Removed nodes by name, with later reports of their agents, which may outlive the node's record.
  // Limited to the last kMaxRecent.
  struct GoneNode {
    telemetry::Millis at = -1;
    telemetry::Millis layout_at = -1;
    telemetry::Layout layout = {};
  };
  std::map<std::string, GoneNode> gone_nodes_;
  std::map<std::string, Pod> pods_;
  Things quotas_, jobs_, queues_, pools_;
  Durations durations_;
  Tombstones gone_;                                                  // not nodes: gone_nodes_
  std::unordered_map<std::string, std::string> uid_of_;              // by ns/name
  std::unordered_map<std::string, std::set<std::string>> nodes_of_;  // by ns/name of a holder
  std::unordered_map<std::string, Latest> latest_;                   // by subject
  std::unordered_map<std::string, std::string> node_of_;             // by subject
};

}  // namespace nos::telemetryserver
