// Writes the condition kScalingCondition of pending pods.
//
//   PodConditions conditions(events);
//   conditions.Set(pod, "True", kNodesComing, "Waiting for a new Node of NodePool a100", now);
//   conditions.Forget(view);
//   conditions.Write(cycle);
//
// A new reason is written at once, a new message of the same reason at most every 30 seconds, and a
// failed write again after a back-off. Each call writes a limited number, so that many pods do not
// delay the next decision. Owned by one thread.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "controllers/autoscaler/cycle.h"
#include "controllers/autoscaler/scaling_events.h"
#include "kube/work_queue.h"
#include "reconcile/condition.h"
#include "reconcile/pace.h"

namespace nos::controllers {

// Messages for kRelocatingPods and planning::kCapacityAvailable.
inline constexpr const char* kRelocatingText = "Moving other Pods to make room for this Pod";
inline constexpr const char* kCapacityText =
    "Waiting for the scheduler: this Pod fits on existing Nodes";

class PodConditions {
 public:
  // `events` must outlive this.
  explicit PodConditions(ScalingEvents& events);

  // Queues the pod's condition. The first NodesComing of a pod is also published as an Event. Names
  // of pods in other namespaces are left out of the message.
  void Set(const cluster::Pod& pod, const char* status, std::string reason, std::string message,
           Time now);
  // Drops the conditions of pods that are deleted or have a node.
  void Forget(const reconcile::Listers& view);
  // Writes the conditions that are due.
  void Write(const ScalingCycle& cycle);
  // The time of the next write. Absent: none is queued.
  std::optional<Time> NextDue() const;

 private:
  struct Wanted {
    reconcile::WantedCondition condition;
    Time written{};
  };
  ScalingEvents& events_;
  std::map<std::string, Wanted> wanted_;  // by pod key
  kube::WorkQueue queue_;                 // keys of pods whose condition is still to be written
  reconcile::Pace pace_;
};

}  // namespace nos::controllers
