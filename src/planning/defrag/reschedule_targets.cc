#include "planning/defrag/reschedule_targets.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "planning/translation/live_filters.h"

namespace nos::planning {
namespace {

using PodPtr = std::shared_ptr<const cluster::Pod>;

constexpr size_t kMaxTargets = 200;

double Part(int64_t used, int64_t all) {
  return all <= 0 ? 0 : static_cast<double>(used) / static_cast<double>(all);
}

// The used share of the slots of all partitionable GPUs of the node.
double UseOfGpus(const cluster::NodeInfo& node) {
  int64_t used = 0, all = 0;
  for (const cluster::Gpu& gpu : node.gpus.gpus) {
    all += gpu.model->slots();
    for (const cluster::Instance& instance : gpu.instances) {
      if (instance.used) used += gpu.model->profile(instance.placement.profile).slots;
    }
  }
  return Part(used, all);
}

// Compares only resources that do not come from partitioning GPUs.
bool MayTake(const cluster::NodeInfo& node, const cluster::ResourceVector& requests) {
  if (node.node->unschedulable) return false;
  return std::ranges::all_of(requests.entries(), [&](const auto& entry) {
    const auto& [id, amount] = entry;
    return cluster::IsManagedOn(node, id) ||
           node.allocatable.Get(id) - node.requested.Get(id) >= amount;
  });
}

}  // namespace

PodPtr AsPending(const cluster::Pod& pod) {
  auto anew = std::make_shared<cluster::Pod>(pod);
  anew->node_name.clear();
  anew->nominated_node.clear();
  anew->phase = "Pending";
  anew->promised.clear();
  anew->started.reset();
  return anew;
}

Status BindMoved(const Move& move, cluster::ClusterSnapshot& to) {
  auto moved = std::make_shared<cluster::Pod>(*AsPending(*move.pod));
  moved->node_name = move.to;
  moved->phase = move.pod->phase;
  for (const AssignedDevice& device : move.devices) {
    moved->promised.push_back({device.gpu, device.placement, device.model});
  }
  return to.Bind(std::move(moved), move.to);
}

double UseOf(const cluster::NodeInfo& node, std::span<const PodPtr> pods) {
  static const cluster::ResourceId whole = cluster::InternResource(cluster::kWholeGpuResource);
  cluster::ResourceVector asked;
  for (const PodPtr& pod : pods) asked.Add(cluster::RequestsOf(*pod));
  double use = UseOfGpus(node);
  for (const cluster::ResourceId id : {cluster::kCpu, cluster::kMemory, whole}) {
    if (cluster::IsManagedOn(node, id)) continue;
    use = std::max(use, Part(asked.Get(id), node.allocatable.Get(id)));
  }
  return use;
}

cluster::ClusterSnapshot TargetsIn(const cluster::ClusterSnapshot& snapshot,
                                   std::span<const PodPtr> pods,
                                   const scheduling::FrameworkChoice& frameworks) {
  const LivePods live(snapshot, pods, frameworks);
  const bool all = snapshot.size() <= kMaxTargets ||
                   std::ranges::any_of(pods, [&](const PodPtr& pod) { return live.Has(*pod); });
  if (all) return snapshot;
  std::vector<cluster::ResourceVector> asked;
  asked.reserve(pods.size());
  for (const PodPtr& pod : pods) asked.push_back(cluster::RequestsOf(*pod));
  std::vector<std::pair<double, std::string>> order;
  for (size_t n = 0; n < snapshot.size(); ++n) {
    const cluster::NodeInfo& node = snapshot.node(n);
    const bool may_take = std::ranges::any_of(
        asked, [&](const cluster::ResourceVector& requests) { return MayTake(node, requests); });
    if (may_take) order.emplace_back(-UseOf(node, node.pods), node.node->meta.name);
  }
  std::ranges::sort(order);
  if (order.size() > kMaxTargets) order.resize(kMaxTargets);
  std::set<std::string> names;
  for (auto& [use, name] : order) names.insert(std::move(name));
  cluster::ClusterSnapshot targets = snapshot;
  targets.KeepNodes(
      [&](const cluster::NodeInfo& node) { return names.contains(node.node->meta.name); });
  return targets;
}

}  // namespace nos::planning
