#include "scheduling/packing/view.h"

#include <algorithm>
#include <bit>

#include "base/random.h"
#include "cluster/selectors.h"

namespace nos::scheduling::packing {
namespace {

using cluster::NodeInfo;
using cluster::ResourceVector;

constexpr int64_t kMebibyte = int64_t{1} << 20;
static_assert(kMaxDevices >= cluster::kMaxGpusPerNode);

std::string ProductOf(const cluster::Node& node) {
  const auto label = node.meta.labels.find(cluster::kProductLabel);
  return label == node.meta.labels.end() ? "" : label->second;
}

int64_t Devices(int64_t amount) { return std::clamp<int64_t>(amount, 0, kMaxDevices); }

int64_t Free(const NodeInfo& node, cluster::ResourceId id) {
  // Both are clamped to >= 0 so that the difference cannot overflow. It may be negative.
  return std::max<int64_t>(node.allocatable.Get(id), 0) -
         std::max<int64_t>(node.requested.Get(id), 0);
}

// Thousandths of the GPU in free slots. 0 if the reported instances contradict each other.
int FreeMilli(const cluster::Gpu& gpu) {
  const auto used = gpu.Used();
  return used ? kWholeGpu * used->free_slots() / gpu.model->slots() : 0;
}

// Thousandths of a GPU that an instance takes, at least 1.
int MilliOf(const gpu::Model& model, gpu::ProfileId profile) {
  return std::max(1, kWholeGpu * model.profile(profile).slots / model.slots());
}

bool IsOfDaemonSet(const cluster::Pod& pod) {
  return std::ranges::any_of(pod.meta.owners, [](const cluster::OwnerReference& owner) {
    return owner.controller && owner.kind == "DaemonSet";
  });
}

// The part of the term that is about the product label.
cluster::NodeSelectorTerm ProductTerm(const cluster::NodeSelectorTerm& term) {
  cluster::NodeSelectorTerm product;
  for (const cluster::SelectorRequirement& requirement : term.match_expressions) {
    if (requirement.key == cluster::kProductLabel) product.match_expressions.push_back(requirement);
  }
  return product;
}

// True if the pod's node selector and affinity allow nodes with this product label, other labels
// aside.
bool AllowsProduct(const cluster::Pod& pod, const cluster::Node& product) {
  const auto selected = pod.node_selector.find(cluster::kProductLabel);
  if (selected != pod.node_selector.end() && selected->second != ProductOf(product)) return false;
  if (!pod.node_affinity || !pod.node_affinity->required) return true;
  return std::ranges::any_of(*pod.node_affinity->required, [&](const auto& term) {
    const cluster::NodeSelectorTerm about = ProductTerm(term);
    return about.match_expressions.empty() || cluster::Matches(about, product);
  });
}

}  // namespace

cluster::ResourceId WholeGpuResource() {
  static const cluster::ResourceId id = cluster::InternResource("nvidia.com/gpu");
  return id;
}

bool HasGpus(const NodeInfo& node) {
  if (!node.gpus.gpus.empty()) return true;
  return std::ranges::any_of(node.allocatable.entries(), [](const auto& entry) {
    return entry.second > 0 &&
           (entry.first == WholeGpuResource() || cluster::IsSliceResource(entry.first));
  });
}

uint32_t TieOrder(const std::string& node_name) {
  // FNV-1a, then mixed because similar names have similar hashes.
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : node_name) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3ULL;
  return static_cast<uint32_t>(Random(hash).Next() >> 32);
}

View::View(const cluster::ClusterSnapshot& snapshot) {
  std::map<std::string, std::vector<const gpu::Model*>> found;
  for (size_t i = 0; i < snapshot.size(); ++i) {
    const NodeInfo& info = snapshot.node(i);
    if (!HasGpus(info)) continue;
    std::vector<const gpu::Model*>& models = found[ProductOf(*info.node)];
    if (info.gpus.gpus.empty()) continue;
    for (const gpu::Model* model :
         {info.gpus.gpus.front().model, info.gpus.gpus.front().alternative}) {
      if (model != nullptr && std::ranges::find(models, model) == models.end()) {
        models.push_back(model);
      }
    }
  }
  for (auto& [product, models] : found) {
    const auto number = std::min<size_t>(products_.size(), kMaxModels - 1);
    number_of_[product] = static_cast<int>(number);
    if (products_.size() == kMaxModels) continue;
    products_.push_back({{}, std::move(models)});
    if (!product.empty()) {
      products_.back().node.meta.labels.emplace(cluster::kProductLabel, product);
    }
  }
}

Node View::NodeOf(const NodeInfo& info) const {
  Node node{.cpu_milli = Free(info, cluster::kCpu),
            .memory_mib = Free(info, cluster::kMemory) / kMebibyte,
            .pods = Free(info, cluster::kPods)};
  const auto number = number_of_.find(ProductOf(*info.node));
  if (number != number_of_.end()) node.model = number->second;
  for (const cluster::Gpu& gpu : info.gpus.gpus) node.gpu_milli.push_back(FreeMilli(gpu));
  // Whole GPUs of hybrid nodes are in info.gpus already.
  const int64_t whole = info.gpus.whole ? 0 : Devices(info.allocatable.Get(WholeGpuResource()));
  const int64_t free = std::min(whole, Devices(Free(info, WholeGpuResource())));
  for (int64_t i = 0; i < whole; ++i) node.gpu_milli.push_back(i < free ? kWholeGpu : 0);
  return node;
}

PodKind View::KindOf(const cluster::Pod& pod, const ResourceVector& requests) const {
  const int64_t memory = std::max<int64_t>(requests.Get(cluster::kMemory), 0);
  PodKind kind{.cpu_milli = std::max<int64_t>(requests.Get(cluster::kCpu), 0),
               .memory_mib = memory / kMebibyte + (memory % kMebibyte != 0 ? 1 : 0),
               .gpus = static_cast<int>(Devices(requests.Get(WholeGpuResource())))};
  if (kind.gpus == 0) return kind;
  kind.milli = kWholeGpu;
  kind.models = ModelsOf(pod);
  return kind;
}

std::optional<PodKind> View::KindWithShare(PodKind kind, const NodeInfo& info,
                                           cluster::ResourceId share) {
  for (const cluster::Gpu& gpu : info.gpus.gpus) {
    for (const gpu::Model* model : {gpu.model, gpu.alternative}) {
      if (model == nullptr || !model->counted()) continue;
      const auto profile = model->FindProfile(cluster::ResourceName(share));
      if (!profile) continue;
      kind.gpus = 1;
      kind.milli = MilliOf(*model, *profile);
      return kind;
    }
  }
  return std::nullopt;
}

uint64_t View::ModelsOf(const cluster::Pod& pod) const {
  uint64_t models = 0;
  for (size_t i = 0; i < products_.size(); ++i) {
    if (AllowsProduct(pod, products_[i].node)) models |= uint64_t{1} << i;
  }
  return std::popcount(models) == static_cast<int>(products_.size()) ? kAnyModel : models;
}

View::Slice View::SliceOf(cluster::ResourceId resource) const {
  Slice slice;
  for (size_t i = 0; i < products_.size(); ++i) {
    for (const gpu::Model* model : products_[i].models) {
      const auto profile = model->FindProfile(cluster::ResourceName(resource));
      if (!profile) continue;
      slice.milli = std::max(slice.milli, MilliOf(*model, *profile));
      slice.models |= uint64_t{1} << i;
    }
  }
  return slice;
}

void View::Precompute(const cluster::Pod& pod, Demand& demand) const {
  if (IsOfDaemonSet(pod)) return;
  const ResourceVector requests = cluster::RequestsOf(pod);
  PodKind kind = KindOf(pod, requests);
  int64_t slices = 0;
  for (const auto& [id, amount] : requests.entries()) {
    if (cluster::IsSliceResource(id)) slices += Devices(amount);
  }
  if (slices == 0) return demand.Precompute(kind);
  kind.cpu_milli /= slices;
  kind.memory_mib /= slices;
  const uint64_t allowed = ModelsOf(pod);
  for (const auto& [id, amount] : requests.entries()) {
    if (!cluster::IsSliceResource(id)) continue;
    const Slice slice = SliceOf(id);
    kind.gpus = 1;
    kind.milli = slice.milli;
    kind.models = slice.models & allowed;
    for (int64_t i = 0; slice.milli > 0 && i < Devices(amount); ++i) demand.Precompute(kind);
  }
}

Demand View::DemandOf(const cluster::ClusterSnapshot& snapshot,
                      std::span<const std::shared_ptr<const cluster::Pod>> waiting) const {
  Demand demand;
  for (size_t i = 0; i < snapshot.size(); ++i) {
    for (const auto& pod : snapshot.node(i).pods) Precompute(*pod, demand);
  }
  for (const auto& pod : waiting) Precompute(*pod, demand);
  return demand;
}

}  // namespace nos::scheduling::packing
