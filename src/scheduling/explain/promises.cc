#include "scheduling/explain_promises.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "cluster/annotations.h"
#include "cluster/instance_search.h"
#include "scheduling/framework.h"
#include "scheduling/pod_state.h"

namespace nos::scheduling {

using cluster::NodeInfo;
using cluster::Pod;
using cluster::PromisedInstance;

namespace {

// Requested instances on the node that no pod uses: missing instances first, then free ones.
std::vector<std::pair<PromisedInstance, const gpu::Model*>> Asked(const NodeInfo& node) {
  std::vector<std::pair<PromisedInstance, const gpu::Model*>> made, free;
  for (const cluster::TargetLayout& target : cluster::ReadSpec(*node.node, node.gpus)) {
    const auto gpu = std::ranges::find(node.gpus.gpus, target.index, &cluster::Gpu::index);
    if (gpu == node.gpus.gpus.end()) continue;
    for (const gpu::Placement& placement : target.placements) {
      const auto there =
          std::ranges::find(gpu->instances, placement, &cluster::Instance::placement);
      const bool missing = gpu->model != target.model || there == gpu->instances.end();
      if (!missing && there->used) continue;
      const gpu::Model* switched = gpu->model != target.model ? target.model : nullptr;
      (missing ? made : free).push_back({{target.index, placement, switched}, target.model});
    }
  }
  made.insert(made.end(), free.begin(), free.end());
  return made;
}

}  // namespace

std::optional<std::vector<PromisedInstance>> BeingCreatedFor(
    const Pod& pod, const cluster::ClusterSnapshot& snapshot) {
  const NodeInfo* node = snapshot.Find(pod.nominated_node);
  const bool under_way = node != nullptr && node->gpus.managed &&
                         cluster::SpecPlan(*node->node) != cluster::StatusPlan(*node->node);
  const cluster::ResourceVector requests = cluster::RequestsOf(pod);
  if (!under_way || cluster::HasFreeInstances(*node, requests)) return std::nullopt;
  auto asked = Asked(*node);
  std::vector<PromisedInstance> promised;
  for (const auto& [id, amount] : requests.entries()) {
    if (!cluster::IsManagedOn(*node, id)) continue;
    const std::string& resource = cluster::ResourceName(id);
    for (int64_t i = 0; i < amount; ++i) {
      const auto found = std::ranges::find_if(asked, [&](const auto& one) {
        return one.second->FindProfile(resource) == one.first.placement.profile;
      });
      if (found == asked.end()) return std::nullopt;
      promised.push_back(found->first);
      asked.erase(found);
    }
  }
  return promised.empty() ? std::nullopt : std::optional(std::move(promised));
}

namespace {

bool IsLeft(const cluster::Instance& instance) { return instance.used && instance.pod.empty(); }

}  // namespace

bool IsBehind(const NodeInfo& node) {
  return std::ranges::any_of(node.gpus.gpus, [](const cluster::Gpu& gpu) {
    return std::ranges::any_of(gpu.instances, IsLeft);
  });
}

bool AwaitsAgent(const Framework& framework, const Pod& pod,
                 const cluster::ClusterSnapshot& snapshot) {
  const NodeInfo* node = snapshot.Find(pod.nominated_node);
  if (node == nullptr || !IsBehind(*node)) return false;
  cluster::NodeGpus reported = node->gpus;
  for (cluster::Gpu& gpu : reported.gpus) {
    for (cluster::Instance& instance : gpu.instances) {
      if (IsLeft(instance)) instance = {instance.placement};
    }
  }
  cluster::ClusterSnapshot after = snapshot;
  return after.SetGpus(pod.nominated_node, std::move(reported)).ok() &&
         FitsOn(framework, pod, pod.nominated_node, after);
}

bool FitsOn(const Framework& framework, const Pod& pod, std::string_view node,
            const cluster::ClusterSnapshot& snapshot) {
  const NodeInfo* there = snapshot.Find(node);
  const Cycle cycle = framework.PreFilter(pod, snapshot);
  return there != nullptr && cycle.verdict.fits() &&
         (!cycle.nodes || cycle.nodes->contains(there->node->meta.name)) &&
         framework.Filter(cycle, pod, *there).fits();
}

cluster::ClusterSnapshot WithPromises(const cluster::ClusterSnapshot& snapshot, Pods pods,
                                      const Pod& pod, FunctionRef<bool(const Pod&)> goes_first,
                                      const std::set<std::string>& except) {
  cluster::ClusterSnapshot with = snapshot;
  std::vector<std::shared_ptr<const Pod>> first;
  for (const auto& other : pods) {
    const bool nominated = IsPending(*other) && !other->nominated_node.empty();
    if (!nominated || other->Key() == pod.Key() || except.contains(other->Key())) continue;
    if (auto promised = BeingCreatedFor(*other, with)) {
      auto holds = std::make_shared<Pod>(*other);
      holds->promised = *std::move(promised);
      (void)with.Bind(std::move(holds), other->nominated_node);  // the node exists
    } else if (goes_first(*other)) {
      first.push_back(other);
    }
  }
  // Bound after pods whose instances are being created, so that these keep them.
  // Fails if the node does not exist.
  for (const auto& other : first) (void)with.Bind(other, other->nominated_node);
  return with;
}

}  // namespace nos::scheduling
