// The Events of this library, a function for each with its type, reason and message.
// Callers remove from messages about pods the names that their readers may not see
// (scheduling/pod_names.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "cluster/elastic_quota.h"
#include "cluster/node_pool.h"
#include "cluster/objects.h"
#include "kube/event_recorder.h"

namespace nos::controllers::events {

using Note = kube::EventNote;

// Partitioner, on nodes.
Note Repartitioning(const std::string& node, std::string_view plan, std::string_view changes);
Note PlanNotAcknowledged(const std::string& node, std::string_view plan, Duration waited);
Note PlanRefused(const std::string& node, const Status& why);
Note SpecRepaired(const std::string& node, std::string problem);

// Partitioner, on pods.
Note SlicePlanned(const cluster::Pod& pod, std::string slices);
Note SliceNotPlanned(const cluster::Pod& pod, std::string reasons);
Note SliceReservationExpired(const cluster::Pod& pod, std::string_view node, Duration reserved);

// Scheduler, on pods.
Note Scheduled(const cluster::Pod& pod, std::string_view node);
Note FailedScheduling(const cluster::Pod& pod, std::string reasons);
// `for_quota`: to reclaim what the preemptor's quota guarantees.
Note Preempted(const cluster::Pod& victim, const cluster::Pod& preemptor, std::string_view node,
               bool for_quota);

// Autoscaler, on node pools.
Note ScaledUp(const cluster::NodePool& pool, std::string message);
Note ScaledDown(const cluster::NodePool& pool, int32_t count, int32_t before,
                std::string_view empty_node);
Note NotDelivered(const cluster::NodePool& pool, std::string message);
// The reason ScaleFailed: the number of nodes could not be read or set, or not be shown to another
// autoscaler.
Note ScaleNotRead(const cluster::NodePool& pool, const Status& error);
Note ScaleNotSet(const cluster::NodePool& pool, int32_t count, const Status& error);
Note ScaleNotPublished(const cluster::NodePool& pool, const Status& error);
inline constexpr std::string_view kIgnored = "Ignoring change, keeping last valid state: ";
Note Unreadable(const cluster::NodePool& pool, std::string_view problem);

// Autoscaler, on nodes and pods.
Note NodeEmptying(const std::string& node, std::string message);
Note NodeRemoved(const std::string& node, std::string_view pool);
Note NodeNotRemoved(const std::string& node, std::string_view pool, Duration since);
Note NodeKept(const std::string& node, std::string why);
Note BadRemovalMark(const std::string& node, std::string message);
Note MovedAway(const cluster::Pod& pod, std::string message);
Note MadeRoom(const cluster::Pod& pod, std::string message);
Note NodesComing(const cluster::Pod& pod, std::string message);

// Operator, on quotas. `amounts`: text of a resource list.
Note Borrowing(const cluster::ElasticQuota& quota, std::string_view amounts);
Note BorrowingEnded(const cluster::ElasticQuota& quota);
Note Lending(const cluster::ElasticQuota& quota, std::string_view amounts);
Note LendingEnded(const cluster::ElasticQuota& quota);
Note Reclaimed(const cluster::ElasticQuota& quota, std::string_view pod, std::string_view why);
Note OverlapDeleted(const cluster::ElasticQuota& quota, std::string_view deleted);
Note Unreadable(const cluster::ElasticQuota& quota, std::string_view problem);

}  // namespace nos::controllers::events
