// Compares decisions of kube-scheduler and nos.
#pragma once

#include <string>
#include <vector>

#include "scheduler_differential/judge.h"
#include "scheduler_differential/kube_log.h"

namespace nos::differential {

// kube-scheduler's decision on a pod.
struct Outcome {
  std::string node;             // node of the binding
  std::string reason, message;  // of its condition PodScheduled=False, before binding
  std::string nominated;        // the node nominated by preemption
  bool late = false;            // some pods had left that node when `message` was read
  std::vector<std::shared_ptr<const cluster::Pod>> victims;  // pods evicted meanwhile
  KubeScores log;
};

// The points of disagreement; empty: none.
std::string Disagreement(const Outcome& kube, const Opinion& nos);

// For log output.
std::string Describe(const Outcome& outcome);

}  // namespace nos::differential
