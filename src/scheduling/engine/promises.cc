#include "scheduling/engine/promises.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "cluster/instance_search.h"
#include "scheduling/framework.h"

namespace nos::scheduling {
namespace {

using PodPtr = std::shared_ptr<const cluster::Pod>;

// Binds the pod to the node. If no instance of its profile is free, the pod gets the instances that
// are to be created for it there: without them the instances that they replace would count as free.
// Returns true if these have room only in place of pods that leave, or after the node's present
// plan. REQUIRES: the node exists.
bool BindWithInstances(const PodPtr& pod, const std::string& name,
                       cluster::ClusterSnapshot& snapshot) {
  const cluster::NodeInfo& node = *snapshot.Find(name);
  const cluster::ResourceVector requests = cluster::RequestsOf(*pod);
  const bool wants =
      node.gpus.managed && pod->promised.empty() && !cluster::HasFreeInstances(node, requests);
  auto instances = wants ? cluster::FindInstances(node, requests) : std::nullopt;
  bool awaits_leavers = false;
  if (wants && !instances) {
    cluster::ClusterSnapshot later = snapshot;
    if (auto done = cluster::WithoutPlan(node.node); done != node.node) {
      later.SetNode(std::move(done));
    }
    (void)later.SetGpus(name, cluster::WithoutLeavers(node));
    instances = cluster::FindInstances(*later.Find(name), requests);
    if (instances) {
      snapshot = std::move(later);
      awaits_leavers = true;
    }
  }
  if (!instances || instances->empty()) {
    (void)snapshot.Bind(pod, name);
    return false;
  }
  auto with = std::make_shared<cluster::Pod>(*pod);
  with->promised = *std::move(instances);
  (void)snapshot.Bind(std::move(with), name);
  return awaits_leavers;
}

// True if the pod would get an instance for this resource from a GPU that others wait for, or if
// the kubelet might choose one of such a GPU. `later`: the GPUs once the others have their
// instances.
bool MayTakeFromAwaited(cluster::ResourceId id, const std::vector<cluster::Gpu>& now,
                        const std::vector<cluster::Gpu>& later) {
  bool some_free = false;
  for (const cluster::Gpu& gpu : now) {
    const bool free = std::ranges::any_of(gpu.instances, [&](const cluster::Instance& instance) {
      const auto& profile = gpu.model->profile(instance.placement.profile);
      return !instance.used && cluster::InternResource(profile.resource_name) == id;
    });
    const auto then = std::ranges::find(later, gpu.index, &cluster::Gpu::index);
    if (free && (then == later.end() || *then != gpu)) return true;
    some_free |= free;
  }
  return !some_free;
}

}  // namespace

SnapshotWithCycle WithOthers(const Framework& framework, const cluster::ClusterSnapshot& snapshot,
                             const Cycle& cycle, const cluster::Pod& pod, Pods others,
                             const cluster::NodeInfo& node) {
  SnapshotWithCycle with{snapshot, cycle, false};
  const std::string& name = node.node->meta.name;
  const auto touch = [](std::string_view, std::string_view) {};
  bool follows = true;
  for (const PodPtr& other : others) {
    with.awaits_leavers |= BindWithInstances(other, name, with.snapshot);
    for (const PreFilterPlugin* plugin : framework.pre_filters()) {
      follows = follows && plugin->Update(pod, *other, true, *with.snapshot.Find(name),
                                          with.cycle.state, touch);
    }
  }
  if (!follows) with.cycle = framework.PreFilter(pod, with.snapshot);
  return with;
}

std::optional<Verdict> WhyHeldForOthers(const cluster::Pod& pod, const cluster::NodeInfo& node,
                                        const SnapshotWithCycle& with) {
  const cluster::NodeInfo& beside = *with.snapshot.Find(node.node->meta.name);
  const cluster::ResourceVector requests = cluster::RequestsOf(pod);
  for (const auto& [id, amount] : requests.entries()) {
    if (amount <= 0 || !cluster::IsManagedOn(node, id)) continue;
    const bool takes_free = amount <= node.allocatable.Get(id) - node.requested.Get(id);
    const bool some_go = beside.allocatable.Get(id) < node.allocatable.Get(id);
    const bool awaited =
        with.awaits_leavers && MayTakeFromAwaited(id, node.gpus.gpus, beside.gpus.gpus);
    if (!awaited && (!takes_free || !some_go)) continue;
    Reason reason = Insufficient(id);
    return Verdict::Unschedulable(std::move(reason.code), std::move(reason.message));
  }
  return std::nullopt;
}

std::optional<Verdict> WhyHeldForPrepared(const cluster::ResourceVector& requests,
                                          const cluster::NodeInfo& node) {
  if (!node.gpus.managed) return std::nullopt;
  for (const auto& [id, amount] : requests.entries()) {
    if (amount <= 0 || !cluster::IsManagedOn(node, id)) continue;
    const int64_t stays = node.allocatable.Get(id);
    if (amount > stays - node.requested.Get(id)) continue;
    const auto offered = node.node->allocatable.find(cluster::ResourceName(id));
    if (offered == node.node->allocatable.end() || offered->second.Value() <= stays) continue;
    const bool prepared = std::ranges::any_of(
        node.pods, [](const PodPtr& other) { return !other->promised.empty(); });
    if (!prepared) return std::nullopt;
    Reason reason = Insufficient(id);
    return Verdict::Unschedulable(std::move(reason.code), std::move(reason.message));
  }
  return std::nullopt;
}

Verdict FilterBeside(const Framework& framework, const cluster::ClusterSnapshot& snapshot,
                     const Cycle& cycle, const cluster::Pod& pod, const cluster::NodeInfo& node,
                     const Promises& promises) {
  const auto others = promises.find(node.node->meta.name);
  if (others != promises.end()) {
    const SnapshotWithCycle with =
        WithOthers(framework, snapshot, cycle, pod, others->second, node);
    Verdict verdict = framework.Filter(with.cycle, pod, *with.snapshot.Find(others->first));
    if (!verdict.fits()) return verdict;
    if (auto held = WhyHeldForOthers(pod, node, with)) return *held;
  }
  return framework.Filter(cycle, pod, node);
}

}  // namespace nos::scheduling
