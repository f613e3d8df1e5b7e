#include "sim/world/checks/satisfiable.h"

#include <algorithm>
#include <bit>
#include <functional>
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

using Counts = std::vector<int>;  // number of slices by kind

bool Within(const Counts& small, const Counts& large) {
  return std::ranges::equal(small, large, std::less_equal());
}

// Exhaustive search over placements. It merges states with equal remainders: for the remaining GPUs
// only the number of each kind that is already placed matters.
class Search {
 public:
  explicit Search(const std::vector<std::string>& slices) {
    for (const std::string& slice : slices) {
      const auto kind = std::ranges::find(kinds_, slice) - kinds_.begin();
      if (kind == std::ssize(kinds_)) {
        kinds_.push_back(slice);
        asked_.push_back(0);
      }
      ++asked_[static_cast<size_t>(kind)];
    }
  }

  bool Run(const std::vector<gpu::Occupancy>& gpus, const std::vector<const gpu::Model*>& others) {
    const Counts nothing(asked_.size());
    std::vector<Counts> left = {asked_};  // minimal remainders after the GPUs so far
    for (size_t g = 0; g < gpus.size() && left.front() != nothing; ++g) {
      std::set<Counts> most = MostOn(gpus[g]);
      const bool may_switch = others[g] != nullptr && gpus[g].taken_slots() == 0;
      if (may_switch) most.merge(MostOn(gpu::Occupancy(*others[g])));
      left = Least(left, most);
    }
    return left.front() == nothing;
  }

 private:
  // The maximal sets of instances on the GPU.
  std::set<Counts> MostOn(const gpu::Occupancy& on) const {
    std::set<Counts> most;
    Counts counts(asked_.size());
    if (on.model().counted()) {
      AddShares(0, on, counts, most);
      return most;
    }
    const gpu::LayoutTable& table = on.model().layouts();
    std::vector<size_t> kinds;  // by placement
    for (const gpu::Placement& placement : table.placements()) {
      const std::string& name = on.model().profile(placement.profile).resource_name;
      kinds.push_back(static_cast<size_t>(std::ranges::find(kinds_, name) - kinds_.begin()));
    }
    std::set<gpu::LayoutId> seen;
    AddInstances(table, kinds, on.layout(), counts, seen, most);
    return most;
  }

  // For shares all placements are equivalent.
  void AddShares(size_t kind, gpu::Occupancy on, Counts& counts, std::set<Counts>& most) const {
    if (kind == kinds_.size()) {
      most.insert(counts);
      return;
    }
    const auto profile = on.model().FindProfile(kinds_[kind]);
    for (counts[kind] = 0;; ++counts[kind]) {
      AddShares(kind + 1, on, counts, most);
      const auto place = profile ? on.FirstPlace(*profile) : std::nullopt;
      if (!place || counts[kind] == asked_[kind] || !on.Add(*place)) break;
    }
    counts[kind] = 0;
  }

  void AddInstances(const gpu::LayoutTable& table, const std::vector<size_t>& kinds,
                    gpu::LayoutId layout, Counts& counts, std::set<gpu::LayoutId>& seen,
                    std::set<Counts>& most) const {
    if (!seen.insert(layout).second) return;
    bool full = true;
    for (uint64_t left = table.Addable(layout); left != 0; left &= left - 1) {
      const auto placement = static_cast<gpu::PlacementId>(std::countr_zero(left));
      const size_t kind = kinds[placement];
      if (kind == kinds_.size() || counts[kind] == asked_[kind]) continue;
      full = false;
      ++counts[kind];
      AddInstances(table, kinds, table.Add(layout, placement), counts, seen, most);
      --counts[kind];
    }
    if (full) most.insert(counts);
  }

  // The remainders after each combination of `before` and `most`, without those that
  // contain another one.
  static std::vector<Counts> Least(const std::vector<Counts>& before,
                                   const std::set<Counts>& most) {
    std::set<Counts> all;
    for (const Counts& left : before) {
      for (const Counts& served : most) {
        Counts rest(left.size());
        std::ranges::transform(left, served, rest.begin(),
                               [](int a, int b) { return std::max(0, a - b); });
        all.insert(std::move(rest));
      }
    }
    std::vector<Counts> least;  // a remainder sorts after the remainders that it contains
    for (const Counts& rest : all) {
      const bool more =
          std::ranges::any_of(least, [&](const Counts& known) { return Within(known, rest); });
      if (!more) least.push_back(rest);
    }
    return least;
  }

  std::vector<std::string> kinds_;  // resource names
  Counts asked_;
};

int64_t HeldOf(const RunningPod& pod, const std::string& resource) {
  return std::ranges::count(pod.devices, resource, &kubelet::DeviceAssignment::resource);
}

// Schedulers count the requests of ended init containers as long as the pod exists, so nos keeps as
// many instances for it. The choice of the instances is up to nos.
std::set<std::string> Kept(const CheckedNode& node) {
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

bool Answers(const Machine& machine, size_t gpu) {
  return !machine.lost_gpus().contains(static_cast<int>(gpu));
}

// Instances that pods hold or that are kept for them, on the GPUs that answer.
std::vector<gpu::Occupancy> UsedGpus(const CheckedNode& node, bool empty) {
  const Machine& machine = *node.machine;
  const std::set<std::string> kept = Kept(node);
  std::vector<gpu::Occupancy> gpus;
  for (size_t i = 0; i < machine.gpu_count(); ++i) {
    if (!Answers(machine, i)) continue;
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

// Slices of bound pods that the kubelet has not allocated yet: they will take capacity too.
void AddPromised(const CheckedNode& node, std::vector<std::string>& resources) {
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

// Slices that pods hold on GPUs that do not answer. The kubelet does not count them, but schedulers
// subtract them from what the other GPUs of the node have.
void AddWithheld(const Machine& machine, std::vector<std::string>& resources) {
  for (size_t i = 0; i < machine.gpu_count(); ++i) {
    if (Answers(machine, i)) continue;
    for (const auto& instance : machine.Instances(i)) {
      const RunningPod* holder = machine.kubelet().Holder(instance.uuid);
      if (holder == nullptr) continue;
      for (const auto& held : holder->devices) {
        if (held.device_id == instance.uuid) resources.push_back(held.resource);
      }
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

// Tries all distributions of the pods from `next` on over the nodes, in addition to the pods
// already in `shares`.
bool Spread(const std::vector<const cluster::Pod*>& pods, size_t next,
            const std::vector<CheckedNode>& nodes, Shares& shares) {
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
                      const std::vector<CheckedNode>& nodes) {
  Shares shares(nodes.size());
  return Spread(pods, 0, nodes, shares);
}

bool CouldRun(const std::vector<const cluster::Pod*>& pods, const CheckedNode& node, bool empty) {
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
  const bool claims =
      std::ranges::any_of(pods, [](const auto* pod) { return !pod->claims.empty(); });
  if (claims && (!node.serves_claims || !node.serves_claims(pods, empty))) return false;
  std::vector<std::string> slices = SlicesOf(pods);
  if (slices.empty()) return true;
  if (node.machine->gpus() == nullptr || !kubelet.spec().managed) return false;
  if (!empty) {
    AddPromised(node, slices);
    AddWithheld(*node.machine, slices);
  }
  std::vector<const gpu::Model*> others;
  for (size_t i = 0; i < node.machine->gpu_count(); ++i) {
    if (Answers(*node.machine, i)) others.push_back(node.machine->alternative(i));
  }
  return CanHold(slices, UsedGpus(node, empty), others);
}

bool CanHold(const std::vector<std::string>& slices, const std::vector<gpu::Occupancy>& gpus,
             const std::vector<const gpu::Model*>& others) {
  return Search(slices).Run(gpus, others);
}

}  // namespace nos::sim
