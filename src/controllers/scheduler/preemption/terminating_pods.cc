#include "controllers/scheduler/preemption/terminating_pods.h"

#include <algorithm>

#include "cluster/pod_end.h"
#include "controllers/scheduler/pods.h"
#include "reconcile/condition.h"
#include "scheduling/lost_node.h"

namespace nos::controllers {
namespace {

// True if both are the same quota or have a common ancestor with limits.
bool SharesLimits(const quota::Balance& balance, size_t a, size_t b) {
  if (a == b) return true;
  const std::vector<quota::Member> others = balance.PathOf(b);
  return std::ranges::any_of(balance.PathOf(a), [&](const quota::Member& member) {
    const quota::Terms& terms = balance.terms(member.account);
    return (!terms.max.empty() || !terms.borrowing_limit.empty()) &&
           std::ranges::find(others, member.account, &quota::Member::account) != others.end();
  });
}

}  // namespace

void TerminatingPods::OnPod(const std::string& key, const Pod& after, bool successor, Time now,
                            std::optional<Time> at_least) {
  const bool ends = after != nullptr && scheduling::EndsByPreemption(*after);
  const auto evicted = evicted_.find(key);
  if (evicted != evicted_.end()) {
    const bool shown = ends && after->meta.deleted != evicted->second.shortens;
    if (shown && !at_least) at_least = evicted->second.at_least;
    if (after == nullptr || successor || shown) evicted_.erase(evicted);
  }
  if (ends && RunsSomewhere(after)) {
    const auto known = terminating_.find(key);
    const bool same = known != terminating_.end() && !successor;
    // The API server's clock may be behind this one, so the deletionTimestamp may seem to be over
    // at once. The pod's grace period begins no later than when its deletion is first seen.
    if (!at_least) {
      at_least = same ? known->second.at_least
                      : now + std::min(cluster::GracePeriodOf(*after), max_grace_);
    }
    const Time due =
        std::max(after->meta.deleted.value_or(Time::min()), at_least.value_or(Time::min()));
    const bool counts = due <= LatestEnd(now) && now < due + kOverdue;
    terminating_.insert_or_assign(key, Terminating{at_least.value_or(Time::min()), due, counts});
  } else {
    terminating_.erase(key);
  }
  engine_.SetLeaving(key, Counts(key));
}

std::vector<TerminatingPods::Pod> TerminatingPods::TakeOverdue(Time now) {
  std::vector<Pod> overdue;
  for (auto& [key, pod] : terminating_) {
    if (!pod.counts || now < pod.due + kOverdue) continue;
    pod.counts = false;
    engine_.SetLeaving(key, Counts(key));
    const auto* placed = engine_.FindPlaced(key);
    if (placed != nullptr) overdue.push_back(placed->pod);
  }
  return overdue;
}

std::optional<Time> TerminatingPods::NextDue() const {
  std::optional<Time> next;
  for (const auto& [key, pod] : terminating_) {
    if (pod.counts) next = std::min(next.value_or(Time::max()), pod.due + kOverdue);
  }
  return next;
}

bool TerminatingPods::MarkEvicted(const Pod& pod, bool for_quota, Time now) {
  Eviction eviction{for_quota, std::nullopt, std::nullopt};
  if (for_quota && pod->meta.deleted.value_or(Time::min()) > LatestEnd(now)) {
    eviction.shortens = pod->meta.deleted;
    // The API server counts the shorter period from the first deletion, the kubelet from now
    // (kubernetes 1.34.2, apiserver pkg/registry/rest/delete.go, pkg/kubelet/pod_workers.go).
    eviction.at_least = now + max_grace_;
  }
  if (!evicted_.emplace(pod->Key(), eviction).second) return false;
  engine_.SetLeaving(pod->Key(), true);
  return true;
}

void TerminatingPods::EvictionFailed(const std::string& key) {
  evicted_.erase(key);
  engine_.SetLeaving(key, Counts(key));
}

bool TerminatingPods::Counts(const std::string& key) const {
  const auto pod = terminating_.find(key);
  return evicted_.contains(key) || (pod != terminating_.end() && pod->second.counts);
}

std::vector<TerminatingPods::Pod> TerminatingPods::All() const {
  std::vector<Pod> all;
  const auto add = [&](const std::string& key) {
    const auto* placed = engine_.FindPlaced(key);
    if (placed != nullptr && !IsOnLostNode(*placed)) all.push_back(placed->pod);
  };
  for (const auto& [key, eviction] : evicted_) add(key);
  for (const auto& [key, pod] : terminating_) {
    if (pod.counts && !evicted_.contains(key)) add(key);
  }
  return all;
}

std::vector<TerminatingPods::Pod> TerminatingPods::OnLostNodes(const cluster::Pod& seen_by) const {
  const quota::Balance& balance = engine_.ledger().balance();
  const auto own = balance.AccountOf(seen_by.meta.ns);
  std::vector<Pod> leaving;
  for (const auto& [key, pod] : terminating_) {
    const auto* placed = engine_.FindPlaced(key);
    if (placed == nullptr || !IsOnLostNode(*placed)) continue;
    const auto theirs = balance.AccountOf(placed->pod->meta.ns);
    if (!own || !theirs || !SharesLimits(balance, *own, *theirs)) leaving.push_back(placed->pod);
  }
  return leaving;
}

std::vector<TerminatingPods::Pod> TerminatingPods::RestOfGangs(
    const std::vector<Pod>& leaving) const {
  std::vector<Pod> rest;
  std::set<std::string> known;
  for (const Pod& pod : leaving) known.insert(pod->Key());
  const auto context = engine_.snapshot().ShareContext();
  for (const Pod& pod : leaving) {
    const auto evicted = evicted_.find(pod->Key());
    if (evicted != evicted_.end() ? !evicted->second.for_quota
                                  : reconcile::WhyReclaimed(*pod) == nullptr)
      continue;
    const scheduling::EvictionUnit unit = UnitOf(pod);
    const auto stay = std::ranges::count_if(
        unit, [&](const Pod& member) { return !known.contains(member->Key()); });
    if (unit.size() == 1 || stay >= SizeOfGang(*pod, *context).least) continue;
    for (const Pod& member : unit) {
      if (known.insert(member->Key()).second) rest.push_back(member);
    }
  }
  return rest;
}

scheduling::EvictionUnit TerminatingPods::UnitOf(const Pod& pod) const {
  const std::string gang = GangOf(*pod);
  const auto context = engine_.snapshot().ShareContext();
  if (gang.empty() || context == nullptr || SizeOfGang(*pod, *context).least <= 1) return {pod};
  scheduling::EvictionUnit unit{pod};
  for (const Pod& member : gangs_.Of(gang)) {
    const auto* placed = engine_.FindPlaced(member->Key());
    if (placed != nullptr && member->Key() != pod->Key()) unit.push_back(placed->pod);
  }
  return unit;
}

std::optional<Time> TerminatingPods::GoneFor(const cluster::Pod& nominated) const {
  std::optional<Time> last;
  for (const auto& [key, pod] : terminating_) {
    const auto* placed = engine_.FindPlaced(key);
    if (!pod.counts || placed == nullptr || IsOnLostNode(*placed)) continue;
    const std::string by = reconcile::EvictedBy(*placed->pod);
    if (!by.empty() && by != nominated.scheduler_name) continue;
    if (placed->node != nominated.nominated_node &&
        reconcile::WhyReclaimed(*placed->pod) == nullptr)
      continue;
    last = std::max(last, placed->pod->meta.deleted);
  }
  return last;
}

bool TerminatingPods::AnyOn(const std::vector<Pod>& leaving, const std::string& node) const {
  return std::ranges::any_of(
      leaving, [&](const Pod& pod) { return engine_.FindPlaced(pod->Key())->node == node; });
}

void TerminatingPods::Vacate(const std::vector<Pod>& leaving,
                             cluster::ClusterSnapshot& snapshot) const {
  for (const Pod& pod : leaving) {
    // Ignored: the snapshot may no longer have it.
    (void)snapshot.Vacate(*pod, engine_.FindPlaced(pod->Key())->node);
  }
}

bool TerminatingPods::IsOnLostNode(const scheduling::Engine::Placed& placed) const {
  const cluster::NodeInfo* info = engine_.snapshot().Find(placed.node);
  return info == nullptr || scheduling::IsLost(*info->node);
}

}  // namespace nos::controllers
