// Which pods are alike, and in which order their priority and their waiting put them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cluster/resources.h"
#include "planning/translation/live_filters.h"
#include "planning/planner.h"
#include "planning/translation/translate.h"

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
  int gang = -1;             // of PodGroups::gangs
  bool extra = false;        // beyond what the gang lacks
  bool live = false;         // live filters concern it, or its gang minds it: a pod by itself
};

struct PodGroups {
  std::vector<PodGroup> all;         // sorted by level, then by their first pod
  std::vector<int> group_of;         // by pod; -1: it does not wait, or its gang is hopeless
  std::vector<const Gang*> gangs;    // that lack some and have as many; the most urgent first
  std::vector<const Gang*> gang_of;  // by pod; null: none
};

// Whether none of it can be placed, whatever room there is.
bool IsHopeless(const Gang& gang);

// The pods that wait for a node, in groups (live ones one by one). Where the pods of a
// gang are all alike, those beyond what it lacks are a group of their own; else all count as
// needed.
PodGroups GroupPods(Pods pods, const scheduling::FrameworkChoice& frameworks, const LivePods& live,
                    const PlanOptions& options);

}  // namespace nos::planning
