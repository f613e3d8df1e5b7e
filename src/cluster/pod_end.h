// Whether the containers of a pod have ended, by its object.
#pragma once

#include "cluster/objects.h"

namespace nos::cluster {

// True if the kubelet has reported the end. The pod garbage collector also writes phase Failed,
// without asking the kubelet, before it deletes pods of lost nodes (kubernetes 1.34.2,
// pkg/controller/podgc/gc_controller.go, markFailedAndDeletePod).
inline bool HasEnded(const Pod& pod) {
  if (!pod.Finished()) return false;
  const Condition* disruption = pod.FindCondition("DisruptionTarget");
  return disruption == nullptr || disruption->status != "True" ||
         disruption->reason != "DeletionByPodGC";
}

}  // namespace nos::cluster
