// Which pods are alike, and in which order their priority and their waiting put them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cluster/resources.h"
#include "planning/live_filters.h"
#include "planning/planner.h"
#include "planning/translate.h"

namespace nos::planning {

// Everything that filters read of pods which no live filter concerns (LivePods), but the resources;
// equal text means equal verdicts on every node. Of the others they read more, labels above all.
std::string ConstraintKey(const cluster::Pod& pod);

// How strong a claim waiting gives: 0 until `starvation_after`, then one more for every doubling.
// A pod that waits on is overtaken by fewer and fewer, and there are few different claims.
int Claim(const cluster::Pod& pod, const PlanOptions& options);

struct PodGroup {
  std::string constraints;  // and by which framework
  cluster::ResourceVector requests;
  int32_t priority = 0;
  int claim = 0;
  int level = 0;             // by priority, then claim; 0 first
  std::vector<int> members;  // indices of pods, longest waiting first
};

// The pods that wait for a node, in groups (pods with live filters one by one) sorted by level,
// then by their first pod. `group_of` gets the group of every pod, -1 for those that do not wait.
std::vector<PodGroup> GroupPods(Pods pods, const scheduling::FrameworkChoice& frameworks,
                                const LivePods& live, const PlanOptions& options,
                                std::vector<int>& group_of);

}  // namespace nos::planning
