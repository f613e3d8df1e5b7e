#include "sim/cluster_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "cluster/annotations.h"
#include "cluster/device_interface.h"
#include "sim/world/model/dry_run.h"

namespace nos::sim {
namespace {

Quantity CapacityOf(const cluster::Node& node, std::string_view resource, Quantity fallback) {
  const auto found = node.capacity.find(resource);
  return found == node.capacity.end() ? fallback : found->second;
}

std::string LabelOf(const cluster::Node& node, std::string_view key) {
  const auto found = node.meta.labels.find(key);
  return found == node.meta.labels.end() ? std::string() : found->second;
}

void AddGpus(const cluster::Node& node, const gpu::Catalogue& catalogue, NodeSpec& spec) {
  const std::string product = LabelOf(node, cluster::kProductLabel);
  const int64_t count =
      ParseInt(LabelOf(node, cluster::kCountLabel)).value_or(product.empty() ? 0 : 1);
  spec.gpus.assign(static_cast<size_t>(std::clamp<int64_t>(count, 0, cluster::kMaxGpusPerNode)),
                   GpuSpec{.model = product});
  for (const cluster::Gpu& gpu : cluster::ReadNodeGpus(node, catalogue).gpus) {
    if (gpu.index < 0 || static_cast<size_t>(gpu.index) >= spec.gpus.size()) continue;
    GpuSpec& target = spec.gpus[static_cast<size_t>(gpu.index)];
    target.model = gpu.model->name();
    for (const auto& instance : gpu.instances) {
      target.instances.push_back({gpu.model->PlacementName(instance.placement), instance.used});
    }
  }
}

// Keeps annotations except those of nos, which the virtual node writes itself.
bool IsKept(const std::string& annotation) {
  return !annotation.starts_with(cluster::kPrefix) && !annotation.starts_with(cluster::kOldPrefix);
}

NodeSpec SpecOf(const cluster::Node& node, const gpu::Catalogue& catalogue) {
  NodeSpec spec;
  spec.name = node.meta.name;
  spec.labels = node.meta.labels;
  spec.taints = node.taints;
  spec.unschedulable = node.unschedulable;
  const std::string_view way = cluster::RequestedSharingMode(node);
  spec.dra = cluster::ServesClaims(node);
  spec.managed = !way.empty() && !spec.dra;
  spec.mps = way == "mps";
  spec.hybrid = way == "hybrid";
  spec.cpu = CapacityOf(node, "cpu", spec.cpu);
  spec.memory = CapacityOf(node, "memory", spec.memory);
  spec.max_pods = static_cast<int>(CapacityOf(node, "pods", Quantity::FromValue(110)).Value());
  for (const auto& [key, value] : node.meta.annotations) {
    if (IsKept(key)) spec.annotations[key] = value;
  }
  AddGpus(node, catalogue, spec);
  return spec;
}

}  // namespace

Result<std::vector<NodeSpec>> ReadCluster(std::string_view text, std::string_view source,
                                          const gpu::Catalogue& catalogue) {
  NOS_ASSIGN(const cluster::Objects objects, cluster::ReadObjects(text, source));
  if (objects.nodes.empty()) return Invalid(fmt::format("{}: there is no Node in it", source));
  std::vector<NodeSpec> specs;
  specs.reserve(objects.nodes.size());
  DryRun server;
  for (const cluster::Node& node : objects.nodes) {
    const NodeSpec& spec = specs.emplace_back(SpecOf(node, catalogue));
    const Status taken = server.Create(kube::kNodes, "", NodeObject(spec));
    if (taken.ok()) continue;
    if (taken.code() == Code::kAlreadyExists) {
      return Invalid(
          fmt::format("{}: Node {}: it is given twice; give every object once", source, spec.name));
    }
    return Invalid(fmt::format("{}: Node {}: the API server refuses it: {}", source, spec.name,
                               taken.message()));
  }
  return specs;
}

}  // namespace nos::sim
