#include "quota/ledger.h"

#include <utility>

#include "quota/standing.h"

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
  Entry& entry = found->second;
  if (!fresh) Count(entry, -1);
  entry = {pod, std::move(charge), false};
  Count(entry, 1);
}

void Ledger::RemovePod(const std::string& key) {
  const auto found = pods_.find(key);
  if (found == pods_.end()) return;
  Count(found->second, -1);
  pods_.erase(found);
}

void Ledger::Count(const Entry& entry, int sign) {
  const std::string& ns = entry.pod->meta.ns;
  NamespaceUse& use = by_namespace_[ns];
  use.used.Add(entry.charge, sign);
  sign > 0 ? void(use.pods.insert(entry.pod->Key())) : void(use.pods.erase(entry.pod->Key()));
  if (use.pods.empty()) by_namespace_.erase(ns);
  if (const auto account = balance_.AccountOf(ns)) {
    balance_.Add(*account, entry.charge, sign);
    ranked_[*account].current = false;
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

void Ledger::Rank(size_t account) {
  Ranked& ranked = ranked_[account];
  if (ranked.current) return;
  std::vector<Holder> holders;
  for (const std::string& ns : balance_.terms(account).namespaces) {
    const auto use = by_namespace_.find(ns);
    if (use == by_namespace_.end()) continue;
    for (const std::string& key : use->second.pods) {
      const Entry& entry = pods_.at(key);
      holders.push_back({entry.pod, entry.charge});
    }
  }
  ranked.standing = {{}, CountInQuota(balance_.terms(account).own_min, holders)};
  for (const Holder& holder : holders) {
    Entry& entry = pods_.at(holder.pod->Key());
    entry.over_quota = ranked.standing.pods.size() >= ranked.standing.in_quota;
    ranked.standing.pods.push_back(holder.pod);
    ranked.standing.charges.push_back(&entry.charge);
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
