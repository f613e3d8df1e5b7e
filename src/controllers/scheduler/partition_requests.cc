#include "controllers/scheduler/partition_requests.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "cluster/annotations.h"
#include "reconcile/node_write.h"
#include "reconcile/plan_result.h"

namespace nos::controllers {
namespace {

using cluster::Gpu;
using cluster::NodeInfo;
using scheduling::Progress;

// Consecutive writes of a node that were not answered.
constexpr int kMaxDoubts = 5;

std::vector<gpu::Placement> PlacementsOf(const Gpu& gpu) {
  std::vector<gpu::Placement> placements;
  placements.reserve(gpu.instances.size());
  for (const cluster::Instance& instance : gpu.instances) placements.push_back(instance.placement);
  std::ranges::sort(placements);
  return placements;
}

const Gpu* FindGpu(const cluster::NodeGpus& gpus, int index) {
  const auto found = std::ranges::find(gpus.gpus, index, &Gpu::index);
  return found == gpus.gpus.end() ? nullptr : &*found;
}

// The wanted layout of each GPU where it differs from what exists or from what was requested.
std::vector<cluster::TargetLayout> TargetsOf(const NodeInfo& node,
                                             const cluster::NodeGpus& status) {
  const std::vector<cluster::TargetLayout> asked = cluster::ReadSpec(*node.node, status);
  std::vector<cluster::TargetLayout> targets;
  for (const Gpu& gpu : node.gpus.gpus) {
    const Gpu* there = FindGpu(status, gpu.index);
    if (there == nullptr || !there->reported) continue;
    const std::vector<gpu::Placement> wanted = PlacementsOf(gpu);
    const auto before = std::ranges::find(asked, gpu.index, &cluster::TargetLayout::index);
    std::vector<gpu::Placement> present = PlacementsOf(*there);
    const gpu::Model* model = there->model;
    if (before != asked.end()) {
      present = before->placements;
      std::ranges::sort(present);
      model = before->model;
    }
    if (present != wanted || model != gpu.model) targets.push_back({gpu.index, gpu.model, wanted});
  }
  return targets;
}

// Compares plan ids, which are decimal numbers without leading zeros.
bool IsAtLeast(const std::string& plan, const std::string& other) {
  return plan.size() != other.size() ? plan.size() > other.size() : plan >= other;
}

}  // namespace

void PartitionRequests::Want(const std::string& node, const cluster::Pod& pod, Time now) {
  Site& site = sites_[node];
  const Wish wish{now + options_.deadline, "", Status::Ok()};
  if (site.wishes.try_emplace(pod.Key(), wish).second) site.dirty = true;  // else it was adopted
}

bool PartitionRequests::Adopt(const cluster::Node& node, const cluster::Pod& pod, Time now) {
  const std::string plan = cluster::SpecPlan(node);
  const auto [found, fresh] = sites_.try_emplace(node.meta.name);
  Site& site = found->second;
  if (!fresh && (site.dirty || site.writing || site.adopted != plan)) return false;
  site.adopted = site.last_plan = plan;
  site.wishes[pod.Key()] = {now + options_.deadline, plan, Status::Ok()};
  return true;
}

bool PartitionRequests::AreShown(const cluster::ClusterSnapshot& snapshot) const {
  return std::ranges::all_of(sites_, [&](const auto& entry) {
    const auto& [name, site] = entry;
    const NodeInfo* info = snapshot.Find(name);
    return info == nullptr ||
           (!site.writing && IsAtLeast(cluster::SpecPlan(*info->node), site.last_plan));
  });
}

void PartitionRequests::Drop(const std::string& node, const cluster::Pod& pod, End end) {
  const auto found = sites_.find(node);
  if (found == sites_.end() || found->second.wishes.erase(pod.Key()) == 0) return;
  if (end == End::kGivenUp) found->second.dirty = true;
}

std::vector<PartitionWrite> PartitionRequests::Due(const cluster::ClusterSnapshot& snapshot,
                                                   const FindNode& find) {
  std::vector<PartitionWrite> writes;
  for (auto it = sites_.begin(); it != sites_.end();) {
    auto& [name, site] = *it;
    // The usual case while agents work.
    if (site.writing || (!site.dirty && !site.wishes.empty())) {
      ++it;
      continue;
    }
    const NodeInfo* info = snapshot.Find(name);
    const auto node = find(name);
    const bool there = info != nullptr && node != nullptr;
    if (there && site.dirty && node->meta.resource_version != site.refused) {
      if (auto write = WriteFor(*info, *node, site)) writes.push_back(std::move(*write));
    }
    const bool settled =
        there && !site.dirty && cluster::SpecPlan(*node) == cluster::StatusPlan(*node);
    const bool idle = site.wishes.empty() && !site.writing && (settled || !there);
    it = idle ? sites_.erase(it) : std::next(it);
  }
  return writes;
}

std::optional<PartitionWrite> PartitionRequests::WriteFor(const NodeInfo& info,
                                                          const cluster::Node& node, Site& site) {
  const std::string spec = cluster::SpecPlan(node);
  const bool foreign = spec != cluster::StatusPlan(node) && spec != site.last_plan;
  site.dirty = false;
  if (foreign) {  // writing would overwrite the other plan
    for (auto& [key, wish] : site.wishes) {
      if (wish.plan.empty()) {
        wish.failed = Status(Code::kConflict, fmt::format("plan {} is under way there", spec));
      }
    }
    return std::nullopt;
  }
  ReadStatus(info, site);
  const std::vector<cluster::TargetLayout> targets = TargetsOf(info, site.status);
  if (targets.empty()) {
    for (auto& [key, wish] : site.wishes) {
      if (wish.plan.empty()) wish.plan = spec;
    }
    return std::nullopt;
  }
  PartitionWrite write{
      node.meta.name, node.meta.resource_version, reconcile::NextPlanId(node), {}, {}};
  write.patch = cluster::SpecPatch(node, targets, write.plan);
  for (const auto& [key, wish] : site.wishes) write.pods.insert(key);
  site.writing = true;
  return write;
}

void PartitionRequests::Written(const PartitionWrite& write, const Status& answer) {
  const auto found = sites_.find(write.node);
  if (found == sites_.end()) return;
  Site& site = found->second;
  site.writing = false;
  const bool perhaps = answer.code() == Code::kDeadline || answer.code() == Code::kUnavailable;
  if (answer.ok() || perhaps) site.last_plan = write.plan;
  if (answer.code() == Code::kConflict) {
    site.refused = write.resource_version;
    site.dirty = true;
    return;
  }
  // Writes again: giving up would hand the capacity freed for this pod to others.
  site.doubts = perhaps ? site.doubts + 1 : 0;
  if (perhaps && site.doubts <= kMaxDoubts) {
    site.dirty = true;
    return;
  }
  for (const std::string& key : write.pods) {
    const auto wish = site.wishes.find(key);
    if (wish == site.wishes.end()) continue;
    if (!answer.ok()) {
      wish->second.failed = answer;
    } else if (wish->second.plan.empty()) {
      wish->second.plan = write.plan;
    }
  }
}

std::map<int, std::string> PartitionRequests::Missing(const cluster::Pod& pod, const NodeInfo& node,
                                                      Site& site) const {
  ReadStatus(node, site);
  const std::string key = pod.Key();
  std::map<int, std::string> missing;
  for (const Gpu& gpu : node.gpus.gpus) {
    const Gpu* there = FindGpu(site.status, gpu.index);
    for (const cluster::Instance& instance : gpu.instances) {
      if (instance.pod != key) continue;
      const bool shown = there != nullptr && there->model == gpu.model &&
                         std::ranges::find(there->instances, instance.placement,
                                           &cluster::Instance::placement) != there->instances.end();
      if (shown) continue;
      std::string& names = missing[gpu.index];
      if (!names.empty()) names += ",";
      names += gpu.model->PlacementName(instance.placement);
    }
  }
  return missing;
}

Progress PartitionRequests::Look(const cluster::Pod& pod, const NodeInfo& node, Time now) {
  const auto site = sites_.find(node.node->meta.name);
  if (site == sites_.end()) return {};
  const auto found = site->second.wishes.find(pod.Key());
  if (found == site->second.wishes.end()) return {};
  const Wish& wish = found->second;
  if (!wish.failed.ok()) {
    return {Progress::Kind::kFailed, scheduling::codes::kPartitioningFailed,
            fmt::format("its layout could not be requested: {}", wish.failed.ToString())};
  }
  const std::map<int, std::string> missing = Missing(pod, node, site->second);
  if (missing.empty() && IsAllocatable(pod, node, site->second)) return {};
  return ProgressOf(node, wish, missing, now);
}

// True if the kubelet offers enough for the pod in addition to what other pods hold or were
// assigned.
bool PartitionRequests::IsAllocatable(const cluster::Pod& pod, const NodeInfo& node,
                                      const Site& site) {
  const cluster::ResourceVector requests = cluster::RequestsOf(pod);
  for (const auto& [id, amount] : requests.entries()) {
    if (!cluster::IsManagedOn(node, id)) continue;
    int64_t held = 0;
    for (const auto& other : node.pods) {
      if (site.wishes.contains(other->Key())) continue;
      held += cluster::RequestsOf(*other).Get(id);
    }
    if (reconcile::AllocatableOf(*node.node, cluster::ResourceName(id)) < held + amount)
      return false;
  }
  return true;
}

Progress PartitionRequests::ProgressOf(const NodeInfo& node, const Wish& wish,
                                       const std::map<int, std::string>& missing, Time now) {
  const std::string& name = node.node->meta.name;
  const std::string plan = cluster::StatusPlan(*node.node);
  const bool decided = !wish.plan.empty() && !plan.empty() && IsAtLeast(plan, wish.plan) &&
                       plan == cluster::SpecPlan(*node.node);
  std::string what;
  for (const auto& [gpu, instances] : missing) {
    what += fmt::format("{}{} of GPU {}", what.empty() ? "" : ", ", instances, gpu);
  }
  if (decided && !missing.empty()) {
    for (const auto& [gpu, instances] : missing) LetRest(name, gpu, now);
    std::string why = "its agent did not say why";
    const auto text = node.node->meta.annotations.find(cluster::kPlanResult);
    if (text != node.node->meta.annotations.end()) {
      const auto result = reconcile::ReadPlanResult(text->second);
      if (result.ok() && !result->obstacles.empty()) why = reconcile::Describe(result->obstacles);
    }
    return {Progress::Kind::kFailed, scheduling::codes::kPartitioningFailed,
            fmt::format("failed to partition {}: {}", what, why)};
  }
  if (now >= wish.until) {
    return {Progress::Kind::kFailed, scheduling::codes::kPartitioningFailed,
            missing.empty()
                ? std::string("its slices exist, but the kubelet does not offer them; inspect the "
                              "node's device plugin")
                : fmt::format("the node's agent has not created {} in {}; inspect the agent's pod",
                              what, FormatAge(options_.deadline))};
  }
  Progress progress{
      Progress::Kind::kWaits, scheduling::codes::kPartitioningGpus, "", wish.until, {}};
  progress.message = missing.empty() ? "the kubelet is about to offer its slices"
                                     : fmt::format("{} is being created", what);
  return progress;
}

void PartitionRequests::ReadStatus(const NodeInfo& node, Site& site) const {
  if (site.seen == node.node) return;
  site.status = cluster::ReadNodeGpus(*node.node, catalogue_);
  site.seen = node.node;
}

void PartitionRequests::LetRest(const std::string& node, int gpu, Time now) {
  if (rests_.Resting({node, gpu}, now)) return;
  rests_.FailedWithReset({node, gpu}, now);
  rest_changes_.insert(node);
}

std::set<int> PartitionRequests::Resting(const std::string& node, Time now) const {
  std::set<int> resting;
  const auto& rests = rests_.entries();
  for (auto it = rests.lower_bound({node, 0}); it != rests.end() && it->first.first == node; ++it) {
    if (it->second.until > now) resting.insert(it->first.second);
  }
  return resting;
}

std::vector<std::string> PartitionRequests::TakeRestChanges(Time now) {
  for (const auto& [node, gpu] : rests_.TakeEnded(now)) rest_changes_.insert(node);
  std::vector<std::string> changes(rest_changes_.begin(), rest_changes_.end());
  rest_changes_.clear();
  return changes;
}

}  // namespace nos::controllers
