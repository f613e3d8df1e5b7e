#include "scheduling/explain/slice_shortfalls.h"

#include <algorithm>
#include <utility>

#include "scheduling/slice_reasons.h"

namespace nos::scheduling {
namespace {

bool HasProfile(const cluster::NodeGpus& gpus, const std::string& resource) {
  return std::ranges::any_of(gpus.gpus, [&](const cluster::Gpu& gpu) {
    return CanBePartitionedInto(*gpu.model, resource) ||
           (gpu.alternative != nullptr && CanBePartitionedInto(*gpu.alternative, resource));
  });
}

bool IsNever(const Diagnosis::Entry& entry) {
  return entry.kind == Verdict::Kind::kUnresolvable && entry.code != codes::kInsufficientResource;
}

// Joins entries of the same code and message, of nodes with different GPUs or kinds of verdicts.
// Readers cannot distinguish them.
void JoinSame(std::vector<Diagnosis::Entry>& entries) {
  std::vector<Diagnosis::Entry> joined;
  for (Diagnosis::Entry& entry : entries) {
    const auto same = std::ranges::find_if(joined, [&](const Diagnosis::Entry& other) {
      return other.code == entry.code && other.message == entry.message;
    });
    if (same == joined.end()) {
      joined.push_back(std::move(entry));
      continue;
    }
    same->nodes += entry.nodes;
    if (entry.kind == Verdict::Kind::kUnschedulable) same->kind = entry.kind;
  }
  entries = std::move(joined);
}

}  // namespace

void SliceShortfalls::Add(const Obstacles& here, const cluster::NodeInfo& node) {
  const std::vector<const Explanation::Lack*> missing = here.FirstSlices();
  if (missing.empty() || here.nearest().repartition) return;
  if (!node.gpus.managed && !here.NeedsOptIn()) return;  // another component partitions its GPUs
  for (const Explanation::Lack* lack : missing) ++replaced_[lack->resource];
  Found& found = found_[KeyOf(node)];
  ++found.nodes;
  found.example = &node;
}

SliceShortfalls::Key SliceShortfalls::KeyOf(const cluster::NodeInfo& node) const {
  const cluster::NodeGpus& gpus = node.gpus;
  if (!gpus.managed) return {Kind::kNotPartitioned, UnreportedSharingMode(*node.node), {}};
  for (const auto& [resource, count] : demand_.slices()) {
    if (HasProfile(gpus, resource)) continue;
    if (gpus.gpus.empty() && !gpus.problems.empty()) {
      return {Kind::kGpuProblem, gpus.problems[0], {}};
    }
    std::vector<const gpu::Model*> models;
    for (const cluster::Gpu& gpu : gpus.gpus) {
      if (std::ranges::find(models, gpu.model) == models.end()) models.push_back(gpu.model);
    }
    return {Kind::kNoGpu, resource, std::move(models)};
  }
  return {HasUsedInstances(gpus) ? Kind::kNoRoomBesideUsed : Kind::kNoRoom, "", {}};
}

Diagnosis::Entry SliceShortfalls::EntryOf(const Key& key, const Found& found) const {
  const auto& [kind, detail, models] = key;
  const cluster::NodeInfo& node = *found.example;
  bool never = kind == Kind::kNoGpu;
  Reason reason;
  switch (kind) {
    case Kind::kNotPartitioned:
      reason = NotPartitioned(*node.node);
      never = detail.empty();
      break;
    case Kind::kGpuProblem:
      reason = GpuProblem(std::string(detail));
      break;
    case Kind::kNoGpu:
      reason = NoGpuForProfile(node.gpus, std::string(detail));
      break;
    case Kind::kNoRoom:
    case Kind::kNoRoomBesideUsed:
      reason = NoRoomForSlices(demand_.Text(), kind == Kind::kNoRoomBesideUsed);
  }
  return {reason.code, reason.message,
          never ? Verdict::Kind::kUnresolvable : Verdict::Kind::kUnschedulable, found.nodes};
}

void SliceShortfalls::Refine(Diagnosis& diagnosis) const {
  for (const auto& [resource, nodes] : replaced_) {
    const std::string message = Insufficient(cluster::InternResource(resource)).message;
    int left = nodes;
    for (Diagnosis::Entry& entry : diagnosis.entries) {
      if (entry.message != message) continue;
      const int taken = std::min(left, entry.nodes);
      entry.nodes -= taken;
      left -= taken;
    }
  }
  std::erase_if(diagnosis.entries, [](const auto& entry) { return entry.nodes == 0; });
  for (const auto& [key, found] : found_) diagnosis.entries.push_back(EntryOf(key, found));
  JoinSame(diagnosis.entries);
  std::ranges::stable_sort(diagnosis.entries, {}, [&](const Diagnosis::Entry& entry) {
    return std::tuple(!found_.empty() && IsNever(entry), -entry.nodes);
  });
}

}  // namespace nos::scheduling
