// Writing one condition of an object's status without touching the others.
#pragma once

#include <string>

#include "base/clock.h"
#include "cluster/objects.h"
#include "kube/client.h"

namespace nos::reconcile {

struct WantedCondition {
  std::string type, status, reason, message;
};

// Whether the object, as we know it, has exactly this condition already.
bool HasCondition(const cluster::Pod& pod, const WantedCondition& wanted);
bool HasCondition(const cluster::Node& node, const WantedCondition& wanted);

// A strategic merge patch on the status, where conditions merge by type; refused (kConflict or
// kNotFound) when the object has been replaced by another of the same name.
Status WriteCondition(kube::Client& client, const cluster::Pod& pod, const WantedCondition& wanted,
                      Time now);
Status WriteCondition(kube::Client& client, const cluster::Node& node,
                      const WantedCondition& wanted, Time now);
// That patch, for whoever has several to send.
kube::NamedPatch ConditionPatch(const cluster::Pod& pod, const WantedCondition& wanted, Time now);

// Why a scheduler had the pod go for the sake of an elastic quota; null: it did not.
const std::string* WhyReclaimed(const cluster::Pod& pod);

// The scheduler that evicted the pod, by its profile's name; empty: none, or it does not say.
// Source: kube-scheduler's message, "NAME: preempting to accommodate a higher priority pod".
std::string EvictedBy(const cluster::Pod& pod);

}  // namespace nos::reconcile
