// Whether kube-scheduler and nos decide alike.
#pragma once

#include <string>
#include <vector>

#include "scheduler_differential/judge.h"
#include "scheduler_differential/kube_log.h"

namespace nos::differential {

// What became of a pod that kube-scheduler has decided on.
struct Outcome {
  std::string node;             // bound there
  std::string reason, message;  // of its condition PodScheduled=False, before it was bound
  std::string nominated;        // the node that was to be made free for it
  bool late = false;            // some had gone from there already when `message` was read
  std::vector<std::shared_ptr<const cluster::Pod>> victims;  // that went meanwhile
  KubeScores log;
};

// What they disagree on; empty: nothing.
std::string Disagreement(const Outcome& kube, const Opinion& nos);

// For people.
std::string Describe(const Outcome& outcome);

}  // namespace nos::differential
