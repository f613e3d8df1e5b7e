#include "planning/scaling/growth_hosts.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "planning/translation/pod_classes.h"
#include "scheduling/framework.h"

namespace nos::planning {
namespace {

constexpr size_t kMaxHosts = 200;
// Kinds of pods for which nodes are checked; the most frequent ones are kept.
constexpr size_t kMaxKinds = 32;

// Pods of gangs with equal requests and constraints.
struct Kind {
  const cluster::Pod* pod = nullptr;
  cluster::ResourceVector requests;
  int64_t count = 0;
};

std::vector<Kind> KindsOf(Pods unplaced, const scheduling::FrameworkChoice& frameworks,
                          const PlanOptions& options) {
  std::map<std::string, size_t> known;
  std::vector<Kind> kinds;
  for (const Gang& gang : options.gangs) {
    if (IsHopeless(gang)) continue;
    for (const int member : gang.members) {
      const cluster::Pod& pod = *unplaced[static_cast<size_t>(member)];
      cluster::ResourceVector requests = cluster::RequestsOf(pod);
      std::string key = std::to_string(frameworks.IndexFor(pod)) + ConstraintKey(pod);
      for (const auto& [id, amount] : requests.entries()) {
        key += " " + std::to_string(id) + "=" + std::to_string(amount);
      }
      const auto [at, fresh] = known.try_emplace(std::move(key), kinds.size());
      if (fresh) kinds.push_back({&pod, std::move(requests), 0});
      ++kinds[at->second].count;
    }
  }
  std::ranges::stable_sort(kinds, std::ranges::greater(), &Kind::count);
  return kinds;
}

int64_t FreeSlots(const cluster::NodeInfo& node) {
  int64_t free = 0;
  for (const cluster::Gpu& gpu : node.gpus.gpus) {
    int64_t used = 0;
    for (const cluster::Instance& instance : gpu.instances) {
      if (instance.used) used += gpu.model->profile(instance.placement.profile).slots;
    }
    const int slots =
        std::max(gpu.model->slots(), gpu.alternative == nullptr ? 0 : gpu.alternative->slots());
    free += std::max<int64_t>(slots - used, 0);
  }
  return free;
}

// True if one more instance fits beside the used ones.
bool MayHold(const cluster::Gpu& gpu, const std::string& resource) {
  if (gpu.fixed) {
    return std::ranges::any_of(gpu.instances, [&](const cluster::Instance& instance) {
      const auto& profile = gpu.model->profile(instance.placement.profile);
      return !instance.used && profile.resource_name == resource;
    });
  }
  const auto fits = [&](const gpu::Model& model, bool empty) {
    const auto profile = model.FindProfile(resource);
    if (!profile || model.counted()) return profile.has_value();
    const gpu::LayoutId used = empty ? gpu::LayoutTable::kEmpty : gpu.UsedLayout();
    return used != gpu::LayoutTable::kIllegal && model.layouts().Copies(used, *profile) > 0;
  };
  return fits(*gpu.model, false) || (gpu.MaySwitch() && fits(*gpu.alternative, true));
}

// Checks whether a pod of one kind fits on a node, and about how many do.
class Asker {
 public:
  Asker(const Kind& kind, const cluster::ClusterSnapshot& snapshot,
        const scheduling::FrameworkChoice& frameworks)
      : kind_(kind), cycle_(frameworks.For(*kind.pod).PreFilter(*kind.pod, snapshot)) {}

  int64_t RoomOn(const cluster::NodeInfo& node, int64_t free_slots) const {
    int64_t most = kind_.count;
    for (const auto& [id, amount] : kind_.requests.entries()) {
      if (amount <= 0) continue;
      // An estimate: several time slices may occupy the slots of one instance.
      const int64_t copies = cluster::IsManagedOn(node, id)
                                 ? std::max<int64_t>(free_slots / amount, 1)
                                 : (node.allocatable.Get(id) - node.requested.Get(id)) / amount;
      most = std::min(most, copies);
    }
    if (most <= 0 || !VerdictNow(cycle_, *kind_.pod, node).fits()) return 0;
    return HasSlices(node) ? most : 0;
  }

 private:
  // Checks one slice of each resource; the search checks them together.
  bool HasSlices(const cluster::NodeInfo& node) const {
    return std::ranges::all_of(kind_.requests.entries(), [&](const auto& entry) {
      const auto& [id, amount] = entry;
      if (amount <= 0 || !cluster::IsManagedOn(node, id)) return true;
      const std::string& name = cluster::ResourceName(id);
      return std::ranges::any_of(node.gpus.gpus,
                                 [&](const cluster::Gpu& gpu) { return MayHold(gpu, name); });
    });
  }

  const Kind& kind_;
  const scheduling::Cycle cycle_;
};

}  // namespace

GangHosts HostsForGangs(const cluster::ClusterSnapshot& snapshot, Pods unplaced,
                        const scheduling::FrameworkChoice& frameworks, const PlanOptions& options) {
  GangHosts hosts;
  std::vector<Kind> kinds = KindsOf(unplaced, frameworks, options);
  if (kinds.empty()) return hosts;
  hosts.all = kinds.size() <= kMaxKinds;
  if (!hosts.all) kinds.resize(kMaxKinds);
  std::vector<Asker> askers;
  askers.reserve(kinds.size());
  for (const Kind& kind : kinds) askers.emplace_back(kind, snapshot, frameworks);
  std::vector<std::pair<int64_t, std::string>> order;
  for (size_t n = 0; n < snapshot.size(); ++n) {
    if (n % 64 == 0 && options.out_of_time && options.out_of_time()) {
      hosts.all = false;
      break;
    }
    const cluster::NodeInfo& node = snapshot.node(n);
    if (node.node->unschedulable) continue;
    const int64_t free_slots = FreeSlots(node);
    int64_t most = 0;
    for (const Asker& asker : askers) most = std::max(most, asker.RoomOn(node, free_slots));
    if (most > 0) order.emplace_back(-most, node.node->meta.name);
  }
  std::ranges::sort(order);
  hosts.all = hosts.all && order.size() <= kMaxHosts;
  if (order.size() > kMaxHosts) order.resize(kMaxHosts);
  for (auto& [most, name] : order) hosts.names.insert(std::move(name));
  return hosts;
}

}  // namespace nos::planning
