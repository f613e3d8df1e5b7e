// Derives jobs and queues from pods and from job objects (parts.h). Pods show the job of any kind
// of owner; objects also show jobs without pods. All sources of a job are merged into one record.
//
//   JobTally jobs;
//   jobs.Put(pod, finished);
//   jobs.Put(job);
//   for (JsonObject& record : jobs.TakeChanges()) ...   // "job", "queue", "removed"
//
// No I/O. A change costs time proportional to the number of pods of its job.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "cluster/objects.h"
#include "codec/json.h"
#include "controllers/collector/parts.h"

namespace nos::controllers {

// The topmost owner of the pod: the owner that its labels name (JobAbove, or the Deployment of a
// ReplicaSet whose name ends in the label pod-template-hash), else its controller. No value: the
// pod has no controller, or a Node or DaemonSet, whose pods are not jobs.
std::optional<JobName> JobOf(const cluster::Pod& pod);

class JobTally {
 public:
  // Upper limit of stored objects other than pods.
  static constexpr size_t kMaxParts = 20'000;

  // `finished`: when its end was observed; Time() while it runs.
  void Put(const cluster::Pod& pod, Time finished);
  void Remove(const std::string& uid);
  // Stores or updates an object. Returns false if it is not stored: it requests no GPU, or too many
  // objects are stored already. A running job replaces the stored job that ended first.
  bool Put(const cluster::Job& job);
  bool Put(const cluster::KueueWorkload& workload);
  bool Put(const cluster::KueueQueue& queue);  // without a namespace: a ClusterQueue
  // Removes an object by kind ("Job", "Workload" or "Queue") and name.
  void RemovePart(std::string_view kind, std::string_view ns, std::string_view name);
  // Sets the reason why a stored Job cannot create its pods. Returns false if the Job is not
  // stored.
  bool SetTrouble(std::string_view ns, std::string_view job, std::string_view why);
  bool Knows(std::string_view ns, std::string_view job) const;  // true if the Job is stored
  bool full() const { return parts_.size() >= kMaxParts; }

  // Removes all pods. All remaining jobs and queues count as changed.
  void ClearPods();
  // The records, without time, that have changed since the last call.
  std::vector<JsonObject> TakeChanges();
  // The ids of all jobs or queues. `what`: "job" or "queue".
  JsonArray Ids(std::string_view what) const;

 private:
  using Key = std::pair<std::string, std::string>;  // what, id
  struct Member {
    std::vector<Key> groups;
    std::string state, job, queue;
    Time created{}, started{}, finished{};
    bool gated = false;
  };
  struct Part {
    Key group;
    Time ended{};
    std::string trouble;
    std::variant<JobPart, Admission, QueuePart> content;
  };
  struct Group {
    JsonObject head;
    std::set<std::string> members, parts;  // UIDs of members_, keys of parts_
    std::string reported;                  // the last record of the group; "": none
    bool IsThere() const { return !members.empty() || !parts.empty(); }
  };
  // The merged state of the pods and objects of a job.
  struct Standing;
  Standing StandingOf(const Group& group) const;

  Group& GroupOf(const Key& key, const std::string& ns, const JobName& name);
  bool PutPart(const std::string& part_key, const std::string& ns, const JobName& name, Part part);
  bool MakeRoom();
  void ForgetPart(const std::string& part_key);
  JsonObject JobRecord(const Group& group) const;
  JsonObject QueueRecord(const Group& group) const;

  std::map<std::string, Member> members_;  // by UID
  std::map<std::string, Part> parts_;
  std::set<std::pair<Time, std::string>> ended_;  // keys of parts_ by end time
  std::map<Key, Group> groups_;
  std::set<Key> changed_;
};

}  // namespace nos::controllers
