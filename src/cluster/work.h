// Objects that describe work beyond its pods: Jobs, Kueue's Workloads and queues, and Events. Field
// names and meanings follow k8s.io/api and kueue.x-k8s.io, whose versions (v1beta1, v1beta2, v1)
// agree in all fields that are read here. Plain data with only the fields that nos reads.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cluster/objects.h"

namespace nos::cluster {

// Pods that are created alike. `pod` has labels, annotations and spec.
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

// kueue.x-k8s.io Workload: Kueue's view of a job of any kind.
struct KueueWorkload {
  ObjectMeta meta;                   // the job is its controller owner
  std::string queue, cluster_queue;  // spec.queueName, status.admission.clusterQueue
  std::vector<PodTemplate> pods;     // spec.podSets
  std::vector<Condition> conditions;
};

// kueue.x-k8s.io LocalQueue and ClusterQueue
struct KueueQueue {
  ObjectMeta meta;
  std::string cluster_queue;                         // spec.clusterQueue of a LocalQueue
  int32_t pending = 0, reserving = 0, admitted = 0;  // numbers of Workloads
  std::vector<Condition> conditions;
};

// core/v1 Event; those of events.k8s.io are the same objects.
struct KubernetesEvent {
  ObjectMeta meta;
  std::string kind, ns, name;  // involvedObject
  std::string type, reason, message, source;
  int32_t count = 1;
  Time last{};  // time of the last occurrence
};

// Like ReadPod: unknown fields are ignored, a known field of the wrong type is an error with its
// path.
Status ReadJob(JsonSource json, Job& to);
Status ReadKueueWorkload(JsonSource json, KueueWorkload& to);
Status ReadKueueQueue(JsonSource json, KueueQueue& to);
Status ReadEvent(JsonSource json, KubernetesEvent& to);

}  // namespace nos::cluster
