#include "cluster/node_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "cluster/annotations.h"
#include "cluster/resources.h"

namespace nos::cluster {
namespace {

using NodePtr = std::shared_ptr<const Node>;
using PodPtr = std::shared_ptr<const Pod>;

constexpr size_t kMaxLearnedTaints = 32, kMaxLearnedResources = 64;

// Source: k8s.io/kubernetes pkg/kubelet/types, ConfigMirrorAnnotationKey.
constexpr std::string_view kMirror = "kubernetes.io/config.mirror";

template <size_t N>
bool BeginsWithAny(std::string_view text, const std::array<std::string_view, N>& all) {
  return std::ranges::any_of(all, [&](std::string_view each) { return text.starts_with(each); });
}

// Taints of a node that is not ready yet or is being removed. Sources: well-known taints of
// Kubernetes, Cluster API ("MachineNodeNameReadyCondition", uninitialized), cluster-autoscaler
// (utils/taints), Karpenter (unregistered, disrupted), CSI and CNI drivers (agent-not-ready).
bool IsPassing(const Taint& taint) {
  static constexpr std::array<std::string_view, 10> kBegins = {
      "node.kubernetes.io/",
      "node.cloudprovider.kubernetes.io/",
      "node.cluster.x-k8s.io/",
      "karpenter.sh/",
      "ToBeDeletedByClusterAutoscaler",
      "DeletionCandidateOfClusterAutoscaler",
      "startup-taint.cluster-autoscaler.kubernetes.io/",
      "status-taint.cluster-autoscaler.kubernetes.io/",
      "ignore-taint.cluster-autoscaler.kubernetes.io/",
      "cloud.google.com/impending-node-termination"};
  return BeginsWithAny(taint.key, kBegins) || taint.key.ends_with("not-ready") ||
         taint.key.ends_with("uninitialized");
}

// Labels that are specific to one node, change when its GPUs are repartitioned, or follow from the
// NodePool's GPUs.
bool IsOfOneNode(std::string_view key, std::string_view value, const Node& node) {
  static constexpr std::array<std::string_view, 8> kBegins = {
      "kubernetes.io/hostname", "nvidia.com/gfd.timestamp",        "nvidia.com/mig-",
      "nvidia.com/mig.config",  "feature.node.kubernetes.io/cpu-", "nvidia.com/gpu.replicas",
      "nvidia.com/gpu-",        "alpha.eksctl.io/instance-id"};
  return BeginsWithAny(key, kBegins) || key == kProductLabel || key == kCountLabel ||
         key == kMemoryLabel || key == kPartitioningLabel || value == node.meta.name;
}

// Labels for the location of a node: the next node of the NodePool may be elsewhere.
bool IsTopology(std::string_view key) {
  static constexpr std::array<std::string_view, 2> kBegins = {"topology.", "failure-domain."};
  return BeginsWithAny(key, kBegins);
}

std::string_view LabelOf(const Node& node, std::string_view key) {
  const auto found = node.meta.labels.find(key);
  return found == node.meta.labels.end() ? std::string_view() : std::string_view(found->second);
}

Quantity AmountOf(const ResourceList& resources, std::string_view name) {
  const auto found = resources.find(name);
  return found == resources.end() ? Quantity() : found->second;
}

bool TakesPods(const Node& node) {
  const Condition* ready = FindCondition(node.conditions, "Ready");
  return ready != nullptr && ready->status == "True" && !node.unschedulable && !node.meta.deleted &&
         std::ranges::none_of(node.taints, [](const Taint& taint) {
           return IsPassing(taint) && taint.effect != "PreferNoSchedule";
         });
}

// Requests by node of the pods that every node runs: DaemonSet pods and static pods.
std::map<std::string_view, ResourceList> TakenByItself(std::span<const PodPtr> pods) {
  std::map<std::string_view, ResourceList> taken;
  for (const PodPtr& pod : pods) {
    if (pod->node_name.empty() || pod->Finished()) continue;
    const bool comes = pod->meta.annotations.contains(kMirror) ||
                       std::ranges::any_of(pod->meta.owners, [](const OwnerReference& owner) {
                         return owner.kind == "DaemonSet" || owner.kind == "Node";
                       });
    if (!comes) continue;
    ResourceList& of_node = taken[pod->node_name];
    const ResourceList requests = PodRequests(*pod);
    for (const auto& [name, amount] : requests) of_node[name] = of_node[name] + amount;
    of_node["pods"] = of_node["pods"] + Quantity::FromValue(1);
  }
  return taken;
}

int32_t WithinGpus(int64_t count) {
  return static_cast<int32_t>(std::clamp<int64_t>(count, 0, kMaxGpusPerNode));
}

// The number of time slices that the agent reports: 4 for "H100-80GB+GPU+TIME-4".
int32_t TimeSlicesOf(const Node& node) {
  const auto model = node.meta.annotations.find(fmt::format("{}status-model-0", kPrefix));
  if (model == node.meta.annotations.end()) return 0;
  constexpr std::string_view kTime = "+TIME-";
  const size_t at = model->second.rfind(kTime);
  if (at == std::string::npos) return 0;
  const auto slices = ParseInt(std::string_view(model->second).substr(at + kTime.size()));
  return static_cast<int32_t>(std::clamp<int64_t>(slices.value_or(0), 0, gpu::kMaxTimeSlices));
}

// nullopt while the labels do not describe the GPUs yet.
std::optional<PoolGpus> GpusOf(const Node& node) {
  PoolGpus gpu;
  const std::string_view chosen = RequestedSharingMode(node);
  using enum SharingMode;
  for (const SharingMode each : {kMig, kMps, kHybrid}) {
    if (NameOf(each) == chosen) gpu.partitioning = each;
  }
  const bool whole = gpu.partitioning == kNone;
  gpu.count = WithinGpus(whole ? AmountOf(node.allocatable, kWholeGpuResource).Value()
                               : ParseInt(LabelOf(node, kCountLabel)).value_or(0));
  gpu.product = LabelOf(node, kProductLabel);
  if (!whole && (gpu.count == 0 || gpu.product.empty())) return std::nullopt;
  if (gpu.count == 0) return PoolGpus();
  const int64_t mib = ParseInt(LabelOf(node, kMemoryLabel)).value_or(0);
  if (mib > 0 && mib <= int64_t{gpu::kMaxModesGib} * 1024) {
    gpu.memory = Quantity::FromValue(mib << 20);
  }
  if (gpu.partitioning == kHybrid) gpu.time_slices = TimeSlicesOf(node);
  return gpu;
}

// Everything except labels. nullopt while a part is not known yet.
std::optional<NodeTemplate> ShapeOf(const Node& node, const ResourceList& taken) {
  NodeTemplate shape;
  std::optional<PoolGpus> gpu = GpusOf(node);
  if (!gpu) return std::nullopt;
  shape.gpu = *std::move(gpu);
  for (const auto& [name, amount] : node.allocatable) {
    if (name == kWholeGpuResource || IsSliceResource(name)) continue;
    const Quantity left = amount - AmountOf(taken, name);
    const bool main = name == "cpu" || name == "memory" || name == "pods";
    if (left <= Quantity() || (!main && shape.resources.size() >= kMaxLearnedResources - 3)) {
      continue;
    }
    shape.resources[name] = left;
  }
  if (!shape.resources.contains("cpu") || !shape.resources.contains("memory")) return std::nullopt;
  for (const Taint& taint : node.taints) {
    if (taint.effect != "PreferNoSchedule" && shape.taints.size() < kMaxLearnedTaints) {
      shape.taints.push_back(taint);
    }
  }
  std::ranges::sort(shape.taints);
  return shape;
}

bool IsClose(Quantity a, Quantity b) {
  const int64_t x = a.MilliValue(), y = b.MilliValue();
  const int64_t more = std::max(x, y), less = std::min(x, y);
  return more - less <= more / kAlikePart;
}

bool AreAlike(const NodeTemplate& a, const NodeTemplate& b) {
  return a.gpu == b.gpu && a.taints == b.taints &&
         std::ranges::equal(a.resources, b.resources, [](const auto& one, const auto& other) {
           return one.first == other.first && IsClose(one.second, other.second);
         });
}

// A group of nodes with alike configurations.
struct Kind {
  NodeTemplate first;
  ResourceList least;
  int nodes = 0;
};

void Count(const NodeTemplate& shape, std::vector<Kind>& kinds) {
  auto kind =
      std::ranges::find_if(kinds, [&](const Kind& each) { return AreAlike(each.first, shape); });
  if (kind == kinds.end()) kind = kinds.insert(kinds.end(), Kind{shape, {}, 0});
  if (kind->nodes++ == 0) {
    kind->least = shape.resources;
    return;
  }
  for (auto& [name, amount] : kind->least) amount = std::min(amount, shape.resources.at(name));
}

void KeepShared(const Node& node, bool is_first, StringMap& labels) {
  if (is_first) {
    labels = node.meta.labels;
    std::erase_if(labels,
                  [&](const auto& label) { return IsOfOneNode(label.first, label.second, node); });
    return;
  }
  std::erase_if(labels,
                [&](const auto& label) { return LabelOf(node, label.first) != label.second; });
}

const NodeTemplate* Remembered(const NodePool& pool) {
  return pool.learned && !pool.learned->resources.empty() ? &*pool.learned : nullptr;
}

JsonObject JsonOf(const ResourceList& resources) {
  JsonObject json;
  for (const auto& [name, amount] : resources) json[name] = amount.ToBinaryString();
  return json;
}

// Members that are missing from `to` are removed.
Json MergePatchOf(const Json& from, const Json& to) {
  if (!from.is_object() || !to.is_object()) return to;
  JsonObject patch;
  for (const auto& [key, value] : to.get_object()) {
    const Json* was = Find(from, key);
    if (was == nullptr) {
      patch[key] = value;
    } else if (*was != value) {
      patch[key] = MergePatchOf(*was, value);
    }
  }
  for (const auto& [key, value] : from.get_object()) {
    if (Find(to, key) == nullptr) patch[key] = nullptr;
  }
  return patch;
}

}  // namespace

std::optional<NodeTemplate> RecordTemplate(const NodePool& pool, std::span<const NodePtr> nodes,
                                           std::span<const PodPtr> pods) {
  // 1. Select the pool's usable nodes, sorted by name: a tie in step 2 goes to the first.
  const NodeTemplate* remembered = Remembered(pool);
  std::vector<const Node*> own;
  for (const NodePtr& node : nodes) {
    if (IsOf(pool, *node) && TakesPods(*node)) own.push_back(node.get());
  }
  std::ranges::sort(own, {}, [](const Node* node) { return std::string_view(node->meta.name); });
  const std::map<std::string_view, ResourceList> taken =
      own.empty() ? std::map<std::string_view, ResourceList>() : TakenByItself(pods);
  // 2. Count alike nodes, starting with the stored template, and keep the labels that all share.
  std::vector<Kind> kinds;
  if (remembered != nullptr) kinds.push_back({*remembered, {}, 0});
  StringMap labels;
  bool is_first = true;
  for (const Node* node : own) {
    const auto used = taken.find(node->meta.name);
    const auto shape = ShapeOf(*node, used == taken.end() ? ResourceList() : used->second);
    if (!shape || !IsUsable(*shape)) continue;
    Count(*shape, kinds);
    KeepShared(*node, std::exchange(is_first, false), labels);
  }
  // 3. The stored template stays while some node matches it; otherwise the most common kind wins.
  if (is_first) return remembered == nullptr ? std::nullopt : std::optional(*remembered);
  const bool lasts = remembered != nullptr && kinds.front().nodes > 0;
  const Kind& most = lasts ? kinds.front() : *std::ranges::max_element(kinds, {}, &Kind::nodes);
  if (remembered != nullptr) {
    // If nodes have been in several zones, the zone of the remaining nodes does not predict the
    // zone of the next one.
    std::erase_if(labels, [&](const auto& label) {
      const auto was = remembered->labels.find(label.first);
      return IsTopology(label.first) &&
             (was == remembered->labels.end() || was->second != label.second);
    });
  }
  while (labels.size() > kMaxLearnedLabels) labels.erase(std::prev(labels.end()));
  return NodeTemplate{most.first.gpu, most.least, std::move(labels), most.first.taints};
}

NodePool WithTemplate(NodePool pool) {
  const NodeTemplate* known = Remembered(pool);
  if (!pool.learns || known == nullptr) return pool;
  if (!pool.gpu_specified) pool.gpu = known->gpu;
  if (!pool.taints_specified) pool.taints = known->taints;
  pool.resources.insert(known->resources.begin(), known->resources.end());
  pool.resources.try_emplace("pods", kDefaultPods);
  pool.labels.insert(known->labels.begin(), known->labels.end());
  return pool;
}

bool IsDescribed(const NodePool& pool) {
  return !pool.learns || (pool.resources.contains("cpu") && pool.resources.contains("memory"));
}

std::string WhyNotDescribed() {
  return "has no node yet to learn from: give spec.cpu and spec.memory (and spec.gpu), or one node";
}

std::vector<std::shared_ptr<const NodePool>> Described(
    std::vector<std::shared_ptr<const NodePool>> pools, std::span<const NodePtr> nodes,
    std::span<const PodPtr> pods) {
  std::vector<NodePtr> left(nodes.begin(), nodes.end());
  for (std::shared_ptr<const NodePool>& pool : pools) {
    if (pool->learns) {
      NodePool learned = *pool;
      learned.learned = RecordTemplate(learned, left, pods);
      pool = std::make_shared<const NodePool>(WithTemplate(std::move(learned)));
    }
    std::erase_if(left, [&](const NodePtr& node) { return IsOf(*pool, *node); });
  }
  return pools;
}

Json JsonOf(const NodeTemplate& known) {
  JsonObject json;
  ResourceList others = known.resources;
  for (const std::string_view name : {"cpu", "memory", "pods"}) {
    const auto amount = others.find(name);
    if (amount == others.end()) continue;
    json[name] = amount->second.ToBinaryString();
    others.erase(amount);
  }
  if (!others.empty()) json["resources"] = JsonOf(others);
  if (known.gpu.count > 0) {
    JsonObject gpu = {{"count", known.gpu.count}, {"partitioning", NameOf(known.gpu.partitioning)}};
    if (!known.gpu.product.empty()) gpu["product"] = known.gpu.product;
    if (known.gpu.memory > Quantity()) gpu["memory"] = known.gpu.memory.ToBinaryString();
    if (known.gpu.time_slices > 0) gpu["timeSlices"] = known.gpu.time_slices;
    json["gpu"] = std::move(gpu);
  }
  if (!known.labels.empty()) {
    JsonObject labels;
    for (const auto& [key, value] : known.labels) labels[key] = value;
    json["labels"] = std::move(labels);
  }
  JsonArray taints;
  for (const Taint& taint : known.taints) {
    JsonObject one = {{"key", taint.key}, {"effect", taint.effect}};
    if (!taint.value.empty()) one["value"] = taint.value;
    taints.emplace_back(std::move(one));
  }
  if (!taints.empty()) json["taints"] = std::move(taints);
  return json;
}

Json PatchOf(const std::optional<NodeTemplate>& known, const std::optional<NodeTemplate>& to) {
  // An unusable template is replaced as a whole: a merge patch needs to know its members to remove
  // them.
  if (!to || (known && known->resources.empty())) return nullptr;
  return known ? MergePatchOf(JsonOf(*known), JsonOf(*to)) : JsonOf(*to);
}

}  // namespace nos::cluster
