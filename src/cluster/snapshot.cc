#include "cluster/snapshot.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "cluster/snapshot/assign_instances.h"
#include "gpu/shares.h"

namespace nos::cluster {
namespace {

using Nodes = std::vector<std::shared_ptr<const Node>>;
using Pods = std::vector<std::shared_ptr<const Pod>>;

bool HasAffinity(const Pod& pod) {
  return !pod.pod_affinity.empty() || !pod.pod_anti_affinity.empty();
}

// Adds (or subtracts) everything except the pod's GPU instances.
void Count(const Pod& pod, const ResourceVector& requests, int sign, NodeInfo& info) {
  if (sign > 0) {
    info.requested.Add(requests);
  } else {
    info.requested.Subtract(requests);
  }
  info.scored.Add(ScoredRequestsOf(pod), sign);
  sign > 0 ? AddPorts(HostPortsOf(pod), info.ports) : RemovePorts(HostPortsOf(pod), info.ports);
  if (HasAffinity(pod)) info.with_affinity += sign;
  if (!pod.pod_anti_affinity.required.empty()) info.with_required_anti_affinity += sign;
}

// A saturated sum cannot be subtracted from. The sum of kUnknownResource cannot either: the
// resource may have an id by now. Both are summed up again from the remaining pods.
void TakeOff(Pods::iterator at, NodeInfo& info) {
  const std::shared_ptr<const Pod> pod = std::move(*at);
  const bool forgotten = info.requested.HasStopped() || info.scored.HasStopped() ||
                         info.requested.Get(kUnknownResource) != 0;
  info.pods.erase(at);
  Count(*pod, RequestsOf(*pod), -1, info);
  if (!forgotten) return;
  info.requested = {};
  info.scored = {};
  for (const auto& other : info.pods) {
    info.requested.Add(RequestsOf(*other));
    info.scored.Add(ScoredRequestsOf(*other));
  }
}

// Sets allocatable of what nos creates here to what the node's pods may hold. Instances that pods
// left, and that the agent does not report as free yet, do not count. Nominated instances count
// although they may not exist yet; the kubelet's allocatable may be too low while they do not.
void CountAvailable(NodeInfo& info) {
  std::set<std::string> owners;
  for (const auto& pod : info.pods) {
    if (!pod->promised.empty()) owners.insert(pod->Key());
  }
  struct Counts {
    int64_t all = 0, nominated = 0, left = 0;
  };
  std::map<ResourceId, Counts> counts;
  const ResourceVector reported = ResourceVector::From(info.node->allocatable);
  for (const auto& [id, amount] : reported.entries()) {
    if (IsManagedOn(info, id)) counts[id] = {};
  }
  bool any_left = false;
  for (const Gpu& gpu : info.gpus.gpus) {
    for (const Instance& instance : gpu.instances) {
      const auto& profile = gpu.model->profile(instance.placement.profile);
      Counts& count = counts[InternResource(profile.resource_name)];
      ++count.all;
      if (owners.contains(instance.pod)) ++count.nominated;
      if (instance.left) ++count.left;
      any_left |= instance.left;
    }
  }
  if (owners.empty() && !any_left) return;
  for (const auto& [id, count] : counts) {
    const int64_t existing = std::min(reported.Get(id), count.all - count.nominated);
    const int64_t total = owners.empty() ? reported.Get(id) : existing + count.nominated;
    info.allocatable.Set(id, std::max<int64_t>(0, total - count.left));
  }
}

void AddPod(std::shared_ptr<const Pod> pod, Prefer prefer, WantedLayouts& wanted, NodeInfo& info) {
  const ResourceVector requests = RequestsOf(*pod);
  AssignInstances(*pod, requests, prefer, wanted, info);
  Count(*pod, requests, 1, info);
  info.pods.push_back(std::move(pod));
}

// Sorts by name; among equal names only the last stays.
template <typename T, typename Less>
void SortUnique(std::vector<T>& items, Less less) {
  std::stable_sort(items.begin(), items.end(), less);
  const auto first_kept = std::unique(items.rbegin(), items.rend(), [&](const T& a, const T& b) {
    return !less(a, b) && !less(b, a);
  });
  items.erase(items.begin(), first_kept.base());
}

// GPUs without a known instance. The device plugin may allocate such a GPU whole, as
// nvidia.com/gpu: its MIG mode may be off, which the status does not show.
std::set<int> PerhapsWhole(const NodeGpus& gpus) {
  std::set<int> indexes;
  for (const Gpu& gpu : gpus.gpus) {
    if (gpu.instances.empty()) indexes.insert(gpu.index);
  }
  return indexes;
}

// A GPU in `perhaps_whole` may be allocated whole or be repartitioned, but not both. While pods
// hold whole GPUs, no GPU that they may hold is repartitioned. Agents do not report GPUs that a pod
// holds whole. If enough GPUs are unreported, those are the held ones and the others are free;
// otherwise any GPU may be one of those held. GPUs that may be repartitioned do not count as
// allocatable whole GPUs.
void SeparateWholeGpus(const std::set<int>& perhaps_whole, NodeInfo& info) {
  static const ResourceId whole = InternResource(kWholeGpuResource);
  const int64_t held = info.requested.Get(whole);
  const int64_t allocatable = info.allocatable.Get(whole);
  auto partitionable = static_cast<int64_t>(perhaps_whole.size());
  if (held > 0) {
    const auto unreported = static_cast<int64_t>(
        std::erase_if(info.gpus.gpus, [](const Gpu& gpu) { return !gpu.reported; }));
    const bool all_found = held <= unreported;
    for (Gpu& gpu : info.gpus.gpus) gpu.fixed |= !all_found && perhaps_whole.contains(gpu.index);
    const int64_t left_alone = all_found ? unreported : partitionable;
    partitionable -= left_alone;
    if (left_alone > 0) {
      info.gpus.problems.push_back(fmt::format(
          "pods hold whole GPUs here ({}: {}): the {} that may be theirs are not partitioned",
          kWholeGpuResource, held, left_alone));
    }
  }
  if (allocatable > held && partitionable > 0) {
    const int64_t left = std::max(held, allocatable - partitionable);
    info.allocatable.Set(whole, left);
    info.gpus.problems.push_back(
        fmt::format("{} of its {} GPUs can serve pods that request {}: nos may partition the {} "
                    "without a known instance",
                    left, allocatable, kWholeGpuResource, partitionable));
  }
}

NodeInfo MakeNode(std::shared_ptr<const Node> node, Pods pods, const gpu::Catalogue& catalogue) {
  // 1. Read the node's GPUs. Which of them may be whole is decided before pods are assigned
  //    instances, because that adds assumed ones.
  NodeInfo info;
  info.gpus = ReadNodeGpus(*node, catalogue);
  const std::set<int> perhaps_whole = PerhapsWhole(info.gpus);
  info.allocatable = ResourceVector::From(node->allocatable);
  info.node = std::move(node);
  // 2. Assign instances to pods, in a fixed order for reproducible assumptions. Pods that hold
  //    existing instances choose before pods with nominated ones.
  SortUnique(pods, [](const auto& a, const auto& b) {
    return a->meta.ns != b->meta.ns ? a->meta.ns < b->meta.ns : a->meta.name < b->meta.name;
  });
  MarkLeft(pods, info.gpus);
  info.pods.reserve(pods.size());
  std::ranges::stable_partition(pods, [](const auto& pod) { return pod->promised.empty(); });
  WantedLayouts wanted;
  for (auto& pod : pods) AddPod(std::move(pod), Prefer::kUsed, wanted, info);
  // 3. Mark GPUs that must not be repartitioned, and adjust allocatable: both need the pods' sums.
  if (!info.gpus.whole) SeparateWholeGpus(perhaps_whole, info);
  for (Gpu& gpu : info.gpus.gpus) gpu.fixed |= info.node->resting_gpus.contains(gpu.index);
  CountAvailable(info);
  return info;
}

}  // namespace

namespace {

// Gives ids to all slice names before pods can use up the ids for unknown names.
void InternSlices(const gpu::Catalogue& catalogue) {
  const auto intern = [](const gpu::Model& model) {
    for (const gpu::Profile& profile : model.profiles()) InternResource(profile.resource_name);
  };
  for (const auto& model : catalogue.models()) intern(*model);
  static const bool shares =
      (intern(gpu::SharesOf(gpu::kMaxShareGib)), InternResource(gpu::kWholeGpu),
       InternResource(gpu::kTimeSlice), true);
  static_cast<void>(shares);
}

}  // namespace

bool IsManagedOn(const NodeInfo& node, ResourceId id) {
  static const ResourceId whole = InternResource(kWholeGpuResource);
  return node.gpus.managed && (IsSliceResource(id) || (node.gpus.whole && id == whole));
}

ClusterSnapshot ClusterSnapshot::Build(const Nodes& nodes, const Pods& pods,
                                       const gpu::Catalogue& catalogue) {
  InternSlices(catalogue);
  Nodes sorted = nodes;
  SortUnique(sorted, [](const auto& a, const auto& b) { return a->meta.name < b->meta.name; });
  ClusterSnapshot snapshot;
  snapshot.catalogue_ = &catalogue;
  Index index;
  for (size_t i = 0; i < sorted.size(); ++i) index[sorted[i]->meta.name] = i;
  std::vector<Pods> bound(sorted.size());
  for (const auto& pod : pods) {
    if (pod->node_name.empty() || pod->Finished()) continue;
    const auto it = index.find(pod->node_name);
    if (it != index.end()) bound[it->second].push_back(pod);
  }
  std::vector<std::shared_ptr<const NodeInfo>> infos;
  infos.reserve(sorted.size());
  for (size_t i = 0; i < sorted.size(); ++i) {
    infos.push_back(
        std::make_shared<const NodeInfo>(MakeNode(sorted[i], std::move(bound[i]), catalogue)));
  }
  snapshot.Arrange(std::move(infos));
  return snapshot;
}

// REQUIRES: sorted by name.
void ClusterSnapshot::Arrange(std::vector<std::shared_ptr<const NodeInfo>> infos) {
  size_ = infos.size();
  Index index;
  Pages pages;
  for (size_t first = 0; first < infos.size(); first += kPageSize) {
    auto page = std::make_shared<Page>();
    for (size_t i = first; i < std::min(first + kPageSize, infos.size()); ++i) {
      index[infos[i]->node->meta.name] = i;
      (*page)[i - first] = std::move(infos[i]);
    }
    pages.push_back(std::move(page));
  }
  pages_ = std::make_shared<Pages>(std::move(pages));
  index_ = std::make_shared<Index>(std::move(index));
}

std::vector<std::shared_ptr<const NodeInfo>> ClusterSnapshot::Infos() const {
  std::vector<std::shared_ptr<const NodeInfo>> infos;
  infos.reserve(size_ + 1);
  for (size_t i = 0; i < size_; ++i) infos.push_back((*(*pages_)[i / kPageSize])[i % kPageSize]);
  return infos;
}

ClusterContext& ClusterSnapshot::ChangeContext(bool counts) {
  context_version_ += counts ? 1 : 0;
  if (context_ == nullptr) {
    context_ = std::make_shared<ClusterContext>();
  } else if (context_.use_count() > 1) {
    context_ = std::make_shared<ClusterContext>(*context_);
  }
  return *context_;
}

void ClusterSnapshot::SetNode(std::shared_ptr<const Node> node) {
  const std::string& name = node->meta.name;
  if (const auto i = IndexOf(name)) {
    return Replace(*i, MakeNode(std::move(node), this->node(*i).pods, catalogue()));
  }
  auto info = std::make_shared<const NodeInfo>(MakeNode(node, {}, catalogue()));
  if (size_ > 0 && this->node(size_ - 1).node->meta.name < name) return Append(std::move(info));
  std::vector<std::shared_ptr<const NodeInfo>> infos = Infos();
  const auto at = std::lower_bound(
      infos.begin(), infos.end(), name,
      [](const auto& other, const std::string& wanted) { return other->node->meta.name < wanted; });
  infos.insert(at, std::move(info));
  Arrange(std::move(infos));
}

void ClusterSnapshot::AddNodes(const Nodes& nodes) {
  std::vector<std::shared_ptr<const NodeInfo>> infos = Infos();
  infos.reserve(infos.size() + nodes.size());
  for (const auto& node : nodes) {
    infos.push_back(std::make_shared<const NodeInfo>(MakeNode(node, {}, catalogue())));
  }
  std::ranges::sort(infos, {},
                    [](const auto& info) -> const std::string& { return info->node->meta.name; });
  Arrange(std::move(infos));
}

void ClusterSnapshot::RemoveNode(std::string_view name) {
  KeepNodes([&](const NodeInfo& info) { return info.node->meta.name != name; });
}

void ClusterSnapshot::KeepNodes(FunctionRef<bool(const NodeInfo&)> keep) {
  std::vector<std::shared_ptr<const NodeInfo>> infos = Infos();
  std::erase_if(infos, [&](const auto& info) { return !keep(*info); });
  Arrange(std::move(infos));
}

const NodeInfo* ClusterSnapshot::Find(std::string_view name) const {
  const auto i = IndexOf(name);
  return i ? &node(*i) : nullptr;
}

std::shared_ptr<const NodeInfo> ClusterSnapshot::Share(std::string_view name) const {
  const auto i = IndexOf(name);
  return i ? (*(*pages_)[*i / kPageSize])[*i % kPageSize] : nullptr;
}

Status ClusterSnapshot::Bind(std::shared_ptr<const Pod> pod, std::string_view name) {
  const auto i = IndexOf(name);
  if (!i) return NotFound(fmt::format("node \"{}\" is not in the snapshot", name));
  NodeInfo info = node(*i);
  WantedLayouts wanted;
  AddPod(std::move(pod), Prefer::kFree, wanted, info);
  CountAvailable(info);
  Replace(*i, std::move(info));
  return Status::Ok();
}

namespace {

bool SameName(const Pod& a, const Pod& b) {
  return a.meta.name == b.meta.name && a.meta.ns == b.meta.ns;
}

// True if replacing `a` by `b` leaves the NodeInfo unchanged.
bool CountsAlike(const Pod& a, const Pod& b) {
  return RequestsOf(a) == RequestsOf(b) && ScoredRequestsOf(a) == ScoredRequestsOf(b) &&
         HasAffinity(a) == HasAffinity(b) && a.promised == b.promised &&
         a.pod_anti_affinity.required.empty() == b.pod_anti_affinity.required.empty();
}

}  // namespace

Status ClusterSnapshot::Unbind(const Pod& pod, std::string_view name) {
  const auto i = IndexOf(name);
  if (!i) return NotFound(fmt::format("node \"{}\" is not in the snapshot", name));
  const auto at = std::find_if(node(*i).pods.begin(), node(*i).pods.end(),
                               [&](const auto& there) { return SameName(*there, pod); });
  if (at == node(*i).pods.end()) {
    return NotFound(fmt::format("pod {} is not on node \"{}\"", pod.Key(), name));
  }
  const auto offset = at - node(*i).pods.begin();
  if (node(*i).gpus.managed) {  // the instances of a pod depend on all pods of the node
    Pods pods = node(*i).pods;
    pods.erase(pods.begin() + offset);
    Replace(*i, MakeNode(node(*i).node, std::move(pods), catalogue()));
    return Status::Ok();
  }
  NodeInfo info = node(*i);
  TakeOff(info.pods.begin() + offset, info);
  Replace(*i, std::move(info));
  return Status::Ok();
}

Result<std::vector<PromisedInstance>> ClusterSnapshot::Vacate(const Pod& pod,
                                                              std::string_view name) {
  const auto i = IndexOf(name);
  if (!i) return NotFound(fmt::format("node \"{}\" is not in the snapshot", name));
  NodeInfo info = node(*i);
  const auto at =
      std::ranges::find_if(info.pods, [&](const auto& there) { return SameName(*there, pod); });
  if (at == info.pods.end()) {
    return NotFound(fmt::format("pod {} is not on node \"{}\"", pod.Key(), name));
  }
  const ResourceVector reported = ResourceVector::From(info.node->allocatable);
  std::vector<PromisedInstance> held;
  for (Gpu& gpu : info.gpus.gpus) {
    for (Instance& instance : gpu.instances) {
      if (instance.pod != pod.Key()) continue;
      held.push_back({gpu.index, instance.placement});
      instance.used = false;
      instance.pod.clear();
    }
  }
  if (!(*at)->promised.empty()) {  // the nominations of other pods are counted again
    for (const auto& [id, amount] : node(*i).allocatable.entries()) {
      if (IsManagedOn(info, id)) info.allocatable.Set(id, reported.Get(id));
    }
  }
  TakeOff(at, info);
  CountAvailable(info);
  Replace(*i, std::move(info));
  return held;
}

Status ClusterSnapshot::Return(std::shared_ptr<const Pod> pod, std::string_view name,
                               const std::vector<PromisedInstance>& held) {
  const auto i = IndexOf(name);
  if (!i) return NotFound(fmt::format("node \"{}\" is not in the snapshot", name));
  NodeInfo info = node(*i);
  for (const PromisedInstance& place : held) {
    for (Gpu& gpu : info.gpus.gpus) {
      const auto there = std::ranges::find(gpu.instances, place.placement, &Instance::placement);
      if (gpu.index != place.gpu || there == gpu.instances.end()) continue;
      there->used = true;
      there->pod = pod->Key();
    }
  }
  WantedLayouts wanted;
  AddPod(std::move(pod), Prefer::kFree, wanted, info);
  CountAvailable(info);
  Replace(*i, std::move(info));
  return Status::Ok();
}

Status ClusterSnapshot::UpdatePod(std::shared_ptr<const Pod> pod) {
  const auto i = IndexOf(pod->node_name);
  if (!i) return NotFound(fmt::format("node \"{}\" is not in the snapshot", pod->node_name));
  NodeInfo info = node(*i);
  const auto at = std::find_if(info.pods.begin(), info.pods.end(),
                               [&](const auto& there) { return SameName(*there, *pod); });
  if (at == info.pods.end()) {
    return NotFound(fmt::format("pod {} is not on node \"{}\"", pod->Key(), pod->node_name));
  }
  const bool alike = CountsAlike(**at, *pod);
  *at = std::move(pod);
  if (!alike) info = MakeNode(info.node, std::move(info.pods), catalogue());
  Replace(*i, std::move(info));
  return Status::Ok();
}

Status ClusterSnapshot::SetGpus(std::string_view name, NodeGpus gpus) {
  const auto i = IndexOf(name);
  if (!i) return NotFound(fmt::format("node \"{}\" is not in the snapshot", name));
  NodeInfo info = node(*i);
  for (const auto& [id, amount] : node(*i).allocatable.entries()) {
    if (IsManagedOn(info, id)) info.allocatable.Set(id, 0);
  }
  for (const Gpu& gpu : gpus.gpus) {
    for (const Instance& instance : gpu.instances) {
      const auto& profile = gpu.model->profile(instance.placement.profile);
      const ResourceId id = InternResource(profile.resource_name);
      if (!instance.left) info.allocatable.Set(id, info.allocatable.Get(id) + 1);
    }
  }
  info.gpus = std::move(gpus);
  Replace(*i, std::move(info));
  return Status::Ok();
}

std::optional<size_t> ClusterSnapshot::IndexOf(std::string_view name) const {
  if (index_ == nullptr) return std::nullopt;
  const auto it = index_->find(name);
  return it == index_->end() ? std::nullopt : std::optional(it->second);
}

// Changes in place if no other copy of the snapshot shares the node.
void ClusterSnapshot::Replace(size_t i, NodeInfo info) {
  OwnPlace(i) = std::make_shared<const NodeInfo>(std::move(info));
}

// A reference for writing: copies the page first if another copy of the snapshot shares it.
std::shared_ptr<const NodeInfo>& ClusterSnapshot::OwnPlace(size_t i) {
  if (pages_.use_count() > 1) pages_ = std::make_shared<Pages>(*pages_);
  std::shared_ptr<Page>& page = (*pages_)[i / kPageSize];
  if (page.use_count() > 1) page = std::make_shared<Page>(*page);
  return (*page)[i % kPageSize];
}

// REQUIRES: the snapshot has nodes, and the name sorts after theirs.
void ClusterSnapshot::Append(std::shared_ptr<const NodeInfo> info) {
  if (size_ % kPageSize == 0) {
    pages_ = std::make_shared<Pages>(*pages_);
    pages_->push_back(std::make_shared<Page>());
  }
  if (index_.use_count() > 1) index_ = std::make_shared<Index>(*index_);
  index_->emplace(info->node->meta.name, size_);
  OwnPlace(size_++) = std::move(info);
}

}  // namespace nos::cluster
