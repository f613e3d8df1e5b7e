// Jobs and queues: who made the pods and how far they are, as pods show it for every kind of job,
// and what objects tell beside (collector_parts.h), so that jobs without pods are known, too. One
// row a job, whoever tells of it.
//
//   JobTally jobs;
//   jobs.Put(pod, finished);
//   jobs.Put(job);
//   for (JsonObject& record : jobs.TakeChanges()) ...   // "job", "queue", "removed"
//
// Pure. Cost of a change follows the pods of its job.
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

// Who made the pod in the end: what its labels say of what stands above its owner (JobAbove, and
// the Deployment of a ReplicaSet, whose name ends in the label pod-template-hash), else its owner.
// Nothing: nobody, or a node or a DaemonSet, which make pods that are no work.
std::optional<JobName> JobOf(const cluster::Pod& pod);

class JobTally {
 public:
  // Objects beside pods that are remembered, at most.
  static constexpr size_t kMostParts = 20'000;

  // `finished`: when it was seen to have ended; Time() if it has not.
  void Put(const cluster::Pod& pod, Time finished);
  void Remove(const std::string& uid);
  // What these tell, from now on. False: they are not remembered, for they ask for no GPU, or there
  // are too many already: the one that ended first goes then for one that has not ended.
  bool Put(const cluster::Job& job);
  bool Put(const cluster::KueueWorkload& workload);
  bool Put(const cluster::KueueQueue& queue);  // without a namespace: a ClusterQueue
  // Of one of these: "Job", "Workload" or "Queue", and its name.
  void RemovePart(std::string_view kind, std::string_view ns, std::string_view name);
  // Of a Job that is remembered: why it cannot make its pods. Whether it is.
  bool SetTrouble(std::string_view ns, std::string_view job, std::string_view why);
  bool Knows(std::string_view ns, std::string_view job) const;  // such a Job
  bool full() const { return parts_.size() >= kMostParts; }

  // No pods; all that is left counts as changed.
  void ClearPods();
  // What has changed since the last time, as records without their time.
  std::vector<JsonObject> TakeChanges();
  // Of all that there are. `what`: "job" or "queue".
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
    std::variant<JobPart, Admission, QueuePart> tells;
  };
  struct Group {
    JsonObject head;
    std::set<std::string> members, parts;  // uids, keys of parts_
    std::string told;
    bool IsThere() const { return !members.empty() || !parts.empty(); }
  };
  // What pods and parts of a job say together.
  struct Standing;
  Standing StandingOf(const Group& group) const;

  Group& GroupOf(const Key& key, const std::string& ns, const JobName& name);
  bool PutPart(const std::string& part_key, const std::string& ns, const JobName& name, Part part);
  bool MakeRoom();
  void ForgetPart(const std::string& part_key);
  JsonObject JobRecord(const Group& group) const;
  JsonObject QueueRecord(const Group& group) const;

  std::map<std::string, Member> members_;  // by uid
  std::map<std::string, Part> parts_;
  std::set<std::pair<Time, std::string>> ended_;  // of parts_
  std::map<Key, Group> groups_;
  std::set<Key> changed_;
};

}  // namespace nos::controllers
