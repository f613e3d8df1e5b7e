#include "sim/world/satisfiable.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "cluster/resources.h"
#include "gpu/occupancy.h"
#include "scheduling/several_shares.h"

namespace nos::sim {
namespace {

bool Tolerates(const cluster::Pod& pod, const cluster::Taint& taint) {
  if (taint.effect == "PreferNoSchedule") return true;
  return std::any_of(
      pod.tolerations.begin(), pod.tolerations.end(), [&](const cluster::Toleration& toleration) {
        const bool effect = toleration.effect.empty() || toleration.effect == taint.effect;
        const bool key = toleration.key.empty() || toleration.key == taint.key;
        return effect && key && (toleration.op == "Exists" || toleration.value == taint.value);
      });
}

bool Admits(const cluster::Node& node, const cluster::Pod& pod) {
  if (node.unschedulable || !ToleratesTaints(pod, node)) return false;
  return std::all_of(pod.node_selector.begin(), pod.node_selector.end(), [&](const auto& wanted) {
    const auto label = node.meta.labels.find(wanted.first);
    return label != node.meta.labels.end() && label->second == wanted.second;
  });
}

bool HasRoom(const NodeSpec& spec, const std::vector<const cluster::Pod*>& pods) {
  Quantity cpu, memory;
  for (const cluster::Pod* pod : pods) {
    for (const auto& [resource, amount] : cluster::PodRequests(*pod)) {
      if (resource == "cpu") cpu = cpu + amount;
      if (resource == "memory") memory = memory + amount;
    }
  }
  return cpu <= spec.cpu && memory <= spec.memory && std::ssize(pods) <= spec.max_pods;
}

// Whatever fits on the one fits on the other: shares lie anywhere.
bool AreAlike(const gpu::Occupancy& a, const gpu::Occupancy& b) {
  return &a.model() == &b.model() && a.layout() == b.layout() &&
         a.taken_slots() == b.taken_slots() && a.count() == b.count();
}

// Tries every way to place the slices, but for those that differ only by the order of equal slices
// or by the names of GPUs in equal state.
class Search {
 public:
  // `others`: what each GPU may be instead while nothing is on it; null: nothing.
  Search(std::vector<std::string> slices, std::vector<gpu::Occupancy> gpus,
         std::vector<const gpu::Model*> others)
      : slices_(std::move(slices)), gpus_(std::move(gpus)), others_(std::move(others)) {
    std::sort(slices_.begin(), slices_.end());
  }

  bool Run() { return HaveSlots() && Place(0, 0, 0); }

 private:
  // Cheap and necessary: every slice takes one slot at least.
  bool HaveSlots() const {
    size_t slots = 0;
    for (size_t g = 0; g < gpus_.size(); ++g) {
      const int own = gpus_[g].model().slots();
      slots += static_cast<size_t>(others_[g] ? std::max(own, others_[g]->slots()) : own);
    }
    return slices_.size() <= slots;
  }

  bool Place(size_t next, size_t first_gpu, size_t first_placement) {
    if (next == slices_.size()) return true;
    for (size_t g = first_gpu; g < gpus_.size(); ++g) {
      if (SameAsEarlier(g, first_placement > 0 ? first_gpu + 1 : first_gpu)) continue;
      const auto profile = gpus_[g].model().FindProfile(slices_[next]);
      if (!profile && PlaceSwitched(next, g)) return true;
      if (!profile) continue;
      if (PlaceOn(next, g, *profile, g == first_gpu ? first_placement : 0)) return true;
    }
    return false;
  }

  bool PlaceSwitched(size_t next, size_t g) {
    if (others_[g] == nullptr || gpus_[g].taken_slots() > 0) return false;
    const auto profile = others_[g]->FindProfile(slices_[next]);
    if (!profile) return false;
    const gpu::Occupancy before = gpus_[g];
    gpus_[g] = gpu::Occupancy(*others_[g]);
    if (PlaceOn(next, g, *profile, 0)) return true;
    gpus_[g] = before;
    return false;
  }

  bool PlaceOn(size_t next, size_t g, gpu::ProfileId profile, size_t first_placement) {
    const gpu::Occupancy before = gpus_[g];
    const bool again = next + 1 < slices_.size() && slices_[next + 1] == slices_[next];
    const std::vector<gpu::Placement> choices = Choices(before, profile);
    for (size_t p = before.model().counted() ? 0 : first_placement; p < choices.size(); ++p) {
      if (!gpus_[g].Add(choices[p])) continue;
      const bool placed = again ? Place(next + 1, g, p + 1) : Place(next + 1, 0, 0);
      gpus_[g] = before;
      if (placed) return true;
    }
    return false;
  }

  // Of a counted model one is as good as the other.
  static std::vector<gpu::Placement> Choices(const gpu::Occupancy& on, gpu::ProfileId profile) {
    std::vector<gpu::Placement> choices;
    if (!on.model().counted()) {
      std::ranges::copy_if(on.model().layouts().placements(), std::back_inserter(choices),
                           [&](const auto& placement) { return placement.profile == profile; });
    } else if (const auto place = on.FirstPlace(profile)) {
      choices.push_back(*place);
    }
    return choices;
  }

  bool SameAsEarlier(size_t g, size_t first_whole) const {
    for (size_t e = first_whole; e < g; ++e) {
      if (AreAlike(gpus_[e], gpus_[g]) && others_[e] == others_[g]) return true;
    }
    return false;
  }

  std::vector<std::string> slices_;
  std::vector<gpu::Occupancy> gpus_;
  std::vector<const gpu::Model*> others_;
};

int64_t HeldOf(const VirtualNode::RunningPod& pod, const std::string& resource) {
  return std::ranges::count(pod.devices, resource, &kubelet::DeviceAssignment::resource);
}

// What init containers had that have ended is counted to their pods as long as these are there: by
// schedulers, and so by nos, which keeps as many. Which ones is its choice.
std::set<std::string> Kept(const Judged& node) {
  std::set<std::string> kept;
  const auto& known = node.machine->kubelet().pods();
  for (const auto* pod : node.bound) {
    const auto entry = known.find(pod->meta.uid);
    if (entry == known.end()) continue;
    for (const auto& [resource, amount] : cluster::PodRequests(*pod)) {
      if (HeldOf(entry->second, resource) < amount.Value()) kept.insert(resource);
    }
  }
  return kept;
}

// What pods hold now, and what is kept for them.
std::vector<gpu::Occupancy> UsedGpus(const Judged& node, bool empty) {
  const Machine& machine = *node.machine;
  const std::set<std::string> kept = Kept(node);
  std::vector<gpu::Occupancy> gpus;
  for (size_t i = 0; i < machine.gpu_count(); ++i) {
    gpu::Occupancy& on = gpus.emplace_back(machine.model(i));
    for (const auto& instance : machine.Instances(i)) {
      const bool used = machine.kubelet().Holder(instance.uuid) != nullptr ||
                        kept.contains(SliceResource(instance.profile));
      const auto profile = on.model().FindProfile(instance.profile);
      if (!empty && used && profile) (void)on.Add({*profile, instance.start});
    }
  }
  return gpus;
}

// Slices of bound pods that the kubelet has not handed out yet: they will take room as well.
void AddPromised(const Judged& node, std::vector<std::string>& resources) {
  for (const auto* pod : node.bound) {
    const auto& known = node.machine->kubelet().pods();
    if (known.contains(pod->meta.uid)) continue;
    for (const auto& [resource, amount] : cluster::PodRequests(*pod)) {
      const bool whole =
          node.machine->kubelet().spec().hybrid && resource == cluster::kWholeGpuResource;
      if (!cluster::IsSliceResource(resource) && !whole) continue;
      resources.insert(resources.end(), static_cast<size_t>(amount.Value()), resource);
    }
  }
}

std::vector<std::string> SlicesOf(const std::vector<const cluster::Pod*>& pods) {
  std::vector<std::string> slices;
  for (const cluster::Pod* pod : pods) {
    for (const auto& [resource, amount] : cluster::PodRequests(*pod)) {
      if (resource.find('/') == std::string::npos) continue;
      slices.insert(slices.end(), static_cast<size_t>(amount.Value()), resource);
    }
  }
  return slices;
}

using Shares = std::vector<std::vector<const cluster::Pod*>>;  // by node

// Tries every way to spread the pods from `next` on over the nodes, beside what these have of them.
bool Spread(const std::vector<const cluster::Pod*>& pods, size_t next,
            const std::vector<Judged>& nodes, Shares& shares) {
  if (next == pods.size()) return true;
  for (size_t i = 0; i < nodes.size(); ++i) {
    shares[i].push_back(pods[next]);
    if (CouldRun(shares[i], nodes[i], false) && Spread(pods, next + 1, nodes, shares)) return true;
    shares[i].pop_back();
  }
  return false;
}

}  // namespace

bool ToleratesTaints(const cluster::Pod& pod, const cluster::Node& node) {
  return std::ranges::all_of(node.taints, [&](const auto& taint) { return Tolerates(pod, taint); });
}

bool CouldRunTogether(const std::vector<const cluster::Pod*>& pods,
                      const std::vector<Judged>& nodes) {
  Shares shares(nodes.size());
  return Spread(pods, 0, nodes, shares);
}

bool CouldRun(const std::vector<const cluster::Pod*>& pods, const Judged& node, bool empty) {
  const auto served = [](const cluster::Pod* pod) {
    return !scheduling::AsksForSeveralShares(*pod);
  };
  if (!std::ranges::all_of(pods, served)) return false;
  const VirtualNode& kubelet = node.machine->kubelet();
  if (kubelet.down() || kubelet.removed()) return false;
  if (!std::ranges::all_of(pods, [&](const auto* pod) { return Admits(*node.node, *pod); })) {
    return false;
  }
  std::vector<const cluster::Pod*> all = pods;
  if (!empty) all.insert(all.end(), node.bound.begin(), node.bound.end());
  if (!HasRoom(kubelet.spec(), all)) return false;
  std::vector<std::string> slices = SlicesOf(pods);
  if (slices.empty()) return true;
  if (node.machine->gpus() == nullptr || !kubelet.spec().managed) return false;
  if (!empty) AddPromised(node, slices);
  std::vector<const gpu::Model*> others;
  for (size_t i = 0; i < node.machine->gpu_count(); ++i) others.push_back(node.machine->other(i));
  return Search(std::move(slices), UsedGpus(node, empty), std::move(others)).Run();
}

}  // namespace nos::sim
