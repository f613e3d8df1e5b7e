// Finds pods to evict for the pending pod, and pods that are already terminating for it. Internal
// to explanations.
//
// Pure functions.
#pragma once

#include <optional>

#include "scheduling/explain.h"

namespace nos::scheduling {

Explanation::Victims VictimsOf(const Preemption& preemption);
// True if a quota decides which pods `pod` may evict and which may evict it.
bool IsCovered(const ExplainInput& input, const cluster::Pod& pod);
// True if the pod may preempt by priority.
bool MayPreempt(const ExplainInput& input);
// True if `other` may be evicted for the priority of `pod`, a variant of the input's pod.
bool MayGoFor(const ExplainInput& input, const cluster::Pod& pod, const cluster::Pod& other);
// Removes all such pods from the node. False: there are none.
bool VacateLesser(const ExplainInput& input, const cluster::Pod& pod, const std::string& node,
                  cluster::ClusterSnapshot& snapshot);
// The fewest pods in the way, regardless of their priority. Not counted are pods that the pod would
// preempt once these are gone.
std::optional<Explanation::Victims> InTheWay(const ExplainInput& input);
// Terminating pods on the nominated node, if the pod fits there without them.
std::optional<Explanation::Victims> AwaitedBy(const ExplainInput& input);
// True if the pod would preempt them with a priority above theirs.
bool WouldPreempt(const ExplainInput& input, const Explanation::Victims& victims);

}  // namespace nos::scheduling
