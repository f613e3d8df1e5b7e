// Objects that tell of work beyond its pods: Jobs, what Kueue says of jobs and of its queues, and
// Events. Field names and meanings are those of k8s.io/api and of kueue.x-k8s.io, whose versions
// (v1beta1, v1beta2, v1) agree in all that is read here. Plain data, no more of an object than
// that.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cluster/objects.h"

namespace nos::cluster {

// Pods that are made alike: of `pod`, labels, annotations and spec count.
struct PodTemplate {
  Pod pod;
  int32_t count = 1;
};

// batch/v1 Job
struct Job {
  ObjectMeta meta;
  bool suspended = false;
  std::optional<int32_t> parallelism, completions;
  PodTemplate pods;  // `count`: the parallelism
  int32_t active = 0, succeeded = 0, failed = 0;
  std::optional<Time> started, completed;  // startTime, completionTime
  std::vector<Condition> conditions;
};

// kueue.x-k8s.io Workload: a job as Kueue sees it, whatever its kind.
struct KueueWorkload {
  ObjectMeta meta;                   // the job is the controller among its owners
  std::string queue, cluster_queue;  // spec.queueName, status.admission.clusterQueue
  std::vector<PodTemplate> pods;     // spec.podSets
  std::vector<Condition> conditions;
};

// kueue.x-k8s.io LocalQueue and ClusterQueue
struct KueueQueue {
  ObjectMeta meta;
  std::string cluster_queue;                         // spec.clusterQueue of a LocalQueue
  int32_t pending = 0, reserving = 0, admitted = 0;  // Workloads
  std::vector<Condition> conditions;
};

// core/v1 Event; those of events.k8s.io are the same objects.
struct KubernetesEvent {
  ObjectMeta meta;
  std::string kind, ns, name;  // involvedObject
  std::string type, reason, message, source;
  int32_t count = 1;
  Time last{};  // when it happened last
};

// As ReadPod: what is not known is ignored, a known field of the wrong type is an error with its
// path.
Status ReadJob(JsonSource json, Job& to);
Status ReadKueueWorkload(JsonSource json, KueueWorkload& to);
Status ReadKueueQueue(JsonSource json, KueueQueue& to);
Status ReadEvent(JsonSource json, KubernetesEvent& to);

}  // namespace nos::cluster
