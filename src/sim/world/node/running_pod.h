// A pod as the kubelet of a virtual node runs it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cluster/objects.h"
#include "kubelet/pod_resources.h"
#include "sim/world/node/pod_status.h"

namespace nos::sim {

struct RunningPod {
  enum class Stage { kAdmitted, kRunning, kStopping, kFinished };

  std::shared_ptr<const cluster::Pod> pod;  // null once its object is gone
  Stage stage = Stage::kAdmitted;
  Time admitted{};
  std::vector<kubelet::DeviceAssignment> devices;  // empty once stopped
  std::vector<std::string> ending;                 // init containers; empty once they have ended
  bool prepared = false;                           // its claims, if it has any
  PodStatusInput status;
  std::optional<Time> next;  // end of the stage
  // Time of a refusal for lack of devices although a scheduler had sent the pod.
  std::optional<Time> refused;
  bool write_status = false;
  bool remove_object = false;
};

using RunningPods = std::map<std::string, RunningPod>;  // by uid

}  // namespace nos::sim
