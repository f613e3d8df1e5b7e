// Groups equal pods, and orders the groups by priority and waiting time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cluster/resources.h"
#include "planning/plan.h"
#include "planning/translation/live_filters.h"
#include "planning/translation/translate.h"
#include "scheduling/framework_choice.h"

namespace nos::planning {

// All properties of a pod that filters read, except resources, for pods without live filters
// (LivePods). Equal keys have equal verdicts on every node. For other pods filters read more, above
// all labels.
std::string ConstraintKey(const cluster::Pod& pod);

// The wait rank of a pod: 0 until `hold_after`, then plus one for every doubling. The longer
// a pod waits, the fewer pods can overtake it, and there are few different ranks.
int WaitRank(const cluster::Pod& pod, const PlanOptions& options);

struct PodGroup {
  std::string constraints;  // including the scheduling framework
  cluster::ResourceVector requests;
  int32_t priority = 0;
  int wait_rank = 0;
  int level = 0;  // `first`, then by priority, `chosen`, then wait rank; 0 is served first
  std::vector<int> members;  // indices into `pods`, longest waiting first
  int gang = -1;             // index into PodGroups::gangs
  bool extra = false;        // beyond the pods that the gang lacks
  bool first = false;        // PlanOptions::first; of a gang, if all needed members are
  bool chosen = false;       // a scheduler has nominated a node: it has evicted others for the pod
  bool live = false;  // live filters apply to it, or its gang depends on its node: a single pod
};

struct PodGroups {
  std::vector<PodGroup> all;  // sorted by level, then by first pod
  std::vector<int> group_of;  // by pod; -1: not pending, or its gang is hopeless
  // Gangs that lack pods and have enough pending ones; most urgent first.
  std::vector<const Gang*> gangs;
  std::vector<const Gang*> gang_of;  // by pod; null: no gang
};

// True if no pod of the gang can be placed, whatever the capacity.
bool IsHopeless(const Gang& gang);

// Groups the pods that wait for a node; each pod with live filters is a group of its own. If all
// pods of a gang are equal, those beyond the lacking number form a separate group; otherwise all
// count as lacking.
PodGroups GroupPods(Pods pods, const scheduling::FrameworkChoice& frameworks, const LivePods& live,
                    const PlanOptions& options);

}  // namespace nos::planning
