// Which pods would have to go for the one that waits, and which go already. Internal to
// explanations.
//
// Pure functions.
#pragma once

#include <optional>

#include "scheduling/explain.h"

namespace nos::scheduling {

Explanation::Room RoomOf(const Preemption& preemption);
// Quotas decide for whom the pod has to go, and who for it.
bool IsCovered(const ExplainInput& input, const cluster::Pod& pod);
// Its priority may make room.
bool MayPreempt(const ExplainInput& input);
// The other one may go for that of `pod`, which is the input's as it would be.
bool MayGoFor(const ExplainInput& input, const cluster::Pod& pod, const cluster::Pod& other);
// Takes those off the node. False: there are none.
bool VacateLesser(const ExplainInput& input, const cluster::Pod& pod, const std::string& node,
                  cluster::ClusterSnapshot& snapshot);
// The fewest, whatever their priority; those are not counted that would be evicted for the pod when
// these have gone.
std::optional<Explanation::Room> InTheWay(const ExplainInput& input);
// What is ending on the node that the pod is promised, if it fits there then.
std::optional<Explanation::Room> AwaitedBy(const ExplainInput& input);
// They would be evicted for it if its priority were above theirs.
bool WouldPreempt(const ExplainInput& input, const Explanation::Room& room);

}  // namespace nos::scheduling
