#include "sim/world/run/chaos_progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "sim/specs.h"
#include "sim/world/node/invariants.h"

namespace nos::sim {
namespace {

// Longer, because placeholders come and go, drains take time, and pools back off.
constexpr Duration kPoolsBound = std::chrono::minutes(15);

// True if all pods bound to the node are among these.
bool AllMayGo(const CheckedNode& node, const ProgressChecker::Pods& may_go) {
  return std::ranges::all_of(node.bound, [&](const cluster::Pod* pod) {
    return std::ranges::count(may_go, pod, &std::shared_ptr<const cluster::Pod>::get) > 0;
  });
}

}  // namespace

std::vector<CheckedNode> ProgressChecker::CheckedNodes(const Pods& pods) {
  std::vector<CheckedNode> nodes;
  if (options_.claims) cluster_.claims.Refresh();
  nodes_ = world_.Nodes();
  for (const auto& node : nodes_) {
    const Machine* machine = world_.FindMachine(node->meta.name);
    if (machine == nullptr || node->meta.name == excluded_) continue;
    nodes.push_back({node.get(), machine, {}});
    if (options_.claims) {
      nodes.back().serves_claims = [this, name = node->meta.name](const auto& all, bool empty) {
        return cluster_.claims.CouldServe(all, name, empty);
      };
    }
    for (const auto& pod : pods) {
      const bool here = pod->node_name == node->meta.name && !pod->Finished();
      if (here) nodes.back().bound.push_back(pod.get());
    }
  }
  return nodes;
}

// The key of a pending pod that could run while no pod with precedence could; "" if there is
// none.
std::string ProgressChecker::Neglected(const Pods& pods) {
  const std::vector<CheckedNode> nodes = CheckedNodes(pods);
  const auto could = [&](const cluster::Pod& pod) {
    return std::any_of(nodes.begin(), nodes.end(),
                       [&](const CheckedNode& node) { return CouldRun({&pod}, node, true); });
  };
  for (const auto& pod : pods) {
    if (!Waits(*pod) || IsExcluded(*pod)) continue;
    const auto together = PlacedWith(*pod, pods);
    if (together.empty() || !HavePlaces(together, nodes, pods)) continue;
    const bool yields = std::any_of(pods.begin(), pods.end(), [&](const auto& other) {
      return Waits(*other) && GoesFirst(*other, *pod) && could(*other);
    });
    if (!yields) return pod->Key();
  }
  return {};
}

// True if the pods fit into free capacity, or if a quota entitles the pod to capacity that other
// pods must give up.
bool ProgressChecker::HavePlaces(const std::vector<const cluster::Pod*>& together,
                                 const std::vector<CheckedNode>& nodes, const Pods& pods) const {
  if (cluster_.quotas.LetsIn(together, pods) && CouldRunTogether(together, nodes)) return true;
  if (together.size() > 1) return false;
  const Pods may_go = cluster_.quotas.MayGoFor(*together.front(), pods);
  if (may_go.empty()) return false;
  Pods left = pods;
  std::erase_if(left, [&](const auto& pod) { return std::ranges::count(may_go, pod) > 0; });
  if (!cluster_.quotas.LetsIn(together, left)) return false;
  return std::ranges::any_of(nodes, [&](const CheckedNode& node) {
    return AllMayGo(node, may_go) && CouldRun(together, node, true);
  });
}

// The pods that must be scheduled together: the pod, and as many members of its gang as are
// missing. Empty if the gang has too few pending members.
std::vector<const cluster::Pod*> ProgressChecker::PlacedWith(const cluster::Pod& pod,
                                                             const Pods& pods) const {
  std::vector<const cluster::Pod*> together = {&pod};
  const auto gang = gangs_.find(PodGroupKeyOf(pod));
  if (gang == gangs_.end()) return together;
  size_t missing = gang->second - std::min(gang->second, CountPlaced(gang->first, pods) + 1);
  for (const auto& other : pods) {
    const bool member = PodGroupKeyOf(*other) == gang->first && other->Key() != pod.Key();
    if (missing == 0 || !member || !Waits(*other)) continue;
    together.push_back(other.get());
    --missing;
  }
  return missing == 0 ? together : std::vector<const cluster::Pod*>();
}

size_t ProgressChecker::CountPlaced(const std::string& gang, const Pods& pods) {
  return static_cast<size_t>(std::ranges::count_if(
      pods, [&](const auto& pod) { return PodGroupKeyOf(*pod) == gang && HasPlace(*pod); }));
}

bool ProgressChecker::IsExcluded(const cluster::Pod& pod) const {
  return !excluded_.empty() &&
         std::ranges::count(pod.tolerations, tolerated_.key, &cluster::Toleration::key) > 0;
}

// True if capacity may be kept free for `other` although `pod` could use it now.
bool ProgressChecker::GoesFirst(const cluster::Pod& other, const cluster::Pod& pod) const {
  if (world_.Now() - other.meta.created < world_.options().partitioner.hold_after) {
    return false;
  }
  const auto claim = [](const cluster::Pod& of) {
    return std::tuple(-of.priority, of.meta.created, of.Key());
  };
  return claim(other) < claim(pod);
}

std::optional<std::string> ProgressChecker::Check() {
  const auto pods = world_.Pods();
  for (const auto& pod : pods) {
    if (!pod->node_name.empty() && pod->node_name != excluded_ &&
        bound_.insert(pod->meta.uid).second)
      last_bind_ = world_.Now();
  }
  const std::string neglected = Neglected(pods);
  if (neglected.empty()) last_bind_ = world_.Now();
  const Duration bound = options_.pools ? kPoolsBound : options_.bound;
  if (world_.Now() - last_bind_ <= bound) return std::nullopt;
  return fmt::format("{} could run, but no pod has been bound for {}", neglected, FormatAge(bound));
}

bool ProgressChecker::AtRest() {
  if (world_.Now() < start_ + options_.faults_last + kFaultsLinger) return false;
  const auto pods = world_.Pods();
  const bool busy = std::any_of(pods.begin(), pods.end(), [](const auto& pod) {
    const bool endless = !pod->meta.annotations.contains(kRunSeconds);
    const bool up = pod->phase == "Running" && endless;
    return !pod->node_name.empty() && !pod->Finished() && !up;
  });
  const controllers::Scheduler* scheduler = world_.controllers().scheduler();
  if (busy || (scheduler != nullptr && scheduler->bindings() + scheduler->departed() > 0)) {
    return false;
  }
  return Neglected(pods).empty() && Restless(pods).empty();
}

std::vector<std::string> ProgressChecker::Restless(const Pods& pods) {
  if (!options_.pools) return {};
  Pods waiting;
  std::ranges::copy_if(pods, std::back_inserter(waiting), [&](const auto& pod) {
    return Waits(*pod) && PodGroupKeyOf(*pod).empty() && cluster_.quotas.LetsIn({pod.get()}, pods);
  });
  return cluster_.pools.Restless(world_, waiting);
}

std::vector<std::string> ProgressChecker::Entitled(std::string_view ns) {
  Pods pods = world_.Pods();
  const std::vector<CheckedNode> nodes = CheckedNodes(pods);
  Pods waiting;
  std::ranges::copy_if(pods, std::back_inserter(waiting),
                       [&](const auto& pod) { return Waits(*pod) && pod->meta.ns == ns; });
  std::ranges::sort(waiting, {}, [](const auto& pod) {
    return std::tuple(-pod->priority, pod->meta.created, pod->meta.name);
  });
  std::vector<std::string> entitled;
  std::vector<std::vector<const cluster::Pod*>> placed(nodes.size());
  for (const auto& pod : waiting) {
    const Pods may_go = cluster_.quotas.MayGoFor(*pod, pods);
    for (size_t i = 0; i < nodes.size() && cluster_.quotas.IsGuaranteed(*pod, pods); ++i) {
      placed[i].push_back(pod.get());
      if (AllMayGo(nodes[i], may_go) && CouldRun(placed[i], nodes[i], true)) {
        entitled.push_back(pod->Key());
        auto bound = std::make_shared<cluster::Pod>(*pod);
        bound->node_name = nodes[i].node->meta.name;
        pods.push_back(std::move(bound));
        std::erase(pods, pod);
        break;
      }
      placed[i].pop_back();
    }
    // Free capacity is checked for one pod only.
    const bool alone = entitled.empty() && cluster_.quotas.IsGuaranteed(*pod, pods) &&
                       HavePlaces({pod.get()}, nodes, pods);
    if (alone) return {pod->Key()};
  }
  return entitled;
}

int ProgressChecker::CountWhole(const Pods& pods) const {
  return static_cast<int>(std::ranges::count_if(
      gangs_, [&](const auto& gang) { return CountPlaced(gang.first, pods) >= gang.second; }));
}

}  // namespace nos::sim
