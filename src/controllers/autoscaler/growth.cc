#include "controllers/autoscaler/growth.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "controllers/events.h"
#include "planning/moves.h"

namespace nos::controllers {
namespace {

namespace codes = scheduling::codes;

constexpr size_t kMaxNamed = 20;  // pods named in one decision

// True if the pod stays out for a reason that free capacity on existing nodes could resolve. A node
// that is idle now is then worth keeping.
bool MayBeHelpedByRoom(std::string_view code) {
  return code == codes::kPoolClosed || code == codes::kPoolsAtMaximum ||
         code == codes::kGangNotWhole || code == codes::kSearchEnded;
}

// Pods that get new nodes, as indices.
struct NewNodePods {
  std::set<int> asked;
  std::set<int> failed;  // pods whose pool could not be asked

  // True if `pods` contains a member of the pod's gang.
  static bool Has(const std::set<int>& pods, int pod, const std::vector<planning::Gang>& gangs) {
    return std::ranges::any_of(gangs, [&](const planning::Gang& gang) {
      return std::ranges::find(gang.members, pod) != gang.members.end() &&
             std::ranges::any_of(gang.members, [&](int member) { return pods.contains(member); });
    });
  }
};

// The nodes that a plan requests from one pool.
struct PoolRequest {
  std::vector<std::string> pods;  // keys, at most kMaxNamed
  int used = 0;                   // nodes of the plan that are already coming
};

// By pool. Adds to `used` the existing nodes of the plan.
std::vector<PoolRequest> RequestsOf(const planning::GrowthPlan& plan,
                                    const UnschedulablePods& unschedulable, NodeNames& used) {
  std::vector<PoolRequest> requests(plan.pools.size());
  for (const planning::NewNode& node : plan.nodes) {
    if (node.IsThere()) {
      used.insert(node.name);  // not removed: the plan places pods here
      continue;
    }
    PoolRequest& request = requests[static_cast<size_t>(node.pool)];
    if (node.coming) ++request.used;
    for (const int pod : node.pods) {
      if (request.pods.size() >= kMaxNamed) break;
      request.pods.push_back(unschedulable.pods[static_cast<size_t>(pod)]->Key());
    }
  }
  return requests;
}

}  // namespace

GrowthOutcome Growth::Grow(const ScalingCycle& cycle, ObservedCluster& cluster,
                           const UnschedulablePods& unschedulable, planning::PlanOptions options,
                           const cluster::ClusterSnapshot& snapshot, NodeNames& used) {
  // 1. Plan, within a fresh time limit: the search on existing nodes may have used up the first.
  std::vector<planning::NodePoolState> now;
  now.reserve(cluster.pools.size());
  for (const ObservedPool& pool : cluster.pools) now.push_back(pool.state.now);
  options.gangs = unschedulable.gangs;
  options.out_of_time = cycle.TimeLimit(config_.plan_timeout);
  planning::GrowthPlan plan =
      planning::PlanGrowth(snapshot, unschedulable.pods, now, frameworks_, options);
  // 2. Ask the pools.
  const std::vector<PoolRequest> requests = RequestsOf(plan, unschedulable, used);
  bool all_served = plan.nodes.empty();
  std::set<int> failed;  // pools that could not be asked
  for (size_t p = 0; p < now.size(); ++p) {
    ObservedPool& pool = cluster.pools[p];
    const int count = plan.pools[p].count;
    if (pool.HasSignal()) {
      RequestBySignal(cycle, pool, std::min(requests[p].used, now[p].coming), count,
                      requests[p].pods);
    } else if (count > 0 && !Request(cycle, pool, count, requests[p].pods)) {
      failed.insert(static_cast<int>(p));
      schedule_.DecideBy(cycle.now);
    }
    all_served &= count == 0;
  }
  // 3. Say why, on each pod.
  SetConditions(cycle, cluster, unschedulable, plan, failed);
  for (const planning::LeftOut& left : plan.left_out) {
    all_served &= !MayBeHelpedByRoom(left.reason.code);
    conditions_.Set(*unschedulable.pods[static_cast<size_t>(left.pod)], "False", left.reason.code,
                    left.reason.message, cycle.now);
  }
  return {all_served, std::move(plan.left_out)};
}

// Conditions of the pods that the plan places.
void Growth::SetConditions(const ScalingCycle& cycle, const ObservedCluster& cluster,
                           const UnschedulablePods& unschedulable, const planning::GrowthPlan& plan,
                           const std::set<int>& failed) {
  const auto set = [&](int pod, const char* status, const char* reason, std::string message) {
    conditions_.Set(*unschedulable.pods[static_cast<size_t>(pod)], status, reason,
                    std::move(message), cycle.now);
  };
  NewNodePods on_new_nodes;
  for (const planning::NewNode& node : plan.nodes) {
    if (node.IsThere()) continue;
    const bool is_asked = node.coming || !failed.contains(node.pool);
    (is_asked ? on_new_nodes.asked : on_new_nodes.failed)
        .insert(node.pods.begin(), node.pods.end());
    if (!is_asked) continue;
    const std::string& name = cluster.pools[static_cast<size_t>(node.pool)].pool->meta.name;
    for (const int pod : node.pods) {
      set(pod, "True", kNodesComing, events::NodeComingText(name));
    }
  }
  for (const planning::NewNode& node : plan.nodes) {
    if (!node.IsThere()) continue;
    for (const int pod : node.pods) {
      if (NewNodePods::Has(on_new_nodes.failed, pod, unschedulable.gangs)) continue;
      if (NewNodePods::Has(on_new_nodes.asked, pod, unschedulable.gangs)) {
        set(pod, "True", kNodesComing, events::GroupNodesComingText(node.name));
      } else {
        set(pod, "False", planning::kCapacityAvailable, kCapacityText);
      }
    }
  }
}

void Growth::Report(kube::EventNote event, const std::string& pool, int count,
                    const std::vector<std::string>& pods, Time now) {
  events_.Record(
      {.action = "grow", .pool = pool, .count = count, .pods = pods, .message = event.message},
      now);
  events_.Add(std::move(event));
}

bool Growth::Request(const ScalingCycle& cycle, ObservedPool& pool, int count,
                     const std::vector<std::string>& pods) {
  PoolMemory& memory = *pool.memory;
  if (!memory.MayWrite() || !memory.scale) return false;
  const int32_t before = memory.scale->wanted;
  const int32_t wanted = std::min(before + count, std::max(pool.pool->max, before));
  if (wanted == before) return true;
  const Status written = counts_.Write(cycle, pool, wanted, {});
  if (!written.ok()) {
    Log(LogLevel::kWarn, "failed to request nodes from NodePool",
        {{"pool", pool.pool->meta.name}, {"error", written.ToString()}});
    return false;
  }
  memory.grown = cycle.now;
  const std::string cause = pods.empty()
                                ? std::string("minimum of the pool (spec.min)")
                                : fmt::format("for {}{}", Join(pods, ", "),
                                              pods.size() < kMaxNamed ? "" : " and perhaps more");
  Report(events::ScaledUp(*pool.pool, wanted, before, cause), pool.pool->meta.name, wanted - before,
         pods, cycle.now);
  return true;
}

// The requested count may be reduced as long as the nodes have not been created.
void Growth::RequestBySignal(const ScalingCycle& cycle, ObservedPool& pool, int used, int count,
                             const std::vector<std::string>& pods) {
  PoolStatus& status = pool.state.status;
  const int32_t before = status.wanted;
  const int32_t wanted = pool.nodes.there + std::max(pool.nodes.starting, used) + count;
  if (wanted == before) return;
  const int32_t present = pool.nodes.Present();
  if (wanted <= present && pool.nodes.starting == 0) status.asked.reset();
  if (wanted > present && (wanted > before || !status.asked)) status.asked = cycle.now;
  status.wanted = wanted;
  const Status written = statuses_.Write(cycle, pool);
  if (!written.ok()) {
    status.wanted = before;
    Log(LogLevel::kWarn, "failed to update status of NodePool",
        {{"pool", pool.pool->meta.name}, {"error", written.ToString()}});
    return;
  }
  if (wanted <= std::max(before, present)) return;
  pool.memory->grown = cycle.now;
  Report(events::NodesRequested(*pool.pool, wanted - present,
                                pods.empty() ? "spec.min" : Join(pods, ", ")),
         pool.pool->meta.name, wanted - std::max(before, present), pods, cycle.now);
}

}  // namespace nos::controllers
