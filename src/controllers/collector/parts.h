// Contributions of Jobs and of Kueue's Workloads and queues to job and queue records. Only the
// fields of the records are kept.
//
// Pure functions.
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

// The owner above a pod's controller or above a Job, from labels. Sources: labels of KubeRay
// (ray.io/originated-from-crd and -cr-name), JobSet (jobset.sigs.k8s.io/jobset-name),
// LeaderWorkerSet (leaderworkerset.sigs.k8s.io/name).
std::optional<JobName> JobAbove(const cluster::StringMap& labels);
// The Kueue LocalQueue of an object (label kueue.x-k8s.io/queue-name); "": none.
std::string_view QueueOf(const cluster::StringMap& labels);

// From one Job, or the sum of several Jobs that belong to one job.
struct JobPart {
  int64_t wanted = 0;       // pods that must succeed
  int64_t parallelism = 0;  // pods that may exist at once
  int64_t active = 0, succeeded = 0, failed = 0;
  bool suspended = false;
  bool broke = false;                     // it has failed
  Time created{}, started{}, finished{};  // `finished`: Time() while it runs
  std::string queue, why;  // `why`: reason for the failure, or why it cannot create its pods
  std::map<std::string, double> requests;  // GPUs and slices of all its parallel pods
};

// State of a Kueue Workload.
struct Admission {
  std::string state;  // "pending", "reserved", "admitted", "evicted", "finished"
  std::string queue, cluster_queue, reason, message;
  Time created{}, at{};  // `at`: when the state began
  std::map<std::string, double> requests;
};

struct QueuePart {
  std::string cluster_queue;  // for a LocalQueue
  int64_t pending = 0, reserving = 0, admitted = 0;
  bool active = true;
  std::string why;  // reason if not active
};

JobPart PartOf(const cluster::Job& job);
Admission PartOf(const cluster::KueueWorkload& workload);
QueuePart PartOf(const cluster::KueueQueue& queue);

// The job that the Workload belongs to. No value: none, or a group of pods without a job.
std::optional<JobName> JobOf(const cluster::KueueWorkload& workload);
// Adds `part` to `sum`: several objects belong to one job.
void Add(const JobPart& part, JobPart& sum);

// Adds the fields of a job or queue record.
void AddFields(const JobPart& part, JsonObject& record);
void AddFields(const Admission& admission, JsonObject& record);
void AddFields(const QueuePart& queue, JsonObject& record);

}  // namespace nos::controllers
