#include "cluster/gangs.h"

#include <fmt/core.h>

namespace nos::cluster {

std::string PodGroupOf(const Pod& pod) {
  const auto label = pod.meta.labels.find(kPodGroupLabel);
  return label == pod.meta.labels.end() ? "" : label->second;
}

std::string GangOf(const Pod& pod) {
  if (!pod.scheduling_group.empty()) {
    return fmt::format("scheduling group {}/{}", pod.meta.ns, pod.scheduling_group);
  }
  if (pod.workload) {
    const WorkloadRef& ref = *pod.workload;
    return fmt::format("group {}{}{} of workload {}/{}", ref.pod_group,
                       ref.replica_key.empty() ? "" : "/", ref.replica_key, pod.meta.ns, ref.name);
  }
  const std::string group = PodGroupOf(pod);
  return group.empty() ? "" : fmt::format("pod group {}/{}", pod.meta.ns, group);
}

}  // namespace nos::cluster
