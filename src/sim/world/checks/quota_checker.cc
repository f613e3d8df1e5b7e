#include "sim/world/checks/quota_checker.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "quota/charge.h"
#include "sim/world/node/invariants.h"

namespace nos::sim {
namespace {

bool HasNode(const QuotaChecker::Pod& pod) {
  return pod != nullptr && !pod->node_name.empty() && !pod->Finished();
}

bool Leaves(const cluster::Pod& pod) {
  const auto* target = pod.FindCondition("DisruptionTarget");
  return target != nullptr && target->status == "True";
}

quota::Amounts ChargeOf(const cluster::Pod& pod) { return quota::ChargeOf(pod, nullptr, {}); }

// Between the decision for a pod and its binding: instances are created for it meanwhile. Pods that
// min covers find room in this time, whichever pods borrow.
constexpr Duration kPreparation = std::chrono::seconds(10);

bool Lingers(Time then, Time now) { return then != Time::min() && now - then <= kFaultsLinger; }

}  // namespace

void QuotaChecker::SetQuotas(std::vector<PlainQuota> quotas, Time now) {
  quotas_ = std::move(quotas);
  disturbed_ = now;
  quotas_set_ = true;
}

const PlainQuota* QuotaChecker::QuotaOf(const std::string& ns) const {
  const auto found = std::ranges::find_if(quotas_, [&](const PlainQuota& quota) {
    return std::ranges::count(quota.namespaces, ns) > 0;
  });
  return found == quotas_.end() ? nullptr : &*found;
}

quota::Amount QuotaChecker::UsedBy(const PlainQuota& quota, cluster::ResourceId resource,
                                   bool with_leaving) const {
  quota::Amount used = 0;
  for (const auto& [uid, held] : held_) {
    if (held.leaves && !with_leaving) continue;
    if (std::ranges::count(quota.namespaces, held.ns) > 0) used += held.charge.Get(resource);
  }
  return used;
}

quota::Amount QuotaChecker::BoundLately(const PlainQuota& quota, cluster::ResourceId resource,
                                        Time now) const {
  quota::Amount used = 0;
  for (const auto& [uid, held] : held_) {
    if (held.leaves || now - held.since > kPreparation) continue;
    if (std::ranges::count(quota.namespaces, held.ns) > 0) used += held.charge.Get(resource);
  }
  return used;
}

quota::Amount QuotaChecker::PerhapsUsedBy(const PlainQuota& quota, cluster::ResourceId resource,
                                          Time now) const {
  quota::Amount used = UsedBy(quota, resource, false);
  for (const Left& one : left_) {
    if (!Lingers(one.when, now)) continue;
    if (std::ranges::count(quota.namespaces, one.ns) > 0) used += one.charge.Get(resource);
  }
  for (const Pod& pod : reserved_) {
    if (std::ranges::count(quota.namespaces, pod->meta.ns) == 0) continue;
    used += ChargeOf(*pod).Get(resource);
  }
  return used;
}

void QuotaChecker::See(const Pod& before, const Pod& after, Time now) {
  std::erase_if(left_, [&](const Left& one) { return !Lingers(one.when, now); });
  const bool had_node = HasNode(before);
  const bool stays =
      HasNode(after) && !Leaves(*after) && had_node && before->meta.uid == after->meta.uid;
  if (had_node && !Leaves(*before) && !stays) {
    left_.push_back({before->meta.ns, ChargeOf(*before), now});
    OnLeaving(left_.back().charge);
  }
  Time since = now;
  if (had_node) {
    const auto held = held_.extract(before->meta.uid);
    if (!held.empty() && HasNode(after) && before->meta.uid == after->meta.uid) {
      since = held.mapped().since;
    }
  }
  if (!HasNode(after)) return;
  held_[after->meta.uid] = {after->meta.ns, ChargeOf(*after), Leaves(*after), since};
  if (!had_node && !Lingers(disturbed_, now)) CheckBinding(*after, now);
}

void QuotaChecker::CheckBinding(const cluster::Pod& pod, Time now) {
  const PlainQuota* quota = QuotaOf(pod.meta.ns);
  if (quota == nullptr) return;
  const quota::Amounts charge = ChargeOf(pod);
  for (const quota::Amounts::Entry& asked : charge.entries()) {
    const cluster::ResourceId resource = asked.first;
    const auto describe = [&](quota::Amount used, std::string_view by, quota::Amount limit) {
      return fmt::format("{} is bound, and {} of {} are used {}: more than {}", pod.Key(),
                         quota::TextOf(resource, used), cluster::ResourceName(resource), by,
                         quota::TextOf(resource, limit));
    };
    const auto max = quota->max.Named(resource);
    const quota::Amount used = UsedBy(*quota, resource, true);
    if (max && used > *max) problems_.push_back(describe(used, "by " + quota->name, *max));
    const auto own_min = quota->min.Named(resource);
    if (!own_min || used <= *own_min) continue;  // borrows nothing
    quota::Amount all_use = 0, all_have = 0;
    for (const PlainQuota& each : quotas_) {
      const auto min = each.min.Named(resource);
      if (!min) continue;
      const quota::Amount theirs = UsedBy(each, resource, &each == quota);
      const bool guaranteed = &each != quota && theirs <= *min;
      all_use += theirs - (guaranteed ? BoundLately(each, resource, now) : 0);
      all_have += *min;
    }
    if (all_use <= all_have) continue;
    // A guaranteed pod may have found room beside a borrower: then there was an excess before.
    excesses_.push_back({now, resource, std::min(all_use - all_have, asked.second),
                         describe(all_use, "by all", all_have)});
  }
}

bool QuotaChecker::MayTake(const cluster::Pod& victim, const cluster::Pod& claimant,
                           Time now) const {
  if (!quotas_set_) return victim.meta.ns != claimant.meta.ns;
  if (Lingers(disturbed_, now)) return true;
  const PlainQuota* ours = QuotaOf(claimant.meta.ns);
  const PlainQuota* theirs = QuotaOf(victim.meta.ns);
  if (ours == nullptr || ours == theirs) return false;
  if (theirs == nullptr) return true;
  const auto is_beyond_min = [&](const quota::Amounts::Entry& entry) {
    const auto min = theirs->min.Named(entry.first);
    return min && PerhapsUsedBy(*theirs, entry.first, now) > *min;
  };
  const auto is_named = [&](const quota::Amounts::Entry& entry) {
    return entry.second > 0 && theirs->min.Named(entry.first);
  };
  const quota::Amounts asked = ChargeOf(claimant), held = ChargeOf(victim);
  return std::ranges::any_of(asked.entries(), is_beyond_min) ||
         std::ranges::any_of(held.entries(), is_beyond_min) ||
         std::ranges::none_of(held.entries(), is_named);
}

void QuotaChecker::OnLeaving(const quota::Amounts& charge) {
  for (Excess& excess : excesses_) excess.amount -= charge.Get(excess.resource);
  std::erase_if(excesses_, [](const Excess& excess) { return excess.amount <= 0; });
}

std::vector<std::string> QuotaChecker::TakeProblems(Time now) {
  std::erase_if(excesses_, [&](Excess& excess) {
    if (now < excess.since + kEvictionRepeats) return false;
    problems_.push_back(std::move(excess.problem));
    return true;
  });
  return std::exchange(problems_, {});
}

}  // namespace nos::sim
