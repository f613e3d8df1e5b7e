// Compares decisions of kube-scheduler and nos.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "scheduler_differential/decider.h"
#include "scheduler_differential/kube_log.h"

namespace nos::differential {

// kube-scheduler's decision on a pod.
struct Outcome {
  std::string node;             // node of the binding
  std::string reason, message;  // of its condition PodScheduled=False, before binding
  bool held = false;            // it is not queued, because a claim of it does not exist
  std::string nominated;        // the node nominated by preemption
  bool late = false;            // some pods had left that node when `message` was read
  std::vector<std::shared_ptr<const cluster::Pod>> victims;  // pods evicted meanwhile
  KubeScores log;
};

// The points of disagreement; empty: none.
std::string Disagreement(const Outcome& kube, const Opinion& nos);

// Differences in feasible nodes and in scores of plugins, except these; empty: none.
std::string ScoreDisagreement(const KubeScores& kube, const Opinion& nos,
                              const std::set<std::string>& left_out = {});

// "0/5 nodes are available" and the reasons, sorted, because the two schedulers sort them
// differently.
std::vector<std::string> ReasonsOf(std::string_view message);

// For log output.
std::string Describe(const Outcome& outcome);

}  // namespace nos::differential
