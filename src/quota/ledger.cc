#include "quota/ledger.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace nos::quota {

void Ledger::SetQuotas(std::vector<SharedQuota> quotas) {
  balance_ = Balance(std::move(quotas));
  shared_.clear();
  changed_.clear();
  ranked_.assign(balance_.size(), {});
  for (size_t i = 0; i < balance_.size(); ++i) {
    for (const auto& [resource, above] : balance_.terms(i).inherited) {
      ranked_[i].shared[resource] = ranked_[above].shared[resource] = above;
    }
  }
  for (const auto& [ns, use] : by_namespace_) {
    if (const auto account = balance_.AccountOf(ns)) balance_.Add(*account, use.used);
  }
}

void Ledger::SetPod(const Pod& pod, ChargeParts charge) {
  const auto [found, fresh] = pods_.try_emplace(pod->Key());
  Holder& holder = found->second;
  if (!fresh) {
    Count(holder, -1);
    Leave(holder);
  }
  holder = {pod, std::move(charge.own)};
  Join(holder, std::move(charge.claims));
  Count(holder, 1);
}

void Ledger::RemovePod(const std::string& key) {
  const auto found = pods_.find(key);
  if (found == pods_.end()) return;
  Count(found->second, -1);
  Leave(found->second);
  pods_.erase(found);
}

Ledger::Seniority Ledger::SeniorityOf(const cluster::Pod& pod) {
  return {pod.meta.created, -int64_t{pod.priority}, pod.Key()};
}

// Enters a pod that is not counted as a user of the claims. It takes over what it is charged for.
void Ledger::Join(Holder& holder, ClaimAmounts claims) {
  for (auto& [key, amounts] : claims) {
    ClaimUsers& users = claims_[key];
    const auto [own, fresh] =
        users.try_emplace(SeniorityOf(*holder.pod), ClaimUser{&holder, std::move(amounts)});
    if (!fresh) continue;  // the pod names the claim twice
    holder.claims.push_back(key);
    if (own != users.begin()) continue;
    if (const auto next = std::next(own); next != users.end()) {
      Charge(*next->second.holder, next->second.amounts, -1);
    }
    holder.charge.Add(own->second.amounts);
  }
}

// Removes a pod that is no longer counted from the users of its claims.
void Ledger::Leave(const Holder& holder) {
  for (const std::string& key : holder.claims) {
    const auto claim = claims_.find(key);
    ClaimUsers& users = claim->second;
    const auto own = users.find(SeniorityOf(*holder.pod));
    const bool was_charged = own == users.begin();
    users.erase(own);
    if (users.empty()) {
      claims_.erase(claim);
    } else if (was_charged) {
      const ClaimUser& heir = users.begin()->second;
      Charge(*heir.holder, heir.amounts, 1);
    }
  }
}

void Ledger::Charge(Holder& holder, const Amounts& amounts, int sign) {
  if (amounts.empty()) return;
  Count(holder, -1);
  holder.charge.Add(amounts, sign);
  Count(holder, 1);
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
    for (const auto& [resource, above] : ranked.shared) {
      const auto found = shared_.find({above, resource});
      if (found == shared_.end()) continue;
      const auto crossed = [&](const Holder& other) {
        Outdate(*balance_.AccountOf(other.pod->meta.ns));
      };
      sign > 0 ? found->second.Add(holder, crossed) : found->second.Remove(holder, crossed);
    }
    if (!ranked.order) return;
    const auto at = std::ranges::lower_bound(ranked.holders, &holder, *ranked.order);
    sign > 0 ? void(ranked.holders.insert(at, &holder)) : void(ranked.holders.erase(at));
  }
}

const Amounts* Ledger::ChargeOf(const std::string& pod_key) const {
  const auto found = pods_.find(pod_key);
  return found == pods_.end() ? nullptr : &found->second.charge;
}

ChargeParts Ledger::WithoutOthers(ChargeParts charge, const std::string& pod_key) const {
  std::erase_if(charge.claims, [&](const auto& claim) {
    const auto users = claims_.find(claim.first);
    return users != claims_.end() && std::ranges::any_of(users->second, [&](const auto& user) {
             return user.second.holder->pod->Key() != pod_key;
           });
  });
  return charge;
}

Amounts Ledger::FreedBy(const std::string& pod_key,
                        FunctionRef<bool(const std::string& other)> gone) const {
  const auto found = pods_.find(pod_key);
  if (found == pods_.end()) return {};
  const Holder& holder = found->second;
  Amounts freed = holder.charge;
  for (const std::string& key : holder.claims) {
    const ClaimUsers& users = claims_.at(key);
    const ClaimUser& charged = users.begin()->second;
    const bool is_last = std::ranges::all_of(users, [&](const auto& user) {
      return user.second.holder == &holder || gone(user.second.holder->pod->Key());
    });
    const bool is_charged = charged.holder == &holder;
    if (is_charged != is_last) freed.Add(charged.amounts, is_last ? 1 : -1);
  }
  return freed;
}

std::vector<Ledger::Pod> Ledger::SharersOf(const std::string& pod_key, const Amounts& asked) const {
  std::vector<Pod> sharers;
  const auto found = pods_.find(pod_key);
  if (found == pods_.end()) return sharers;
  const auto is_asked = [&](const Amounts::Entry& entry) { return asked.Get(entry.first) > 0; };
  for (const std::string& key : found->second.claims) {
    const ClaimUsers& users = claims_.at(key);
    if (std::ranges::none_of(users.begin()->second.amounts.entries(), is_asked)) continue;
    for (const auto& [seniority, user] : users) sharers.push_back(user.holder->pod);
  }
  return sharers;
}

std::vector<Ledger::Pod> Ledger::UsersOf(const std::string& claim) const {
  std::vector<Pod> pods;
  const auto users = claims_.find(claim);
  if (users == claims_.end()) return pods;
  for (const auto& [seniority, user] : users->second) pods.push_back(user.holder->pod);
  return pods;
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

void Ledger::Outdate(size_t account) {
  ranked_[account].current = false;
  changed_.insert(account);
}

void Ledger::EachOf(size_t account, FunctionRef<void(Holder&)> visit) const {
  for (const std::string& ns : balance_.terms(account).namespaces) {
    const auto use = by_namespace_.find(ns);
    if (use == by_namespace_.end()) continue;
    for (Holder* holder : use->second.pods) visit(*holder);
  }
}

void Ledger::Order(size_t account) {
  Ranked& ranked = ranked_[account];
  if (ranked.order) return;
  EachOf(account, [&](Holder& holder) { ranked.holders.push_back(&holder); });
  ranked.order.emplace(balance_.terms(account).own_min);
  std::ranges::sort(ranked.holders, *ranked.order);
}

const SharedStanding& Ledger::Shared(size_t account, cluster::ResourceId resource) {
  const Terms& terms = balance_.terms(account);
  const auto [known, fresh] =
      shared_.try_emplace({account, resource}, resource, terms.own_min.Get(resource));
  SharedStanding& shared = known->second;
  if (!fresh) return shared;
  const auto add = [&](Holder& holder) { shared.Add(holder, [](const Holder&) {}); };
  EachOf(account, add);
  for (const size_t heir : terms.heirs) {
    const auto from = ranked_[heir].shared.find(resource);
    if (from != ranked_[heir].shared.end() && from->second == account) EachOf(heir, add);
  }
  return shared;
}

void Ledger::Rank(size_t account) {
  Ranked& ranked = ranked_[account];
  if (ranked.current) return;
  Order(account);
  // 1. Resources that only this account uses: count from scratch.
  Amounts alone;
  for (const auto& [resource, min] : balance_.terms(account).own_min.entries()) {
    if (!ranked.shared.contains(resource)) alone.Set(resource, min);
  }
  (void)CountInQuota(alone, ranked.holders);
  // 2. Shared resources: their standing is kept incrementally, since it spans several accounts. A
  //    pod that is over quota in any resource is over quota.
  for (const auto& [resource, owner] : ranked.shared) {
    const SharedStanding& shared = Shared(owner, resource);
    for (Holder* holder : ranked.holders) holder->over_quota |= !shared.Covers(*holder);
  }
  // 3. Covered pods come first, each part in the order of coverage.
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
      ledger.SetPod(pod, ChargePartsOf(*pod, nullptr, rules));
  }
  for (size_t i = 0; i < snapshot.size(); ++i) {
    const cluster::NodeInfo& node = snapshot.node(i);
    for (const Ledger::Pod& pod : node.pods) {
      ledger.SetPod(pod, ChargePartsOf(*pod, node.node.get(), rules));
    }
  }
  return ledger;
}

}  // namespace nos::quota
