#include "controllers/events.h"

#include <fmt/format.h>

#include <utility>

#include "base/text.h"

namespace nos::controllers::events {
namespace {

constexpr kube::EventType kNormal = kube::EventType::kNormal, kWarning = kube::EventType::kWarning;
constexpr size_t kMaxError = 500;  // bytes of an error of another system

// Events of a node carry its name as UID, as the kubelet's do, so that kubectl finds them.
Note OnNode(const std::string& node, kube::EventType type, const char* reason,
            std::string message) {
  return {{"Node", "", node, node}, type, reason, std::move(message)};
}

Note OnPod(const cluster::Pod& pod, kube::EventType type, const char* reason, std::string message) {
  return {{"Pod", pod.meta.ns, pod.meta.name, pod.meta.uid}, type, reason, std::move(message)};
}

Note OnPool(const cluster::NodePool& pool, kube::EventType type, const char* reason,
            std::string message) {
  return {{std::string(cluster::kNodePool), "", pool.meta.name, pool.meta.uid,
           fmt::format("{}/{}", cluster::kPoolGroup, cluster::kPoolVersion)},
          type,
          reason,
          std::move(message)};
}

Note OnQuota(const cluster::ElasticQuota& quota, kube::EventType type, const char* reason,
             std::string message) {
  return {{std::string(quota.composite ? cluster::kCompositeQuota : cluster::kElasticQuota),
           quota.meta.ns, quota.meta.name, quota.meta.uid, "nos.nebuly.com/v1alpha1"},
          type,
          reason,
          std::move(message)};
}

}  // namespace

Note Repartitioning(const std::string& node, std::string_view plan, std::string_view changes) {
  return OnNode(node, kNormal, "Repartitioning", fmt::format("plan {}: {}", plan, changes));
}

Note PlanNotAcknowledged(const std::string& node, std::string_view plan, Duration waited) {
  return OnNode(node, kWarning, "PlanNotAcknowledged",
                fmt::format("Agent has not acknowledged plan {} for {}; planning continues "
                            "without this Node. Check the agent Pod on it",
                            plan, FormatAge(waited)));
}

Note PlanRefused(const std::string& node, const Status& why) {
  return OnNode(node, kWarning, "PlanRefused",
                fmt::format("Failed to patch plan onto Node: {}; planning continues without this "
                            "Node and retries periodically",
                            Shortened(why.ToString(), kMaxError)));
}

Note SpecRepaired(const std::string& node, std::string problem) {
  return OnNode(node, kWarning, "SpecRepaired", std::move(problem));
}

Note SlicePlanned(const cluster::Pod& pod, std::string slices) {
  return OnPod(pod, kNormal, "SlicePlanned", std::move(slices));
}

Note SliceNotPlanned(const cluster::Pod& pod, std::string reasons) {
  return OnPod(pod, kWarning, "SliceNotPlanned", std::move(reasons));
}

Note SliceReservationExpired(const cluster::Pod& pod, std::string_view node, Duration reserved) {
  return OnPod(pod, kWarning, "SliceReservationExpired",
               fmt::format("Releasing slices on Node {} that were reserved for {}: Pod was not "
                           "bound; another filter keeps it off that Node",
                           node, FormatAge(reserved)));
}

Note Scheduled(const cluster::Pod& pod, std::string_view node) {
  return OnPod(pod, kNormal, "Scheduled",
               fmt::format("Successfully assigned {} to {}", pod.Key(), node));
}

Note FailedScheduling(const cluster::Pod& pod, std::string reasons) {
  return OnPod(pod, kWarning, "FailedScheduling", std::move(reasons));
}

Note Preempted(const cluster::Pod& victim, const cluster::Pod& preemptor, std::string_view node,
               bool for_quota) {
  // Only pods of its own namespace may see the preemptor's name.
  const bool related = preemptor.meta.ns == victim.meta.ns;
  return OnPod(
      victim, kNormal, "Preempted",
      fmt::format("Preempted by pod {}{} on node {}{}", preemptor.meta.uid,
                  related ? fmt::format(" ({})", preemptor.Key()) : "", node,
                  for_quota ? ": its elastic quota has a right to what is borrowed here" : ""));
}

Note ScaledUp(const cluster::NodePool& pool, std::string message) {
  return OnPool(pool, kNormal, "ScaledUp", std::move(message));
}

Note ScaledDown(const cluster::NodePool& pool, int32_t count, int32_t before,
                std::string_view empty_node) {
  return OnPool(
      pool, kNormal, "ScaledDown",
      fmt::format("Scaling down to {} Nodes from {}: Node {} is empty", count, before, empty_node));
}

Note NotDelivered(const cluster::NodePool& pool, std::string message) {
  return OnPool(pool, kWarning, "NotDelivered", std::move(message));
}

Note ScaleNotRead(const cluster::NodePool& pool, const Status& error) {
  return OnPool(
      pool, kWarning, "ScaleFailed",
      "Failed to read desired number of Nodes: " + Shortened(error.ToString(), kMaxError));
}

Note ScaleNotSet(const cluster::NodePool& pool, int32_t count, const Status& error) {
  return OnPool(pool, kWarning, "ScaleFailed",
                fmt::format("Failed to set desired number of Nodes to {}: {}", count,
                            Shortened(error.ToString(), kMaxError)));
}

Note ScaleNotPublished(const cluster::NodePool& pool, const Status& error) {
  return OnPool(pool, kWarning, "ScaleFailed",
                "Failed to publish missing Nodes: " + Shortened(error.ToString(), kMaxError));
}

Note Unreadable(const cluster::NodePool& pool, std::string_view problem) {
  return OnPool(pool, kWarning, "Unreadable", fmt::format("{}{}", kIgnored, problem));
}

Note NodeEmptying(const std::string& node, std::string message) {
  return OnNode(node, kNormal, "NodeEmptying", std::move(message));
}

Note NodeRemoved(const std::string& node, std::string_view pool) {
  return OnNode(node, kNormal, "NodeRemoved",
                fmt::format("Removed by NodePool {}", Shortened(pool, 80)));
}

Note NodeNotRemoved(const std::string& node, std::string_view pool, Duration since) {
  return OnNode(node, kWarning, "NodeNotRemoved",
                fmt::format("NodePool {} was asked {} ago to remove this Node and has not. Check "
                            "the component that creates its Nodes",
                            pool, FormatAge(since)));
}

Note NodeKept(const std::string& node, std::string why) {
  return OnNode(node, kNormal, "NodeKept", std::move(why));
}

Note BadRemovalMark(const std::string& node, std::string message) {
  return OnNode(node, kWarning, "BadRemovalMark", std::move(message));
}

Note MovedAway(const cluster::Pod& pod, std::string message) {
  return OnPod(pod, kNormal, "MovedAway", std::move(message));
}

Note MadeRoom(const cluster::Pod& pod, std::string message) {
  return OnPod(pod, kNormal, "MadeRoom", std::move(message));
}

Note NodesComing(const cluster::Pod& pod, std::string message) {
  return OnPod(pod, kNormal, "NodesComing", std::move(message));
}

Note Borrowing(const cluster::ElasticQuota& quota, std::string_view amounts) {
  return OnQuota(quota, kNormal, "Borrowing", fmt::format("Using beyond min: {}", amounts));
}

Note BorrowingEnded(const cluster::ElasticQuota& quota) {
  return OnQuota(quota, kNormal, "BorrowingEnded", "Using no more than min");
}

Note Lending(const cluster::ElasticQuota& quota, std::string_view amounts) {
  return OnQuota(quota, kNormal, "Lending", fmt::format("Lending to other quotas: {}", amounts));
}

Note LendingEnded(const cluster::ElasticQuota& quota) {
  return OnQuota(quota, kNormal, "LendingEnded", "Lending nothing to other quotas");
}

Note Reclaimed(const cluster::ElasticQuota& quota, std::string_view pod, std::string_view why) {
  return OnQuota(quota, kNormal, "Reclaimed", fmt::format("Evicting Pod {}: {}", pod, why));
}

Note OverlapDeleted(const cluster::ElasticQuota& quota, std::string_view deleted) {
  return OnQuota(quota, kWarning, "OverlapDeleted",
                 fmt::format("Deleting ElasticQuota {}: this quota covers its namespace", deleted));
}

Note Unreadable(const cluster::ElasticQuota& quota, std::string_view problem) {
  return OnQuota(quota, kWarning, "Unreadable", fmt::format("Ignoring invalid quota: {}", problem));
}

}  // namespace nos::controllers::events
