#include "scheduling/explain/pods_in_the_way.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "scheduling/explain_promises.h"
#include "scheduling/framework.h"
#include "scheduling/plugins/inter_pod_affinity/terms.h"
#include "scheduling/pod_state.h"

namespace nos::scheduling {

using cluster::NodeInfo;
using cluster::Pod;
using Victims = Explanation::Victims;

namespace {

constexpr auto kHighest = std::numeric_limits<int32_t>::max();
// Maximum for users' PriorityClasses. Source: HighestUserDefinablePriority in k8s.io/kubernetes
// pkg/apis/scheduling.
constexpr int32_t kHighestOfUsers = 1'000'000'000;

// Number of nodes searched for pods that would be preempted anyway; equal to the number of
// candidates of a preemption.
constexpr size_t kMaxLookedAt = 100;

using MayGo = FunctionRef<bool(const Pod&)>;

// Pods in the way in addition to pods that the pod would preempt. Absent: preemption does not help,
// so all pods in the way count.
std::optional<Victims> InTheWayOfItsPriority(const ExplainInput& input, MayGo may_go) {
  if (!MayPreempt(input)) return std::nullopt;
  cluster::ClusterSnapshot without = input.snapshot;
  bool any = false;
  for (size_t i = 0; i < std::min(without.size(), kMaxLookedAt); ++i) {
    any = VacateLesser(input, input.pod, input.snapshot.node(i).node->meta.name, without) || any;
  }
  if (!any) return std::nullopt;
  const auto fewest = FindFewest(input.framework, without, input.pod, may_go);
  if (!fewest) return std::nullopt;
  cluster::ClusterSnapshot after = input.snapshot;
  // The pod is on the node.
  for (const auto& pod : fewest->victims) (void)after.Vacate(*pod, fewest->node);
  VacateLesser(input, input.pod, fewest->node, after);
  if (!FitsOn(input.framework, input.pod, fewest->node, after)) return std::nullopt;
  return VictimsOf(*fewest);
}

}  // namespace

bool IsCovered(const ExplainInput& input, const Pod& pod) {
  return input.balance != nullptr && input.framework.quotas() != nullptr &&
         input.balance->AccountOf(pod.meta.ns).has_value();
}

bool MayPreempt(const ExplainInput& input) {
  return input.preemption && input.pod.preemption_policy != "Never" && !IsCovered(input, input.pod);
}

bool MayGoFor(const ExplainInput& input, const Pod& pod, const Pod& other) {
  return other.priority < pod.priority && !IsCovered(input, other);
}

bool VacateLesser(const ExplainInput& input, const Pod& pod, const std::string& node,
                  cluster::ClusterSnapshot& snapshot) {
  const NodeInfo* info = snapshot.Find(node);
  if (info == nullptr) return false;
  bool any = false;
  for (const auto& there : std::vector(info->pods)) {
    if (!MayGoFor(input, pod, *there)) continue;
    (void)snapshot.Vacate(*there, node);  // the pod is on the node
    any = true;
  }
  return any;
}

Victims VictimsOf(const Preemption& preemption) {
  Victims victims{preemption.node, {}, std::numeric_limits<int32_t>::min(), {}, true};
  for (const auto& victim : preemption.victims) {
    victims.pods.push_back(victim->Key());
    victims.priority = std::max(victims.priority, victim->priority);
    if (victim->node_name.empty()) victims.coming.push_back(victim->Key());
    victims.ending = victims.ending && (victim->node_name.empty() || victim->meta.deleted);
  }
  return victims;
}

// Treats the pod as the most important one. Pods that it requires by affinity stay unless no other
// set helps.
std::optional<Victims> InTheWay(const ExplainInput& input) {
  const auto may_go = [](const Pod& other) {
    return other.priority < kHighest && !IsTiedToNode(other);
  };
  auto beside_lesser = InTheWayOfItsPriority(input, may_go);
  auto fewest = FindFewest(input.partitioning, input.snapshot, input.pod, may_go);
  if (!fewest && !input.pod.pod_affinity.required.empty()) {
    const auto is_no_company = [&](const Pod& other) {
      return may_go(other) && !IsAttractedBy(input.pod, other, input.snapshot.context());
    };
    fewest = FindFewest(input.partitioning, input.snapshot, input.pod, is_no_company);
  }
  if (!fewest) return beside_lesser;
  const bool fewer = beside_lesser && beside_lesser->pods.size() <= fewest->victims.size();
  return fewer ? std::move(beside_lesser) : std::optional(VictimsOf(*fewest));
}

std::optional<Victims> AwaitedBy(const ExplainInput& input) {
  const NodeInfo* node = input.snapshot.Find(input.pod.nominated_node);
  if (node == nullptr) return std::nullopt;
  Preemption ending{node->node->meta.name, {}, 0};
  cluster::ClusterSnapshot after = input.snapshot;
  for (const auto& there : node->pods) {
    if (!there->meta.deleted || there->priority >= input.pod.priority) continue;
    ending.victims.push_back(there);
    (void)after.Vacate(*there, ending.node);  // the pod is on the node
  }
  if (ending.victims.empty()) return std::nullopt;
  return FitsOn(input.framework, input.pod, ending.node, after) ? std::optional(VictimsOf(ending))
                                                                : std::nullopt;
}

bool WouldPreempt(const ExplainInput& input, const Victims& victims) {
  const bool ends = victims.ending && victims.coming.empty();  // would be preempted
  if (!input.preemption || !MayPreempt(input) || ends || victims.priority >= kHighestOfUsers)
    return false;
  Pod above = input.pod;
  above.priority = std::max(above.priority, victims.priority + 1);
  const auto may_go = [&](const Pod& other) { return MayGoFor(input, above, other); };
  EachThat rule(may_go);
  const auto candidates =
      PreemptionCandidates(input.framework, input.snapshot, above, *input.preemption, &rule);
  return std::ranges::find(candidates, victims.node, &Preemption::node) != candidates.end();
}

}  // namespace nos::scheduling
