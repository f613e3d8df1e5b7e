// Objects of one cluster as values: pods, nodes, quotas, jobs, queues, pools, measurements; and
// what a record changes for history.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "telemetry/records.h"

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
  Json body;              // the record
  uint64_t version = 0;   // version of the state at its last change
  bool repeated = false;  // repeated at `at` without a change since it was written

  // True if it requests GPUs or parts of GPUs.
  bool WantsGpu() const;
  // True if scheduling gates hold it: no scheduler looks at it.
  bool IsGated() const;
  double Request(std::string_view resource) const;  // 0: none
};

struct Node {
  std::string name;
  telemetry::Millis layout_at = -1, record_at = -1;  // -1: none received
  telemetry::Millis removed_at =
      -1;  // removal before it came back: layouts reported until then are over
  telemetry::Layout layout;
  bool ready = true, schedulable = true;
  double free_cpu = 0, free_memory = 0;                   // requestable cores and MiB
  Json body;                                              // the record of the node; or null
  bool layout_repeated = false, record_repeated = false;  // see Pod::repeated
  uint64_t version = 0;                                   // version of the state at its last change
};

// A quota, a job, a queue or a node pool.
struct Thing {
  Json body;              // the record
  bool repeated = false;  // see Pod::repeated
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

// The last kMaxRecent of something, with the version of the state at each.
template <typename T>
using Recent = std::deque<std::pair<uint64_t, T>>;

template <typename T>
void Remember(Recent<T>& recent, uint64_t version, T what) {
  recent.emplace_back(version, std::move(what));
  if (recent.size() > kMaxRecent) recent.pop_front();
}

struct RemovedPod {
  std::string ns, uid;
};

// The version of a state, which all of its tables increase with every change.
struct Version {
  uint64_t value = 0;
  uint64_t Next() { return ++value; }
};

// Results of a record that are written to the store.
struct Effects {
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
  std::vector<Change> changes;
  std::vector<Hold> holds;
};

}  // namespace nos::telemetryserver
