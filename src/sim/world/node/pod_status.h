// The pod status that a kubelet writes, complete enough for `kubectl get` and `kubectl wait`. Field
// names: k8s.io/api core/v1 PodStatus.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cluster/objects.h"
#include "codec/json.h"
#include "kubelet/pod_resources.h"

namespace nos::sim {

enum class PodStage { kStarting, kRunning, kSucceeded, kFailed };

struct PodStatusInput {
  PodStage stage = PodStage::kStarting;
  bool initialized = true;  // its init containers have ended
  Time now{}, started{}, finished{};
  std::string reason, message;  // reason and message of a failure
  std::string node_ip, pod_ip;
  std::vector<kubelet::DeviceAssignment> devices;  // devices that its containers have or had
};

// A strategic merge patch for pods/<name>/status; conditions of other types stay. The API server
// refuses it if the name belongs to another pod by now.
Json PodStatusPatch(const cluster::Pod& pod, const PodStatusInput& input);

}  // namespace nos::sim
