// Jobs and queues as they show in pods: who made them, how far they are. No object of a job is
// read, so that every kind of job counts, and nothing more has to be allowed.
//
//   JobTally jobs;
//   jobs.Put(pod, finished);
//   for (JsonObject& record : jobs.TakeChanges()) ...   // "job", "queue", "removed"
//
// Pure. Cost of a change follows the pods of its job.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/objects.h"
#include "codec/json.h"

namespace nos::controllers {

struct JobName {
  std::string kind, name;  // "Job", "Deployment", "RayJob", ...
  friend bool operator==(const JobName&, const JobName&) = default;
};

// Who made the pod in the end: what its labels say of what stands above its owner, else its owner.
// Nothing: nobody, or a node or a DaemonSet, which make pods that are no work.
// Sources: labels of KubeRay (ray.io/originated-from-crd and -cr-name), JobSet
// (jobset.sigs.k8s.io/jobset-name), LeaderWorkerSet (leaderworkerset.sigs.k8s.io/name) and the
// Deployment controller (pod-template-hash, which ends the name of its ReplicaSet).
std::optional<JobName> JobOf(const cluster::Pod& pod);

// The Kueue LocalQueue that a pod has been put into (label kueue.x-k8s.io/queue-name); "": none.
std::string_view QueueOf(const cluster::Pod& pod);

class JobTally {
 public:
  // `finished`: when it was seen to have ended; Time() if it has not.
  void Put(const cluster::Pod& pod, Time finished);
  void Remove(const std::string& uid);
  void Clear();
  // What has changed since the last time, as records without their time.
  std::vector<JsonObject> TakeChanges();
  // Of all that there are. `what`: "job" or "queue".
  JsonArray Ids(std::string_view what) const;

 private:
  struct Member {
    std::vector<std::pair<std::string, std::string>> groups;  // what, id
    std::string state, job;
    Time created{}, started{}, finished{};
    bool gated = false;
  };
  struct Group {
    JsonObject head;
    std::set<std::string> members;  // uids
    std::string told;
  };
  using Key = std::pair<std::string, std::string>;  // what, id

  void Join(const Key& key, JsonObject head, const std::string& uid, Member& member);
  JsonObject JobRecord(const Group& group) const;
  JsonObject QueueRecord(const Group& group) const;

  std::map<std::string, Member> members_;  // by uid
  std::map<Key, Group> groups_;
  std::set<Key> changed_;
};

}  // namespace nos::controllers
