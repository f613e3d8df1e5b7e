// Writes GPUs and requested layouts as annotations.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "cluster/annotations.h"
#include "cluster/annotations/reported.h"

namespace nos::cluster {
namespace {

std::string Key(std::string_view family, int gpu) {
  return fmt::format("{}{}-{}", kPrefix, family, gpu);
}

std::string LayoutText(const gpu::Model& model, std::vector<Instance> instances, bool with_state) {
  std::sort(instances.begin(), instances.end(), [](const Instance& a, const Instance& b) {
    return a.placement.start != b.placement.start ? a.placement.start < b.placement.start
                                                  : a.placement < b.placement;
  });
  std::vector<std::string> parts;
  for (const Instance& instance : instances) {
    const std::string_view state = !with_state ? "" : instance.used ? ":used" : ":free";
    parts.push_back(fmt::format("{}{}", model.PlacementName(instance.placement), state));
  }
  return Join(parts, ",");
}

// In bytes. An object's annotations may have 256 KiB together, and a node 16 GPUs with 48 shares
// each.
constexpr size_t kMaxHolders = size_t{8} << 10;

std::string HoldersText(const Gpu& gpu) {
  std::vector<std::string> parts;
  size_t bytes = 0;
  for (const Instance& instance : gpu.instances) {
    if (!instance.used || instance.pod.empty()) continue;
    parts.push_back(
        fmt::format("{}={}", gpu.model->PlacementName(instance.placement), instance.pod));
    bytes += parts.back().size() + 1;
    if (bytes <= kMaxHolders) continue;
    parts.pop_back();
    break;
  }
  return Join(parts, ",");
}

void SetCounts(const Gpu& gpu, bool with_state, StringMap& to) {
  std::map<std::string, int> counts;
  for (const Instance& instance : gpu.instances) {
    const gpu::Profile& profile = gpu.model->profile(instance.placement.profile);
    const std::string_view state = !with_state ? "" : instance.used ? "-used" : "-free";
    const std::string_view family = with_state ? "status-gpu" : "spec-gpu";
    ++counts[fmt::format("{}-{}{}", Key(family, gpu.index), ProfileKey(profile), state)];
  }
  for (const auto& [key, count] : counts) to[key] = fmt::to_string(count);
}

// The name without either prefix; "" if it has neither.
std::string_view Tail(std::string_view name) {
  for (const std::string_view prefix : {kPrefix, kOldPrefix}) {
    if (name.starts_with(prefix)) return name.substr(prefix.size());
  }
  return {};
}

// The changes that turn `there` into `wanted`. Removes only keys for which `owned` is true.
template <typename Owned>
AnnotationPatch Difference(const StringMap& there, const StringMap& wanted, Owned owned) {
  AnnotationPatch patch;
  for (const auto& [key, value] : there) {
    if (!wanted.contains(key) && owned(Tail(key))) patch[key] = std::nullopt;
  }
  for (const auto& [key, value] : wanted) {
    const auto it = there.find(key);
    if (it == there.end() || it->second != value) patch[key] = value;
  }
  return patch;
}

}  // namespace

AnnotationPatch SpecPatch(const Node& node, const std::vector<TargetLayout>& targets,
                          std::string_view plan_id) {
  StringMap wanted;
  std::set<int> named;
  for (const TargetLayout& target : targets) {
    Gpu gpu{.index = target.index, .model = target.model};
    for (const gpu::Placement& placement : target.placements) {
      gpu.instances.push_back({placement, false, ""});
    }
    SetCounts(gpu, false, wanted);
    wanted[Key("spec-layout", gpu.index)] = LayoutText(*gpu.model, gpu.instances, false);
    named.insert(gpu.index);
  }
  if (!plan_id.empty()) wanted[std::string(kSpecPlan)] = plan_id;
  return Difference(node.meta.annotations, wanted, [&](std::string_view tail) {
    if (tail == "spec-partitioning-plan") return true;
    const auto key = ParseAnnotationKey(tail, Family::kSpec);
    return key.has_value() && named.contains(key->gpu);
  });
}

AnnotationPatch StatusPatch(const Node& node, const std::vector<Gpu>& gpus,
                            std::string_view plan_id, bool hybrid) {
  StringMap wanted;
  for (const Gpu& gpu : gpus) {
    SetCounts(gpu, true, wanted);
    wanted[Key("status-layout", gpu.index)] = LayoutText(*gpu.model, gpu.instances, true);
    wanted[Key("status-model", gpu.index)] = gpu.model->name();
    if (hybrid) {
      wanted[Key("status-other-model", gpu.index)] =
          gpu.alternative == nullptr ? "" : gpu.alternative->name();
    }
    std::string holders = HoldersText(gpu);
    if (!holders.empty()) wanted[Key("status-holders", gpu.index)] = std::move(holders);
  }
  if (!plan_id.empty()) wanted[std::string(kStatusPlan)] = plan_id;
  return Difference(node.meta.annotations, wanted, [](std::string_view tail) {
    return tail == "status-partitioning-plan" || IsGpuAnnotation(tail, Family::kStatus);
  });
}

void Apply(const AnnotationPatch& patch, StringMap& annotations) {
  for (const auto& [key, value] : patch) {
    if (value) {
      annotations[key] = *value;
    } else {
      annotations.erase(key);
    }
  }
}

}  // namespace nos::cluster
