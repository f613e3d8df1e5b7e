// One cluster as it is by what has been reported: layouts, latest measurements, pods, nodes,
// quotas, node pools.
//
//   State state;
//   State::Effects effects = state.Apply(record, "node/gpu-17");  // effects.changes: write them
//   down
//
// Pure. Per object the record with the latest time counts; an earlier one that comes late changes
// nothing here and is still a change to be written down, for the past. So is one of something that
// is gone by now. What is told again unchanged is written down once something late comes between.
// Applying the records of Records(), what gone() and durations() write, and then all changes since
// in order of time, gives the same state again.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "telemetryserver/state/durations.h"
#include "telemetryserver/state/gone.h"
#include "telemetry/records.h"

namespace nos::telemetryserver {

// When a pod that waits will start, about.
struct Estimate {
  telemetry::Millis at = 0;          // 0: nobody knows
  std::string_view by{};  // "plan", "reclaim", "history": what says so; else why nobody knows
  friend bool operator==(const Estimate&, const Estimate&) = default;
};

struct Pod {
  std::string uid, ns, name, state, node, quota;
  std::string job;  // "Job/train"; "": none
  int64_t priority = 0;
  telemetry::Millis at = 0, created = 0, scheduled = 0, started = 0, finished = 0;
  telemetry::Millis ends = 0;  // by when one that is being deleted is gone; 0: it is not
  Estimate estimate{};
  std::vector<std::pair<std::string, double>> requests;
  Json body;             // the record
  uint64_t version = 0;  // of the state when it changed last
  bool retold = false;   // at `at`, unchanged, since it was written down

  // Whether it asks for GPUs or parts of them.
  bool WantsGpu() const;
  double Request(std::string_view resource) const;  // 0: none
};

struct Node {
  std::string name;
  telemetry::Millis layout_at = -1, record_at = -1;  // -1: none has come
  telemetry::Millis removed_at = -1;  // before it came back: what was told of its layout until then is over
  telemetry::Layout layout;
  bool ready = true, schedulable = true;
  double free_cpu = 0, free_memory = 0;               // cores, MiB; of what can be asked for
  Json body;                                          // the record of the node; null
  bool layout_retold = false, record_retold = false;  // as Pod's
  uint64_t version = 0;  // of the state when anything about it changed last
};

// A quota, a job, a queue, a node pool.
struct Thing {
  Json body;            // the record
  bool retold = false;  // as Pod's
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

// Which pods last about as long: those of one job, or whose names begin alike; "ns" alone: all of a
// namespace. First the closest.
std::vector<std::string> RunsKeys(const Pod& pod);

// Removals and decisions that a State remembers for who follows it.
inline constexpr size_t kMostRecent = 1000;

class State {
 public:
  // To be written down: what was so from `at` on.
  struct Change {
    telemetry::Millis at = 0;
    std::string kind, object;  // of the record; node, uid, type/ns/name, ...
    Json body;
  };
  // A pod got a slice ("gpu/..." or "instance/..."), or gave it back.
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

  // What was told for later than that is of that time: this server's clock had been ahead.
  void NotAfter(telemetry::Millis now);

  // Goes up with every change.
  uint64_t version() const { return version_; }
  uint64_t quotas_version() const { return quotas_version_; }
  uint64_t pools_version() const { return pools_version_; }
  // The last pods that went (uid), and the last decisions, with the version that they came with.
  template <typename T>
  using Recent = std::deque<std::pair<uint64_t, T>>;
  struct RemovedPod {
    std::string ns, uid;
  };
  const Recent<RemovedPod>& removed_pods() const { return removed_pods_; }
  const Recent<Json>& decisions() const { return decisions_; }
  // The latest time of any record.
  telemetry::Millis now() const { return now_; }
  // Of the records of one source, or of all for a source never heard of: -1.
  telemetry::Millis FreshAt(std::string_view source) const;
  const std::map<std::string, Node>& nodes() const { return nodes_; }
  const std::map<std::string, Pod>& pods() const { return pods_; }  // by uid
  using Things = std::map<std::string, Thing>;
  const Things& quotas() const { return quotas_; }  // by type/ns/name
  const Things& jobs() const { return jobs_; }      // by id
  const Things& queues() const { return queues_; }  // by id
  const Things& pools() const { return pools_; }    // by id
  // How long pods that are alike (RunsKeys) ran until they ended, and how long they waited.
  const Durations& durations() const { return durations_; }
  const Gone& gone() const { return gone_; }
  // What durations() or gone() wrote. False: `record` is none of that.
  bool Recall(const Json& record);
  // Of the pods that wait, by uid; those that are not named are not known.
  void SetEstimates(const std::map<std::string, Estimate>& estimates);
  // `kind`: "gpu" or "instance". Null: nothing has come.
  const Latest* LatestOf(std::string_view kind, const std::string& uuid) const;
  // The newest of that name; null: none.
  const Pod* FindPod(const std::string& ns, const std::string& name) const;
  std::vector<Slice> SlicesOf(const std::string& ns, const std::string& name) const;
  // All that is, as records.
  std::vector<Json> Records() const;
  // How many things there are (what Records would give).
  size_t size() const {
    return nodes_.size() * 2 + gone_nodes_.size() + pods_.size() + quotas_.size() + jobs_.size() +
           queues_.size() + pools_.size();
  }

 private:
  void ApplyReadings(const telemetry::Record& record, const telemetry::Readings& readings);
  void ApplyLayout(const telemetry::Record& record, const telemetry::Layout& layout, Effects& effects);
  void Exchange(Node& node, const telemetry::Layout& layout, telemetry::Millis at, Effects& effects);
  void ApplyPod(const telemetry::Record& record, const telemetry::Object& object, Effects& effects);
  void ApplyNode(const telemetry::Record& record, const telemetry::Object& object, Effects& effects);
  // Whether it is now another one than before.
  bool ApplyThing(const telemetry::Record& record, const telemetry::Object& object, Things& things, Effects& effects);
  Things* ThingsOf(std::string_view what);  // null: none of these
  void ApplyRemoved(const telemetry::Record& record, const telemetry::Removed& removed, Effects& effects);
  void RemoveNode(const telemetry::Record& record, const std::string& name, Effects& effects);
  void ApplyPresent(const telemetry::Record& record, const telemetry::Present& present, Effects& effects);
  void Confirm(std::string_view what, telemetry::Millis listed);
  bool IsOver(const telemetry::Record& record, const std::string& key, Effects& effects) const;
  void ForgetUnlisted(const std::string& node, telemetry::Millis at, Effects& effects);
  Json DecisionOf(const telemetry::Record& record, const std::string& id) const;
  void ForgetPod(const std::string& uid);
  void MakeRoomForPod();
  Node* NodeNamed(const std::string& name);  // null: there are too many
  void KeepForReturn(const telemetry::Record& record, const telemetry::Layout& layout, Effects& effects);
  void Touch(const std::string& node);

  uint64_t version_ = 0, quotas_version_ = 0, pools_version_ = 0;
  Recent<RemovedPod> removed_pods_;
  Recent<Json> decisions_;
  telemetry::Millis now_ = 0;
  std::map<std::string, telemetry::Millis, std::less<>> fresh_;  // by source
  std::map<std::string, Node> nodes_;
  // That were told to be gone, by name, and what their agents, who live a moment longer, have told
  // since. The last kMostRecent of them.
  struct GoneNode {
    telemetry::Millis at = -1;
    telemetry::Millis layout_at = -1;
    telemetry::Layout layout = {};
  };
  std::map<std::string, GoneNode> gone_nodes_;
  std::map<std::string, Pod> pods_;
  Things quotas_, jobs_, queues_, pools_;
  Durations durations_;
  Gone gone_;                                            // not nodes' removals: gone_nodes_
  std::unordered_map<std::string, std::string> uid_of_;  // by ns/name
  std::unordered_map<std::string, std::set<std::string>> nodes_of_;  // by ns/name of a holder
  std::unordered_map<std::string, Latest> latest_;                   // by subject
  std::unordered_map<std::string, std::string> node_of_;             // by subject
};

}  // namespace nos::telemetryserver
