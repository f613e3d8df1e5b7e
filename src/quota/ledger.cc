#include "quota/ledger.h"

#include <utility>

namespace nos::quota {

void Ledger::SetQuotas(std::vector<SharedQuota> quotas) {
  balance_ = Balance(std::move(quotas));
  for (const auto& [ns, used] : by_namespace_) {
    if (const auto account = balance_.AccountOf(ns)) balance_.Add(*account, used);
  }
}

void Ledger::SetPod(const std::string& key, std::string_view ns, Amounts charge) {
  const auto [found, fresh] = pods_.try_emplace(key);
  Entry& entry = found->second;
  if (!fresh && entry.ns == ns && entry.charge == charge) return;
  if (!fresh) Count(entry, -1);
  entry = {std::string(ns), std::move(charge)};
  Count(entry, 1);
}

void Ledger::RemovePod(const std::string& key) {
  const auto found = pods_.find(key);
  if (found == pods_.end()) return;
  Count(found->second, -1);
  pods_.erase(found);
}

void Ledger::Count(const Entry& entry, int sign) {
  const auto found = by_namespace_.try_emplace(entry.ns).first;
  found->second.Add(entry.charge, sign);
  if (found->second.empty()) by_namespace_.erase(found);
  if (const auto account = balance_.AccountOf(entry.ns)) {
    balance_.Add(*account, entry.charge, sign);
  }
}

const Amounts* Ledger::ChargeOf(const std::string& pod_key) const {
  const auto found = pods_.find(pod_key);
  return found == pods_.end() ? nullptr : &found->second.charge;
}

Amounts Ledger::UsedIn(std::string_view ns) const {
  const auto found = by_namespace_.find(std::string(ns));
  return found == by_namespace_.end() ? Amounts() : found->second;
}

}  // namespace nos::quota
