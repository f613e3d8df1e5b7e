#include "quota/ledger.h"

#include <algorithm>
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
