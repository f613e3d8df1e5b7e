// The end of a pod's containers, by its object.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

#include "base/clock.h"
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

// terminationGracePeriodSeconds; larger values are clamped.
inline Duration GracePeriodOf(const Pod& pod) {
  constexpr int64_t kMaxSeconds = int64_t{24} * 3600;
  return std::chrono::seconds(std::clamp<int64_t>(pod.grace_seconds, 0, kMaxSeconds));
}

// The grace period that a controller asks for when it evicts the pod, in seconds. Absent: the pod's
// own. An object with a grace period of 0 vanishes at once, before the kubelet has stopped the
// containers, and a pod that starts a moment later would take their GPUs for free
// (kubernetes 1.34.2, pkg/registry/core/pod/strategy.go, CheckGracefulDelete).
inline std::optional<int64_t> GraceOfEviction(const Pod& pod) {
  return pod.grace_seconds < 1 ? std::optional<int64_t>(1) : std::nullopt;
}

// Time after the grace period in which the kubelet hears of a deletion, kills and cleans up.
inline constexpr Duration kKillTime = std::chrono::seconds(10);

}  // namespace nos::cluster
