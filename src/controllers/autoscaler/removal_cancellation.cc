#include "controllers/autoscaler/removal_cancellation.h"

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

namespace nos::controllers {
namespace {

constexpr std::string_view kCordon = "node.kubernetes.io/unschedulable";

using NodesByName = std::map<std::string, std::shared_ptr<const cluster::Node>>;

std::shared_ptr<const cluster::Node> Uncordoned(const cluster::Node& node) {
  auto open = std::make_shared<cluster::Node>(node);
  open->unschedulable = false;
  std::erase_if(open->taints, [](const cluster::Taint& taint) { return taint.key == kCordon; });
  return open;
}

// The nodes whose pools have certainly not been asked to remove them yet.
NodesByName FindCandidates(const ObservedCluster& cluster) {
  NodesByName candidates;
  for (const auto& node : cluster.nodes) {
    const auto removal = cluster.removals.find(node->meta.name);
    if (removal == cluster.removals.end() || node->meta.deleted) continue;
    const ObservedPool* pool = cluster.Find(removal->second.pool);
    const bool asked = removal->second.state == Removal::State::kAsked;
    const bool may_be_requested = asked && (pool == nullptr || !pool->memory->fresh ||
                                            IsRequested(removal->second, *pool->memory));
    if (!may_be_requested) candidates[node->meta.name] = node;
  }
  return candidates;
}

}  // namespace

bool CancelRemovals(const ScalingCycle& cycle, const ObservedCluster& cluster,
                    const UnschedulablePods& unschedulable, CancellationPlan plan,
                    Relocations& relocations, NodeRemovals& removals) {
  if (unschedulable.pods.empty()) return false;
  // 1. Plan as if all candidates stayed.
  const NodesByName candidates = FindCandidates(cluster);
  if (candidates.empty()) return false;
  cluster::ClusterSnapshot open = plan.snapshot;
  for (const auto& [name, node] : candidates) open.SetNode(Uncordoned(*node));
  plan.options.gangs = unschedulable.gangs;
  const planning::Plan with_all =
      planning::MakePlan(open, unschedulable.pods, plan.frameworks, plan.options);
  // 2. Keep those that the plan uses.
  std::set<std::string> needed;
  for (const planning::PodOutcome& outcome : with_all.pods) {
    if (outcome.placed && candidates.contains(outcome.node)) needed.insert(outcome.node);
  }
  bool stays = false;
  const std::string why = "pending pods fit on it";
  for (const std::string& name : needed) {
    const Removal& removal = cluster.removals.at(name);
    if (removal.state == Removal::State::kEmptying) {
      stays |= relocations.CallOff(name, why, cycle.view, cycle.client, cycle.now);
      continue;
    }
    const ObservedPool* pool = cluster.Find(removal.pool);
    const Status kept =
        removals.Keep(cycle, pool == nullptr ? nullptr : pool->pool, candidates.at(name), why);
    stays |= kept.ok() || kept.code() == Code::kConflict;
  }
  return stays;
}

}  // namespace nos::controllers
