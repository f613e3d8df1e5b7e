// The Events of this library, a function for each with its type, reason and message.
// Callers remove from messages about pods the names that their readers may not see
// (scheduling/pod_names.h).
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/status.h"
#include "base/text.h"
#include "cluster/elastic_quota.h"
#include "cluster/node_pool.h"
#include "cluster/objects.h"
#include "kube/event_recorder.h"

namespace nos::controllers::events {

using Note = kube::EventNote;

inline constexpr kube::EventType kNormal = kube::EventType::kNormal,
                                 kWarning = kube::EventType::kWarning;
inline constexpr size_t kMaxError = 500;  // bytes of an error of another system

// Reasons of the autoscaler's Events. The collector makes decisions of them.
inline constexpr const char* kReasonScaledUp = "ScaledUp";
inline constexpr const char* kReasonScaledDown = "ScaledDown";
inline constexpr const char* kReasonNotDelivered = "NotDelivered";
inline constexpr const char* kReasonScaleFailed = "ScaleFailed";
inline constexpr const char* kReasonNodeEmptying = "NodeEmptying";
inline constexpr const char* kReasonNodeKept = "NodeKept";
inline constexpr const char* kReasonNodeRemoved = "NodeRemoved";
inline constexpr const char* kReasonNodeNotRemoved = "NodeNotRemoved";
inline constexpr const char* kReasonMovedAway = "MovedAway";
inline constexpr const char* kReasonMadeRoom = "MadeRoom";

// Events of a node carry its name as UID, as the kubelet's do, so that kubectl finds them.
inline Note OnNode(const std::string& node, kube::EventType type, const char* reason,
                   std::string message) {
  return {{"Node", "", node, node}, type, reason, std::move(message)};
}

inline Note OnPod(const cluster::Pod& pod, kube::EventType type, const char* reason,
                  std::string message) {
  return {{"Pod", pod.meta.ns, pod.meta.name, pod.meta.uid}, type, reason, std::move(message)};
}

inline Note OnPool(const cluster::NodePool& pool, kube::EventType type, const char* reason,
                   std::string message) {
  return {{std::string(cluster::kNodePool), "", pool.meta.name, pool.meta.uid,
           fmt::format("{}/{}", cluster::kPoolGroup, cluster::kPoolVersion)},
          type,
          reason,
          std::move(message)};
}

inline Note OnQuota(const cluster::ElasticQuota& quota, kube::EventType type, const char* reason,
                    std::string message) {
  return {{std::string(quota.composite ? cluster::kCompositeQuota : cluster::kElasticQuota),
           quota.meta.ns, quota.meta.name, quota.meta.uid, "nos.nebuly.com/v1alpha1"},
          type,
          reason,
          std::move(message)};
}

// Partitioner, on nodes.
inline Note Repartitioning(const std::string& node, std::string_view plan,
                           std::string_view changes) {
  return OnNode(node, kNormal, "Repartitioning",
                fmt::format("Repartitioning Node by plan {}: {}", plan, changes));
}
inline Note PlanNotAcknowledged(const std::string& node, std::string_view plan, Duration waited) {
  return OnNode(
      node, kWarning, "PlanNotAcknowledged",
      fmt::format("Planning without this Node: its agent has not acknowledged plan {} for "
                  "{}. Check the agent Pod on it",
                  plan, FormatAge(waited)));
}
inline Note PlanRefused(const std::string& node, const Status& why) {
  return OnNode(node, kWarning, "PlanRefused",
                fmt::format("Failed to patch plan onto Node: {}; planning continues without this "
                            "Node and retries periodically",
                            Shortened(why.ToString(), kMaxError)));
}
inline Note SpecRepaired(const std::string& node, std::string_view problem) {
  return OnNode(node, kWarning, "SpecRepaired",
                fmt::format("Repairing spec annotations of Node: {}", problem));
}

// Partitioner, on pods. The texts are those of the condition kPartitionedCondition.
inline Note SlicePlanned(const cluster::Pod& pod, std::string slices) {
  return OnPod(pod, kNormal, "SlicePlanned", std::move(slices));
}
inline Note SliceNotPlanned(const cluster::Pod& pod, std::string_view reasons) {
  return OnPod(pod, kWarning, "SliceNotPlanned",
               fmt::format("Failed to plan slices for Pod: {}", reasons));
}
inline Note SliceReservationExpired(const cluster::Pod& pod, std::string_view node,
                                    Duration reserved) {
  return OnPod(pod, kWarning, "SliceReservationExpired",
               fmt::format("Releasing slices on Node {} that were reserved for {}: Pod was not "
                           "bound; another filter keeps it off that Node",
                           node, FormatAge(reserved)));
}

// Scheduler, on pods.
inline Note Scheduled(const cluster::Pod& pod, std::string_view node) {
  return OnPod(pod, kNormal, "Scheduled",
               fmt::format("Successfully assigned {} to {}", pod.Key(), node));
}
inline Note FailedScheduling(const cluster::Pod& pod, std::string reasons) {
  return OnPod(pod, kWarning, "FailedScheduling", std::move(reasons));
}
// `for_quota`: to reclaim what the preemptor's quota guarantees.
inline Note Preempted(const cluster::Pod& victim, const cluster::Pod& preemptor,
                      std::string_view node, bool for_quota) {
  // Only pods of its own namespace may see the preemptor's name.
  const bool related = preemptor.meta.ns == victim.meta.ns;
  return OnPod(
      victim, kNormal, "Preempted",
      fmt::format(
          "Preempted by pod {}{} on node {}{}", preemptor.meta.uid,
          related ? fmt::format(" ({})", preemptor.Key()) : "", node,
          for_quota ? ": an elastic quota guarantees to that Pod what this one borrows" : ""));
}

// Autoscaler, on node pools.
inline Note ScaledUp(const cluster::NodePool& pool, std::string message) {
  return OnPool(pool, kNormal, kReasonScaledUp, std::move(message));
}
inline Note ScaledDown(const cluster::NodePool& pool, int32_t count, int32_t before,
                       std::string_view empty_node) {
  return OnPool(pool, kNormal, kReasonScaledDown,
                fmt::format("Scaling down NodePool {} to {} Nodes from {}: Node {} is empty",
                            pool.meta.name, count, before, empty_node));
}
inline Note NotDelivered(const cluster::NodePool& pool, std::string message) {
  return OnPool(pool, kWarning, kReasonNotDelivered, std::move(message));
}
// The reason ScaleFailed: the number of nodes could not be read or set, or not be shown to another
// autoscaler.
inline Note ScaleNotRead(const cluster::NodePool& pool, const Status& error) {
  return OnPool(
      pool, kWarning, kReasonScaleFailed,
      "Failed to read desired number of Nodes: " + Shortened(error.ToString(), kMaxError));
}
inline Note ScaleNotSet(const cluster::NodePool& pool, int32_t count, const Status& error) {
  return OnPool(pool, kWarning, kReasonScaleFailed,
                fmt::format("Failed to set desired number of Nodes to {}: {}", count,
                            Shortened(error.ToString(), kMaxError)));
}
inline Note ScaleNotPublished(const cluster::NodePool& pool, const Status& error) {
  return OnPool(pool, kWarning, kReasonScaleFailed,
                "Failed to publish missing Nodes: " + Shortened(error.ToString(), kMaxError));
}
inline constexpr std::string_view kIgnored = "Ignoring change, keeping last valid state: ";
inline Note Unreadable(const cluster::NodePool& pool, std::string_view problem) {
  return OnPool(pool, kWarning, "Unreadable", fmt::format("{}{}", kIgnored, problem));
}

// Autoscaler, on nodes and pods.
inline Note NodeEmptying(const std::string& node, std::string message) {
  return OnNode(node, kNormal, kReasonNodeEmptying, std::move(message));
}
inline Note NodeRemoved(const std::string& node, std::string_view pool) {
  return OnNode(node, kNormal, kReasonNodeRemoved,
                fmt::format("Removed by NodePool {}", Shortened(pool, 80)));
}
inline Note NodeNotRemoved(const std::string& node, std::string_view pool, Duration since) {
  return OnNode(
      node, kWarning, kReasonNodeNotRemoved,
      fmt::format("Waiting for NodePool {} to remove this Node, requested {} ago. Check the "
                  "component that creates its Nodes",
                  pool, FormatAge(since)));
}
inline Note NodeKept(const std::string& node, std::string message) {
  return OnNode(node, kNormal, kReasonNodeKept, std::move(message));
}
inline Note BadRemovalMark(const std::string& node, std::string message) {
  return OnNode(node, kWarning, "BadRemovalMark", std::move(message));
}
inline Note MovedAway(const cluster::Pod& pod, std::string message) {
  return OnPod(pod, kNormal, kReasonMovedAway, std::move(message));
}
inline Note MadeRoom(const cluster::Pod& pod, std::string message) {
  return OnPod(pod, kNormal, kReasonMadeRoom, std::move(message));
}
inline Note NodesComing(const cluster::Pod& pod, std::string message) {
  return OnPod(pod, kNormal, "NodesComing", std::move(message));
}

// Operator, on quotas. `amounts`: text of a resource list.
inline Note Borrowing(const cluster::ElasticQuota& quota, std::string_view amounts) {
  return OnQuota(quota, kNormal, "Borrowing", fmt::format("Using beyond min: {}", amounts));
}
inline Note BorrowingEnded(const cluster::ElasticQuota& quota) {
  return OnQuota(quota, kNormal, "BorrowingEnded", "Using no more than min");
}
inline Note Lending(const cluster::ElasticQuota& quota, std::string_view amounts) {
  return OnQuota(quota, kNormal, "Lending", fmt::format("Lending to other quotas: {}", amounts));
}
inline Note LendingEnded(const cluster::ElasticQuota& quota) {
  return OnQuota(quota, kNormal, "LendingEnded", "Lending nothing to other quotas");
}
inline Note Reclaimed(const cluster::ElasticQuota& quota, std::string_view pod,
                      std::string_view why) {
  return OnQuota(quota, kNormal, "Reclaimed", fmt::format("Evicting Pod {}: {}", pod, why));
}
inline Note OverlapDeleted(const cluster::ElasticQuota& quota, std::string_view deleted) {
  return OnQuota(quota, kWarning, "OverlapDeleted",
                 fmt::format("Deleting ElasticQuota {}: this quota covers its namespace", deleted));
}
inline Note Unreadable(const cluster::ElasticQuota& quota, std::string_view problem) {
  return OnQuota(quota, kWarning, "Unreadable", fmt::format("Ignoring invalid quota: {}", problem));
}

}  // namespace nos::controllers::events
