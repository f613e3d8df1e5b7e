#include "quota/claim.h"

#include <algorithm>
#include <utility>

namespace nos::quota {
namespace {

using cluster::ResourceId;
using Path = std::vector<size_t>;  // an account and those above it

Path PathOf(const Balance& balance, size_t account) {
  Path path;
  for (std::optional<size_t> at = account; at; at = balance.terms(*at).parent) path.push_back(*at);
  return path;
}

Amounts NamedIn(const Amounts& min, const Amounts& charge) {
  Amounts named;
  for (const auto& [resource, amount] : charge.entries()) {
    if (amount > 0 && min.Named(resource)) named.Set(resource, amount);
  }
  return named;
}

bool Overlap(const Amounts& a, const Amounts& b) {
  return std::ranges::any_of(a.entries(),
                             [&](const auto& entry) { return b.Get(entry.first) > 0; });
}

}  // namespace

Claim::Claim(Balance balance, Holding claimant, ReclaimRules rules)
    : balance_(std::move(balance)), claimant_(std::move(claimant)), rules_(rules) {
  SetCharge(std::move(claimant_.charge));
}

void Claim::SetCharge(Amounts charge) {
  claimant_.charge = std::move(charge);
  if (!claimant_.account) return;
  named_ = NamedIn(balance_.terms(*claimant_.account).min, claimant_.charge);
}

void Claim::Count(const Holding& victim, int sign) {
  if (victim.account) balance_.Add(*victim.account, victim.charge, sign);
}

std::optional<Refusal> Claim::WhyNot() const {
  if (!claimant_.account) return std::nullopt;
  return balance_.WhyNot(*claimant_.account, claimant_.charge);
}

bool Claim::IsGuaranteed() const {
  return claimant_.account && balance_.IsGuaranteed(*claimant_.account, named_);
}

bool Claim::MayTake(const Holding& victim) const {
  const bool lower = victim.priority < claimant_.priority;
  if (!claimant_.account) return !victim.account && lower;
  if (!victim.account) {
    return rules_.from_pods_without_quota && !victim.is_system && IsGuaranteed() &&
           Overlap(named_, victim.charge);
  }
  if (victim.account == claimant_.account) return lower && !IsGuaranteed();
  return victim.over_quota && MayTakeFromOther(victim);
}

bool Claim::MayTakeFromOther(const Holding& victim) const {
  Path ours = PathOf(balance_, *claimant_.account), theirs = PathOf(balance_, *victim.account);
  while (!ours.empty() && !theirs.empty() && ours.back() == theirs.back()) {
    ours.pop_back();
    theirs.pop_back();
  }
  // One of them is above the other: the pods of a parent's own namespaces, and its children.
  if (ours.empty()) ours.push_back(*claimant_.account);
  if (theirs.empty()) theirs.push_back(*victim.account);
  const auto may = [&](auto within, auto limit) {
    const auto too_much = [&](ResourceId resource) {
      return victim.charge.Get(resource) > 0 && std::ranges::all_of(theirs, [&](size_t account) {
               const auto most = limit(account, resource);
               return most && balance_.used(account).Get(resource) > *most;
             });
    };
    return std::ranges::all_of(ours, within) &&
           std::ranges::any_of(named_.entries(),
                               [&](const auto& entry) { return too_much(entry.first); });
  };
  const auto min = [&](size_t account, ResourceId resource) {
    return balance_.terms(account).min.Named(resource);
  };
  const auto share = [&](size_t account, ResourceId resource) -> std::optional<Amount> {
    const auto own = min(account, resource);
    if (!own) return std::nullopt;
    return *own + balance_.ShareOf(account, resource);
  };
  if (IsGuaranteed()) {
    return may([&](size_t account) { return balance_.WithinMin(account, named_); }, min);
  }
  return may([&](size_t account) { return balance_.WithinShare(account, named_); }, share);
}

}  // namespace nos::quota
