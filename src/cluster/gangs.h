// Pods that belong together: gangs (controllers/gangs.h), and pods of one PodGroup.
#pragma once

#include <string>
#include <string_view>

#include "cluster/objects.h"

namespace nos::cluster {

inline constexpr std::string_view kPodGroupLabel = "scheduling.x-k8s.io/pod-group";

// The value of that label; "" without it.
std::string PodGroupOf(const Pod& pod);

// "pod group ml/train", "scheduling group ml/train", "group workers of workload ml/train". Empty:
// the pod belongs to no gang.
std::string GangOf(const Pod& pod);

}  // namespace nos::cluster
