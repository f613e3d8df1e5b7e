#include "scheduling/explain_room.h"

#include <algorithm>
#include <limits>
#include <memory>

#include "scheduling/explain_promises.h"
#include "scheduling/plugins/inter_pod_affinity/terms.h"
#include "scheduling/pod_state.h"

namespace nos::scheduling {

using cluster::NodeInfo;
using cluster::Pod;
using Room = Explanation::Room;

namespace {

constexpr auto kHighest = std::numeric_limits<int32_t>::max();

}  // namespace

Room RoomOf(const Preemption& preemption) {
  Room room{preemption.node, {}, std::numeric_limits<int32_t>::min(), {}, true};
  for (const auto& victim : preemption.victims) {
    room.pods.push_back(victim->Key());
    room.priority = std::max(room.priority, victim->priority);
    if (victim->node_name.empty()) room.coming.push_back(victim->Key());
    room.ending = room.ending && (victim->node_name.empty() || victim->meta.deleted);
  }
  return room;
}

// As if it went before all others. Pods that it is to run near stay if nobody else would do.
std::optional<Room> InTheWay(const ExplainInput& input) {
  const auto may_go = [](const Pod& other) {
    return other.priority < kHighest && !IsTiedToNode(other);
  };
  auto fewest = FindFewest(input.cutting, input.snapshot, input.pod, may_go);
  if (!fewest && !input.pod.pod_affinity.required.empty()) {
    const auto is_no_company = [&](const Pod& other) {
      return may_go(other) && !IsAttractedBy(input.pod, other, input.snapshot.around());
    };
    fewest = FindFewest(input.cutting, input.snapshot, input.pod, is_no_company);
  }
  return fewest ? std::optional(RoomOf(*fewest)) : std::nullopt;
}

std::optional<Room> AwaitedBy(const ExplainInput& input) {
  const NodeInfo* node = input.snapshot.Find(input.pod.nominated_node);
  if (node == nullptr) return std::nullopt;
  Preemption ending{node->node->meta.name, {}, 0};
  cluster::ClusterSnapshot after = input.snapshot;
  for (const auto& there : node->pods) {
    if (!there->meta.deleted || there->priority >= input.pod.priority) continue;
    ending.victims.push_back(there);
    (void)after.Vacate(*there, ending.node);  // it is there
  }
  if (ending.victims.empty()) return std::nullopt;
  return FitsOn(input.framework, input.pod, ending.node, after) ? std::optional(RoomOf(ending))
                                                                : std::nullopt;
}

bool WouldPreempt(const ExplainInput& input, const Room& room) {
  const bool may = input.preemption && input.pod.preemption_policy != "Never";
  const bool ends = room.ending && room.coming.empty();  // without that
  if (!may || ends || room.priority == kHighest) return false;
  Pod above = input.pod;
  above.priority = std::max(above.priority, room.priority + 1);
  const auto candidates =
      PreemptionCandidates(input.framework, input.snapshot, above, *input.preemption);
  return std::ranges::find(candidates, room.node, &Preemption::node) != candidates.end();
}

}  // namespace nos::scheduling
