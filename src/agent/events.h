// The Events of this library, a function for each with its type, reason and message. The Event of a
// condition has the condition's reason, and the one on a pod that of the violated requirement.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "kube/event_recorder.h"

namespace nos::agent::events {

using Note = kube::EventNote;

inline constexpr kube::EventType kNormal = kube::EventType::kNormal,
                                 kWarning = kube::EventType::kWarning;

// Events of a node carry its name as UID, as the kubelet's do, so that kubectl finds them.
inline Note OnNode(const std::string& node, kube::EventType type, std::string reason,
                   std::string message) {
  return {{"Node", "", node, node}, type, std::move(reason), std::move(message)};
}

// Plans.
inline Note Partitioned(const std::string& node, std::string_view plan) {
  return OnNode(node, kNormal, "Partitioned", fmt::format("Partitioned Node by plan {}", plan));
}
inline Note PartitioningIncomplete(const std::string& node, std::string_view plan,
                                   std::string_view obstacles) {
  return OnNode(node, kWarning, "PartitioningIncomplete",
                fmt::format("Failed to apply all of plan {}: {}", plan, obstacles));
}
inline Note DeviceOperationFailed(const std::string& node, std::string_view operation,
                                  std::string_view error) {
  return OnNode(node, kWarning, "DeviceOperationFailed",
                fmt::format("Failed to {}: {}", operation, error));
}
inline Note RebootAwaited(const std::string& node, std::string reason, std::string_view message) {
  return OnNode(node, kNormal, std::move(reason),
                fmt::format("Waiting for a reboot of Node: {}", message));
}

// GPUs.
inline Note GpusUnhealthy(const std::string& node, std::string reason, std::string_view message) {
  return OnNode(node, kWarning, std::move(reason),
                fmt::format("Detected unhealthy GPUs on Node: {}", message));
}
inline Note GpuNotUsable(const std::string& node, std::string problem) {
  return OnNode(node, kWarning, "GpuNotUsable", std::move(problem));
}
inline Note GeometryIgnored(const std::string& node, std::string_view geometry) {
  return OnNode(
      node, kWarning, "GeometryIgnored",
      fmt::format("Ignoring geometry of the catalogue that no GPU can have: {}", geometry));
}

// Devices for the kubelet.
inline Note DevicesNotOffered(const std::string& node, std::string_view error) {
  return OnNode(node, kWarning, "DevicesNotOffered",
                fmt::format("Failed to offer devices of Node: {}", error));
}
inline Note DevicesNotPrepared(const std::string& node, std::string reason,
                               std::string_view message) {
  return OnNode(node, kWarning, std::move(reason),
                fmt::format("Failed to prepare devices for containers: {}", message));
}

// Pods and claims.
inline Note RequirementViolated(const std::string& ns, const std::string& pod,
                                const std::string& uid, std::string reason, std::string message) {
  return {{"Pod", ns, pod, uid}, kWarning, std::move(reason), std::move(message)};
}
inline Note DeviceNotCreated(const std::string& ns, const std::string& claim,
                             const std::string& uid, std::string_view devices,
                             std::string_view node, std::string_view error) {
  return {{"ResourceClaim", ns, claim, uid, "resource.k8s.io/v1"},
          kWarning,
          "DeviceNotCreated",
          fmt::format("Failed to create {} on Node {}: {}", devices, node, error)};
}

}  // namespace nos::agent::events
