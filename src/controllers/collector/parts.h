// What objects tell of jobs and queues beside the pods: Jobs, and Workloads and queues of Kueue. Of
// each no more is kept than a record shows.
//
// Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/objects.h"
#include "cluster/work.h"
#include "codec/json.h"

namespace nos::controllers {

struct JobName {
  std::string kind, name;  // "Job", "Deployment", "RayJob", ...
  friend bool operator==(const JobName&, const JobName&) = default;
};

// What labels say of what stands above whatever has made a pod, or above a Job.
// Sources: labels of KubeRay (ray.io/originated-from-crd and -cr-name), JobSet
// (jobset.sigs.k8s.io/jobset-name), LeaderWorkerSet (leaderworkerset.sigs.k8s.io/name).
std::optional<JobName> JobAbove(const cluster::StringMap& labels);
// The Kueue LocalQueue that something has been put into (label kueue.x-k8s.io/queue-name); "":
// none.
std::string_view QueueOf(const cluster::StringMap& labels);

// Of one object, or of all that tell of one job.
struct JobPart {
  int64_t wanted = 0;       // pods that have to succeed
  int64_t parallelism = 0;  // that may be there at once
  int64_t active = 0, succeeded = 0, failed = 0;
  bool suspended = false;
  bool broke = false;                      // it has ended, and not as it should
  Time created{}, started{}, finished{};   // `finished`: Time() while it goes on
  std::string queue, why;                  // why it broke, or cannot make its pods
  std::map<std::string, double> requests;  // GPUs and slices of all its pods at once
};

// How far a Workload of Kueue is.
struct Admission {
  std::string state;  // "pending", "reserved", "admitted", "evicted", "finished"
  std::string queue, cluster_queue, reason, message;
  Time created{}, at{};  // `at`: since when it is so
  std::map<std::string, double> requests;
};

struct QueuePart {
  std::string cluster_queue;  // of a LocalQueue
  int64_t pending = 0, reserving = 0, admitted = 0;
  bool active = true;
  std::string why;  // it is not active
};

JobPart PartOf(const cluster::Job& job);
Admission PartOf(const cluster::KueueWorkload& workload);
QueuePart PartOf(const cluster::KueueQueue& queue);

// Whose Workload it is. Nothing: of nobody, or of pods that have no job.
std::optional<JobName> JobOf(const cluster::KueueWorkload& workload);
// `sum` and the other one: a job that several objects tell of.
void Add(const JobPart& part, JobPart& sum);

// Fields of a record of a job or a queue.
void AddFields(const JobPart& part, JsonObject& record);
void AddFields(const Admission& admission, JsonObject& record);
void AddFields(const QueuePart& queue, JsonObject& record);

}  // namespace nos::controllers
