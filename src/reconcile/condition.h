// Writes one condition of an object's status without touching the others.
#pragma once

#include <string>

#include "base/clock.h"
#include "cluster/objects.h"
#include "kube/client.h"

namespace nos::reconcile {

struct WantedCondition {
  std::string type, status, reason, message;
};

// True if the object, as the caller knows it, already has exactly this condition.
bool HasCondition(const cluster::Pod& pod, const WantedCondition& wanted);
bool HasCondition(const cluster::Node& node, const WantedCondition& wanted);

// Sends a strategic merge patch on the status, in which conditions merge by type. Error: kConflict
// or kNotFound if the object has been replaced by another one of the same name.
Status WriteCondition(kube::Client& client, const cluster::Pod& pod, const WantedCondition& wanted,
                      Time now);
Status WriteCondition(kube::Client& client, const cluster::Node& node,
                      const WantedCondition& wanted, Time now);
// The patch itself, for callers that send several at once.
kube::NamedPatch ConditionPatch(const cluster::Pod& pod, const WantedCondition& wanted, Time now);

// The message of the condition DisruptionTarget of a pod that `scheduler` evicts because an elastic
// quota guarantees its resources to another pod.
std::string ReclaimMessage(std::string_view scheduler);
// The message of such an eviction, also by an earlier version; null if the pod was not evicted for
// that reason.
const std::string* WhyReclaimed(const cluster::Pod& pod);

// Adds the UID of the pod for which the eviction is, as kube-scheduler's Event "Preempted" has it:
// names of other tenants are for the cluster's operators only.
std::string WithPreemptor(std::string message, std::string_view uid);
// That UID; empty if the pod was not evicted for another one, or by another scheduler.
std::string PreemptorOf(const cluster::Pod& pod);

// The name of the scheduler profile that evicted the pod; empty if unknown. Source:
// kube-scheduler's message, "NAME: preempting to accommodate a higher priority pod".
std::string EvictedBy(const cluster::Pod& pod);

}  // namespace nos::reconcile
