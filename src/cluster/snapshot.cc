#include "cluster/snapshot.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "cluster/claim.h"

namespace nos::cluster {
namespace {

void AddPod(std::shared_ptr<const Pod> pod, Prefer prefer, WantedLayouts& wanted, NodeInfo& info) {
  const ResourceVector requests = RequestsOf(*pod);
  ClaimInstances(*pod, requests, prefer, wanted, info);
  info.requested.Add(requests);
  info.pods.push_back(std::move(pod));
}

// Sorts by name; of equal names only the last stays.
template <typename T, typename Less>
void SortUnique(std::vector<T>& items, Less less) {
  std::stable_sort(items.begin(), items.end(), less);
  const auto first_kept = std::unique(items.rbegin(), items.rend(), [&](const T& a, const T& b) {
    return !less(a, b) && !less(b, a);
  });
  items.erase(items.begin(), first_kept.base());
}

using Nodes = std::vector<std::shared_ptr<const Node>>;
using Pods = std::vector<std::shared_ptr<const Pod>>;

// Where no instance is known, the GPU may be handed out whole, as nvidia.com/gpu: its MIG mode may
// be off, which no status tells.
std::set<int> PerhapsWhole(const NodeGpus& gpus) {
  std::set<int> indexes;
  for (const Gpu& gpu : gpus.gpus) {
    if (gpu.instances.empty()) indexes.insert(gpu.index);
  }
  return indexes;
}

// Such GPUs may be handed out whole, and may be cut; but not both. While pods hold whole GPUs, none
// is cut that may be theirs. Agents do not report those that they find held whole: when enough are
// unreported, the others are nobody's; else some pod's is not found yet, and may be any. GPUs that
// may be cut are no whole GPUs for anybody.
void TellWholeGpusApart(const std::set<int>& perhaps_whole, NodeInfo& info) {
  static const ResourceId whole = InternResource(kWholeGpuResource);
  const int64_t held = info.requested.Get(whole);
  const int64_t told = info.allocatable.Get(whole);
  auto cut = static_cast<int64_t>(perhaps_whole.size());
  if (held > 0) {
    const auto unreported = static_cast<int64_t>(
        std::erase_if(info.gpus.gpus, [](const Gpu& gpu) { return !gpu.reported; }));
    const bool all_found = held <= unreported;
    for (Gpu& gpu : info.gpus.gpus) gpu.fixed |= !all_found && perhaps_whole.contains(gpu.index);
    const int64_t left_alone = all_found ? unreported : cut;
    cut -= left_alone;
    if (left_alone > 0) {
      info.gpus.problems.push_back(
          fmt::format("pods hold whole GPUs here ({}: {}): the {} that may be theirs are not cut",
                      kWholeGpuResource, held, left_alone));
    }
  }
  if (told > held && cut > 0) {
    const int64_t left = std::max(held, told - cut);
    info.allocatable.Set(whole, left);
    info.gpus.problems.push_back(
        fmt::format("{} of {}: {} count as whole GPUs, for the {} on which no instance is known "
                    "may be cut",
                    left, kWholeGpuResource, told, cut));
  }
}

NodeInfo MakeNode(std::shared_ptr<const Node> node, Pods pods, const gpu::Catalogue& catalogue) {
  NodeInfo info;
  info.gpus = ReadNodeGpus(*node, catalogue);
  const std::set<int> perhaps_whole = PerhapsWhole(info.gpus);
  info.allocatable = ResourceVector::From(node->allocatable);
  info.node = std::move(node);
  SortUnique(pods, [](const auto& a, const auto& b) {
    return a->meta.ns != b->meta.ns ? a->meta.ns < b->meta.ns : a->meta.name < b->meta.name;
  });
  info.pods.reserve(pods.size());
  WantedLayouts wanted;
  for (auto& pod : pods) AddPod(std::move(pod), Prefer::kUsed, wanted, info);
  TellWholeGpusApart(perhaps_whole, info);
  return info;
}

}  // namespace

ClusterSnapshot ClusterSnapshot::Build(const Nodes& nodes, const Pods& pods,
                                       const gpu::Catalogue& catalogue) {
  Nodes sorted = nodes;
  SortUnique(sorted, [](const auto& a, const auto& b) { return a->meta.name < b->meta.name; });
  ClusterSnapshot snapshot;
  snapshot.catalogue_ = &catalogue;
  snapshot.size_ = sorted.size();
  Index index;
  for (size_t i = 0; i < sorted.size(); ++i) index[sorted[i]->meta.name] = i;
  std::vector<Pods> bound(sorted.size());
  for (const auto& pod : pods) {
    if (pod->node_name.empty() || pod->Finished()) continue;
    const auto it = index.find(pod->node_name);
    if (it != index.end()) bound[it->second].push_back(pod);
  }
  Pages pages;
  for (size_t first = 0; first < sorted.size(); first += kPageSize) {
    auto page = std::make_shared<Page>();
    for (size_t i = first; i < std::min(first + kPageSize, sorted.size()); ++i) {
      (*page)[i - first] =
          std::make_shared<NodeInfo>(MakeNode(sorted[i], std::move(bound[i]), catalogue));
    }
    pages.push_back(std::move(page));
  }
  snapshot.pages_ = std::make_shared<const Pages>(std::move(pages));
  snapshot.index_ = std::make_shared<const Index>(std::move(index));
  return snapshot;
}

const NodeInfo* ClusterSnapshot::Find(std::string_view name) const {
  const auto i = IndexOf(name);
  return i ? &node(*i) : nullptr;
}

Status ClusterSnapshot::Bind(std::shared_ptr<const Pod> pod, std::string_view name) {
  const auto i = IndexOf(name);
  if (!i) return NotFound(fmt::format("node \"{}\" is not in the snapshot", name));
  NodeInfo info = node(*i);
  WantedLayouts wanted;
  AddPod(std::move(pod), Prefer::kFree, wanted, info);
  Replace(*i, std::move(info));
  return Status::Ok();
}

Status ClusterSnapshot::SetGpus(std::string_view name, NodeGpus gpus) {
  const auto i = IndexOf(name);
  if (!i) return NotFound(fmt::format("node \"{}\" is not in the snapshot", name));
  NodeInfo info = node(*i);
  for (const auto& [id, amount] : node(*i).allocatable.entries()) {
    if (IsMigResource(id)) info.allocatable.Set(id, 0);
  }
  for (const Gpu& gpu : gpus.gpus) {
    for (const Instance& instance : gpu.instances) {
      const auto& profile = gpu.model->profile(instance.placement.profile);
      const ResourceId id = InternResource(profile.resource_name);
      info.allocatable.Set(id, info.allocatable.Get(id) + 1);
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

void ClusterSnapshot::Replace(size_t i, NodeInfo info) {
  auto page = std::make_shared<Page>(*(*pages_)[i / kPageSize]);
  (*page)[i % kPageSize] = std::make_shared<const NodeInfo>(std::move(info));
  auto pages = std::make_shared<Pages>(*pages_);
  (*pages)[i / kPageSize] = std::move(page);
  pages_ = std::move(pages);
}

}  // namespace nos::cluster
