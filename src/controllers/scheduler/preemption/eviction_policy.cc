#include "controllers/scheduler/preemption/eviction_policy.h"

#include <algorithm>
#include <vector>

#include "controllers/gangs.h"
#include "controllers/relocations.h"
#include "quota/charge.h"
#include "scheduling/framework.h"

namespace nos::controllers {

bool EvictionPolicy::HasQuota(const scheduling::Framework& framework,
                              const cluster::Pod& pod) const {
  return framework.quotas() != nullptr &&
         engine_.ledger().balance().AccountOf(pod.meta.ns).has_value();
}

bool EvictionPolicy::MayPreempt(const SchedulerProfile& profile, const cluster::Pod& pod) const {
  if (pod.preemption_policy == "Never" || IsPlaceholder(pod)) return false;
  if (HasQuota(*profile.framework, pod)) return profile.reclaims;
  const auto least = engine_.LeastPriority();
  return profile.preemption && least && *least < pod.priority;
}

bool EvictionPolicy::MayEvict(const SchedulerProfile& profile, const cluster::Pod& pod,
                              const cluster::Pod& other) const {
  if (other.priority >= pod.priority || HasQuota(*profile.framework, other)) return false;
  const std::string gang = GangOf(other);
  const auto context = engine_.snapshot().ShareContext();
  return gang.empty() || gang != GangOf(pod) || context == nullptr ||
         SizeOfGang(pod, *context).least <= 1;
}

bool EvictionPolicy::MayReclaimFrom(const cluster::Pod& pod, const cluster::Pod& bound) const {
  const quota::Balance& balance = engine_.ledger().balance();
  const auto own = balance.AccountOf(pod.meta.ns), theirs = balance.AccountOf(bound.meta.ns);
  const quota::Amounts* charge = engine_.ledger().ChargeOf(bound.Key());
  if (!own || !theirs || own == theirs || charge == nullptr) return false;
  const auto parts = quota::ChargePartsOf(pod, nullptr, engine_.charge_rules());
  const quota::Amounts asked = engine_.ledger().WithoutOthers(parts, pod.Key()).Total();
  const bool guaranteed = balance.IsGuaranteed(*own, asked) || quota::DependsOnNode(pod);
  if (!guaranteed && !balance.WithinShare(balance.PathOf(*own).front(), asked)) return false;
  return std::ranges::any_of(charge->entries(), [&](const auto& entry) {
    const std::vector<quota::Member> path = balance.PathOf(*theirs, entry.first);
    if (path.empty()) return false;
    return guaranteed ? balance.IsBeyondMin(path.front(), entry.first)
                      : balance.IsBeyondShare(path.front(), entry.first);
  });
}

}  // namespace nos::controllers
