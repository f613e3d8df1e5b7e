// The status a kubelet writes for a pod, so that `kubectl get` and `kubectl wait` see what they
// expect. Field names: k8s.io/api core/v1 PodStatus.
#pragma once

#include <string>
#include <string_view>

#include "cluster/objects.h"
#include "codec/json.h"

namespace nos::sim {

enum class PodStage { kStarting, kRunning, kSucceeded, kFailed };

struct PodStatusInput {
  PodStage stage = PodStage::kStarting;
  bool initialized = true;  // its init containers have ended
  Time now{}, started{}, finished{};
  std::string reason, message;  // of a failure
  std::string node_ip, pod_ip;
};

// A strategic merge patch for pods/<name>/status: conditions of others' types stay. Refused when
// the name belongs to another pod by now.
Json PodStatusPatch(const cluster::Pod& pod, const PodStatusInput& input);

}  // namespace nos::sim
