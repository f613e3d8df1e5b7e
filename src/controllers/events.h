// The Events of this library, a function for each with its type, reason and message. Callers pass
// values, and remove from them the names of pods that the readers of a pod may not see
// (scheduling/pod_names.h).
//
// The message of a decision of the autoscaler is that of its Event. If a condition has the text of
// an Event, a function here makes it for both. Only reasons come from elsewhere: of plans and of
// the scheduler, and errors of other systems.
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
#include "scheduling/pod_names.h"

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

inline std::string_view KindOf(const cluster::ElasticQuota& quota) {
  return quota.composite ? cluster::kCompositeQuota : cluster::kElasticQuota;
}

inline Note OnQuota(const cluster::ElasticQuota& quota, kube::EventType type, const char* reason,
                    std::string message) {
  return {{std::string(KindOf(quota)), quota.meta.ns, quota.meta.name, quota.meta.uid,
           "nos.nebuly.com/v1alpha1"},
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

// Partitioner, on pods. `slices`: "1g.5gb@0 on GPU 1". The condition kPartitionedCondition has the
// text of SlicePlanned, and the reasons of SliceNotPlanned, which are those of the plan.
inline std::string SlicePlannedText(std::string_view node, std::string_view slices) {
  return fmt::format("Planned slices on Node {}: {}", node, slices);
}
inline Note SlicePlanned(const cluster::Pod& pod, std::string_view node, std::string_view slices) {
  return OnPod(pod, kNormal, "SlicePlanned", SlicePlannedText(node, slices));
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
// `reasons`: the scheduler's text (scheduling/diagnosis.h), as in the condition PodScheduled. It
// has the form of kube-scheduler's: "0/2 nodes are available: ...".
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
// `cause`: "for ml/a, ml/b".
inline Note ScaledUp(const cluster::NodePool& pool, int32_t count, int32_t before,
                     std::string_view cause) {
  return OnPool(pool, kNormal, kReasonScaledUp,
                fmt::format("Scaling up NodePool {} to {} Nodes from {}: {}", pool.meta.name, count,
                            before, cause));
}
// The same, of a pool that another autoscaler scales. `cause`: "ml/a, ml/b".
inline Note NodesRequested(const cluster::NodePool& pool, int32_t count, std::string_view cause) {
  return OnPool(pool, kNormal, kReasonScaledUp,
                fmt::format("Requesting {} Nodes for {}", count, cause));
}
inline Note ScaledDown(const cluster::NodePool& pool, int32_t count, int32_t before,
                       std::string_view empty_node) {
  return OnPool(pool, kNormal, kReasonScaledDown,
                fmt::format("Scaling down NodePool {} to {} Nodes from {}: Node {} is empty",
                            pool.meta.name, count, before, empty_node));
}
// A message of the condition kPoolReady. `failures`: in a row. `why`: what is wrong with nodes that
// arrived; "": nothing.
inline std::string NotDeliveredText(Time until, int32_t failures, std::string_view why) {
  return fmt::format("Pausing requests for Nodes until {}: requested Nodes did not arrive{}{}{}",
                     FormatTime(until),
                     failures > 1 ? fmt::format(" ({} times in a row)", failures) : "",
                     why.empty() ? "" : "; ", why);
}
// `ready`: the condition kPoolReady, with NotDeliveredText or with a problem that is more urgent.
inline Note NotDelivered(const cluster::NodePool& pool, const cluster::Condition& ready) {
  return OnPool(pool, kWarning, kReasonNotDelivered, ready.message);
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
inline constexpr std::string_view kIgnored =
    "Ignoring change of NodePool, keeping last valid state: ";
inline Note Unreadable(const cluster::NodePool& pool, std::string_view problem) {
  return OnPool(pool, kWarning, "Unreadable", fmt::format("{}{}", kIgnored, problem));
}

// Autoscaler, on nodes and pods.
inline Note NodeEmptying(const std::string& node, size_t pods) {
  return OnNode(
      node, kNormal, kReasonNodeEmptying,
      fmt::format("Draining Node {}: its {} Pods move once their placeholders run", node, pods));
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
// `any_evicted`: the node was being drained, and pods were evicted.
inline Note NodeKept(const std::string& node, std::string_view why, bool any_evicted = false) {
  return OnNode(
      node, kNormal, kReasonNodeKept,
      fmt::format("Keeping Node {}{}: {}", node, any_evicted ? " after evicting Pods" : "", why));
}
inline Note BadRemovalMark(const std::string& node, std::string_view annotation,
                           std::string_view why, bool cordoned) {
  return OnNode(node, kWarning, "BadRemovalMark",
                fmt::format("Removing invalid annotation {} of Node: {}{}", annotation, why,
                            cordoned ? ". The Node stays cordoned, because it is not known who "
                                       "cordoned it. Uncordon it if it may take Pods"
                                     : ""));
}
inline Note MovedAway(const cluster::Pod& pod, std::string_view from, std::string_view to) {
  return OnPod(pod, kNormal, kReasonMovedAway,
               fmt::format("Evicting {} from Node {}: its placeholder runs on Node {}",
                           scheduling::PodText(pod.Key()), from, to));
}
inline Note MadeRoom(const cluster::Pod& pod) {
  return OnPod(pod, kNormal, kReasonMadeRoom,
               fmt::format("Moved other Pods to make room for {}", scheduling::PodText(pod.Key())));
}
// Messages of the condition kScalingCondition with the reason kNodesComing.
inline std::string NodeComingText(std::string_view pool) {
  return fmt::format("Waiting for a new Node of NodePool {}", pool);
}
inline std::string GroupNodesComingText(std::string_view node) {
  return fmt::format("Waiting for new Nodes for other Pods of its group; this Pod fits on Node {}",
                     node);
}
// `message`: of that condition.
inline Note NodesComing(const cluster::Pod& pod, std::string message) {
  return OnPod(pod, kNormal, "NodesComing", std::move(message));
}

// Operator, on quotas. `amounts`: text of a resource list.
inline Note Borrowing(const cluster::ElasticQuota& quota, std::string_view amounts) {
  return OnQuota(quota, kNormal, "Borrowing",
                 fmt::format("Using beyond min of {}: {}", KindOf(quota), amounts));
}
inline Note BorrowingEnded(const cluster::ElasticQuota& quota) {
  return OnQuota(quota, kNormal, "BorrowingEnded",
                 fmt::format("Using no more than min of {}", KindOf(quota)));
}
inline Note Lending(const cluster::ElasticQuota& quota, std::string_view amounts) {
  return OnQuota(quota, kNormal, "Lending",
                 fmt::format("Lending min of {} to other quotas: {}", KindOf(quota), amounts));
}
inline Note LendingEnded(const cluster::ElasticQuota& quota) {
  return OnQuota(quota, kNormal, "LendingEnded",
                 fmt::format("Lending no min of {} to other quotas", KindOf(quota)));
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
