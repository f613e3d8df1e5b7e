#include "quota/ledger.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

namespace nos::quota {

void Ledger::SetQuotas(std::vector<SharedQuota> quotas) {
  balance_ = Balance(std::move(quotas));
  ranked_.assign(balance_.size(), {});
  for (const auto& [ns, use] : by_namespace_) {
    if (const auto account = balance_.AccountOf(ns)) balance_.Add(*account, use.used);
  }
}

void Ledger::SetPod(const Pod& pod, Amounts charge) {
  const auto [found, fresh] = pods_.try_emplace(pod->Key());
  Holder& holder = found->second;
  if (!fresh) Count(holder, -1);
  holder = {pod, std::move(charge)};
  Count(holder, 1);
}

void Ledger::RemovePod(const std::string& key) {
  const auto found = pods_.find(key);
  if (found == pods_.end()) return;
  Count(found->second, -1);
  pods_.erase(found);
}

void Ledger::Count(Holder& holder, int sign) {
  const std::string& ns = holder.pod->meta.ns;
  NamespaceUse& use = by_namespace_[ns];
  use.used.Add(holder.charge, sign);
  sign > 0 ? void(use.pods.insert(&holder)) : void(use.pods.erase(&holder));
  if (use.pods.empty()) by_namespace_.erase(ns);
  if (const auto account = balance_.AccountOf(ns)) {
    balance_.Add(*account, holder.charge, sign);
    Ranked& ranked = ranked_[*account];
    Outdate(*account);
    if (!ranked.order) return;
    const auto at = std::ranges::lower_bound(ranked.holders, &holder, *ranked.order);
    sign > 0 ? void(ranked.holders.insert(at, &holder)) : void(ranked.holders.erase(at));
  }
}

const Amounts* Ledger::ChargeOf(const std::string& pod_key) const {
  const auto found = pods_.find(pod_key);
  return found == pods_.end() ? nullptr : &found->second.charge;
}

bool Ledger::IsOverQuota(const std::string& pod_key) {
  const auto found = pods_.find(pod_key);
  if (found == pods_.end()) return false;
  const auto account = balance_.AccountOf(found->second.pod->meta.ns);
  if (!account) return false;
  Rank(*account);
  return found->second.over_quota;
}

const Ledger::Standing& Ledger::StandingOf(size_t account) {
  Rank(account);
  return ranked_[account].standing;
}

void Ledger::EachWithoutQuota(FunctionRef<void(const Pod&, const Amounts&)> visit) const {
  for (const auto& [ns, use] : by_namespace_) {
    if (balance_.AccountOf(ns)) continue;
    for (const Holder* holder : use.pods) visit(holder->pod, holder->charge);
  }
}

std::set<size_t> Ledger::SharersOf(size_t account) const {
  std::set<size_t> sharers;
  const auto add = [&](size_t owner) {
    sharers.insert(owner);
    const std::vector<size_t>& heirs = balance_.terms(owner).heirs;
    sharers.insert(heirs.begin(), heirs.end());
  };
  add(account);
  for (const auto& [resource, above] : balance_.terms(account).inherited) add(above);
  return sharers;
}

void Ledger::Outdate(size_t account) {
  const Terms& terms = balance_.terms(account);
  if (terms.heirs.empty() && terms.inherited.empty()) {
    ranked_[account].current = false;
    return;
  }
  for (const size_t sharer : SharersOf(account)) {
    ranked_[sharer].current = false;
    ranked_[sharer].beyond_own.clear();
  }
}

void Ledger::Order(size_t account) {
  Ranked& ranked = ranked_[account];
  if (ranked.order) return;
  const Terms& terms = balance_.terms(account);
  for (const std::string& ns : terms.namespaces) {
    const auto use = by_namespace_.find(ns);
    if (use == by_namespace_.end()) continue;
    ranked.holders.insert(ranked.holders.end(), use->second.pods.begin(), use->second.pods.end());
  }
  ranked.order.emplace(terms.own_min);
  std::ranges::sort(ranked.holders, *ranked.order);
}

// Of those that use what is the account's own, its pods and its heirs', whom that does not cover.
const std::unordered_set<const Holder*>& Ledger::BeyondOwn(size_t account,
                                                           cluster::ResourceId resource) {
  const auto [known, fresh] = ranked_[account].beyond_own.try_emplace(resource);
  if (!fresh) return known->second;
  std::vector<Holder*> all;
  const auto add = [&](size_t of) {
    Order(of);
    std::ranges::copy_if(ranked_[of].holders, std::back_inserter(all),
                         [&](const Holder* holder) { return holder->charge.Get(resource) > 0; });
  };
  const Terms& terms = balance_.terms(account);
  add(account);
  for (const size_t heir : terms.heirs) {
    const auto from = balance_.terms(heir).inherited.find(resource);
    if (from != balance_.terms(heir).inherited.end() && from->second == account) add(heir);
  }
  Amounts own;
  own.Set(resource, terms.own_min.Get(resource));
  std::ranges::sort(all, StandingOrder(own));
  Amount sum = 0;
  const auto first = std::ranges::find_if(all, [&](const Holder* holder) {
    sum += holder->charge.Get(resource);
    return sum > own.Get(resource);
  });
  known->second = {first, all.end()};
  return known->second;
}

void Ledger::Rank(size_t account) {
  Ranked& ranked = ranked_[account];
  if (ranked.current) return;
  Order(account);
  const Terms& terms = balance_.terms(account);
  std::map<cluster::ResourceId, size_t> shared = terms.inherited;
  for (const size_t heir : terms.heirs) {
    for (const auto& [resource, from] : balance_.terms(heir).inherited) {
      if (from == account) shared[resource] = account;
    }
  }
  Amounts alone;
  for (const auto& [resource, min] : terms.own_min.entries()) {
    if (!shared.contains(resource)) alone.Set(resource, min);
  }
  (void)CountInQuota(alone, ranked.holders);
  for (const auto& [resource, from] : shared) {
    const auto& beyond = BeyondOwn(from, resource);
    for (Holder* holder : ranked.holders) holder->over_quota |= beyond.contains(holder);
  }
  std::vector<Holder*> covered_first = ranked.holders;
  const auto over = std::ranges::stable_partition(
      covered_first, [](const Holder* holder) { return !holder->over_quota; });
  ranked.standing = {{}, static_cast<size_t>(over.begin() - covered_first.begin())};
  for (const Holder* holder : covered_first) {
    ranked.standing.pods.push_back(holder->pod);
    ranked.standing.charges.push_back(&holder->charge);
  }
  ranked.current = true;
}

Ledger LedgerOf(std::vector<SharedQuota> quotas, const cluster::ClusterSnapshot& snapshot,
                const std::vector<Ledger::Pod>& pods, const ChargeRules& rules) {
  Ledger ledger;
  ledger.SetQuotas(std::move(quotas));
  for (const Ledger::Pod& pod : pods) {
    const bool counts = !pod->node_name.empty() && !pod->Finished();
    if (counts && snapshot.Find(pod->node_name) == nullptr)
      ledger.SetPod(pod, ChargeOf(*pod, nullptr, rules));
  }
  for (size_t i = 0; i < snapshot.size(); ++i) {
    const cluster::NodeInfo& node = snapshot.node(i);
    for (const Ledger::Pod& pod : node.pods) {
      ledger.SetPod(pod, ChargeOf(*pod, node.node.get(), rules));
    }
  }
  return ledger;
}

}  // namespace nos::quota
