#include "cluster/snapshot/assign_instances.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <string>

namespace nos::cluster {
namespace {

// An instance without a known holder. Left instances are `used`, too, but only found if asked for.
enum class Find { kUsed, kFree, kLeft };

Instance* FindInstance(NodeGpus& gpus, std::string_view resource, Find find) {
  for (Gpu& gpu : gpus.gpus) {
    const auto profile = gpu.model->FindProfile(resource);
    if (!profile) continue;
    for (Instance& instance : gpu.instances) {
      const Find is = instance.left ? Find::kLeft : instance.used ? Find::kUsed : Find::kFree;
      if (instance.placement.profile == *profile && is == find && instance.pod.empty()) {
        return &instance;
      }
    }
  }
  return nullptr;
}

// Adds a used instance at `placement` and removes free instances that overlap it. False if a used
// instance overlaps.
bool AddUsed(Gpu& gpu, gpu::Placement placement, const std::string& pod) {
  auto on = gpu.Used();
  if (!on || !on->Add(placement)) return false;
  std::vector<Instance> kept{{placement, true, pod}};
  for (const Instance& instance : gpu.instances) {
    if (instance.used || on->Add(instance.placement)) kept.push_back(instance);
  }
  std::ranges::sort(kept, {}, &Instance::placement);
  gpu.instances = std::move(kept);
  gpu.assumed_starts = true;
  return true;
}

// The profile for the resource in the GPU's current model, or else in the model it can switch to.
// nullopt if neither has one.
std::optional<gpu::ProfileId> ProfileOn(const Gpu& gpu, std::string_view resource) {
  if (const auto profile = gpu.model->FindProfile(resource)) return profile;
  return gpu.MaySwitch() ? gpu.alternative->FindProfile(resource) : std::nullopt;
}

// REQUIRES: ProfileOn returns a profile.
void SwitchFor(Gpu& gpu, std::string_view resource) {
  if (!gpu.model->FindProfile(resource)) gpu.Switch();
}

// Assigns an instance that is nominated for the pod, at its placement, unless another pod holds it.
bool AssignPromised(NodeInfo& info, std::string_view resource, const Pod& pod) {
  for (const PromisedInstance& promised : pod.promised) {
    const auto gpu = std::ranges::find(info.gpus.gpus, promised.gpu, &Gpu::index);
    if (gpu == info.gpus.gpus.end()) continue;
    const bool switches = promised.model != nullptr && promised.model != gpu->model;
    if (switches && (promised.model != gpu->alternative || !gpu->MaySwitch())) continue;
    const gpu::Model& model = switches ? *gpu->alternative : *gpu->model;
    if (model.FindProfile(resource) != promised.placement.profile) continue;
    if (switches) gpu->Switch();
    const auto there = std::ranges::find(gpu->instances, promised.placement, &Instance::placement);
    if (there == gpu->instances.end()) {
      if (AddUsed(*gpu, promised.placement, pod.Key())) return true;
    } else if (there->pod.empty()) {
      there->used = true;
      there->pod = pod.Key();
      return true;
    }
  }
  return false;
}

bool AssumeWhereWanted(NodeInfo& info, WantedLayouts& wanted, std::string_view resource,
                       const std::string& pod) {
  if (!wanted) wanted = ReadSpec(*info.node, info.gpus);
  for (Gpu& gpu : info.gpus.gpus) {
    const auto target = std::find_if(wanted->begin(), wanted->end(),
                                     [&](const TargetLayout& t) { return t.index == gpu.index; });
    if (target == wanted->end()) continue;
    const auto profile = target->model->FindProfile(resource);
    const bool asked =
        profile && std::ranges::count(target->placements, *profile, &gpu::Placement::profile) > 0;
    if (!asked || ProfileOn(gpu, resource) != profile) continue;
    SwitchFor(gpu, resource);
    for (const gpu::Placement& placement : target->placements) {
      if (placement.profile == *profile && AddUsed(gpu, placement, pod)) return true;
    }
  }
  return false;
}

// Prefers placements that keep all free instances.
bool AssumeAnywhere(NodeInfo& info, std::string_view resource, const std::string& pod) {
  for (const bool keep_free : {true, false}) {
    for (Gpu& gpu : info.gpus.gpus) {
      const auto profile = gpu.model->FindProfile(resource);
      const auto on = keep_free ? gpu.All() : gpu.Used();
      const auto place = profile && on ? on->FirstPlace(*profile) : std::nullopt;
      if (place) return AddUsed(gpu, *place, pod);
    }
  }
  for (Gpu& gpu : info.gpus.gpus) {
    const auto profile = ProfileOn(gpu, resource);
    if (!profile || gpu.model->FindProfile(resource)) continue;
    gpu.Switch();
    const auto used = gpu.Used();
    const auto place = used ? used->FirstPlace(*profile) : std::nullopt;
    if (place) return AddUsed(gpu, *place, pod);
  }
  return false;
}

bool AssignOne(std::string_view resource, const Pod& holder, Prefer prefer, WantedLayouts& wanted,
               NodeInfo& info) {
  const std::string pod = holder.Key();
  if (AssignPromised(info, resource, holder)) return true;
  const bool used_first = prefer == Prefer::kUsed;
  Instance* instance = FindInstance(info.gpus, resource, used_first ? Find::kUsed : Find::kFree);
  if (instance == nullptr) {
    instance = FindInstance(info.gpus, resource, used_first ? Find::kFree : Find::kUsed);
  }
  if (instance == nullptr && AssumeWhereWanted(info, wanted, resource, pod)) return true;
  // Another scheduler may know that the device is free before the agent reports it.
  if (instance == nullptr) instance = FindInstance(info.gpus, resource, Find::kLeft);
  if (instance == nullptr) return AssumeAnywhere(info, resource, pod);
  instance->used = true;
  instance->left = false;
  instance->pod = pod;
  return true;
}

int64_t HeldOf(const NodeGpus& gpus, const std::string& pod, std::string_view resource) {
  int64_t held = 0;
  for (const Gpu& gpu : gpus.gpus) {
    for (const Instance& instance : gpu.instances) {
      if (instance.pod != pod) continue;
      held += gpu.model->profile(instance.placement.profile).resource_name == resource ? 1 : 0;
    }
  }
  return held;
}

}  // namespace

void MarkLeft(const std::vector<std::shared_ptr<const Pod>>& pods, NodeGpus& gpus) {
  std::map<std::string, ResourceVector> asked;  // requested, holder not found yet
  for (Gpu& gpu : gpus.gpus) {
    for (Instance& instance : gpu.instances) {
      if (instance.pod.empty()) continue;
      if (asked.empty()) {
        for (const auto& pod : pods) asked[pod->Key()] = RequestsOf(*pod);
      }
      const auto& profile = gpu.model->profile(instance.placement.profile);
      const ResourceId id = InternResource(profile.resource_name);
      const auto holder = asked.find(instance.pod);
      const int64_t left = holder == asked.end() ? 0 : holder->second.Get(id);
      if (left > 0) {
        holder->second.Set(id, left - 1);
      } else {
        instance.pod.clear();
        instance.left = true;
      }
    }
  }
}

void AssignInstances(const Pod& pod, const ResourceVector& requests, Prefer prefer,
                     WantedLayouts& wanted, NodeInfo& info) {
  for (const auto& [id, amount] : requests.entries()) {
    if (!IsManagedOn(info, id)) continue;
    const std::string& resource = ResourceName(id);
    for (int64_t i = HeldOf(info.gpus, pod.Key(), resource); i < amount; ++i) {
      if (AssignOne(resource, pod, prefer, wanted, info)) continue;
      info.gpus.problems.push_back(fmt::format(
          "pod {} holds {} of {}, but no GPU of the node shows or has room for them all", pod.Key(),
          amount, resource));
      break;
    }
  }
}

}  // namespace nos::cluster
