#include "quota/entitlement.h"

#include <algorithm>
#include <utility>

namespace nos::quota {
namespace {

Amounts NamedIn(const Amounts& min, const Amounts& charge) {
  Amounts named;
  for (const auto& [resource, amount] : charge.entries()) {
    if (amount > 0 && min.Named(resource)) named.Set(resource, amount);
  }
  return named;
}

// Cuts both paths off below their lowest common parent. Each keeps at least one member.
void CutCommonPart(std::vector<Member>& ours, std::vector<Member>& theirs) {
  while (ours.size() > 1 && theirs.size() > 1 && ours.back() == theirs.back()) {
    ours.pop_back();
    theirs.pop_back();
  }
}

}  // namespace

Entitlement::Entitlement(Balance balance, Balance settled, Holding claimant, ReclaimRules rules)
    : balance_(std::move(balance)),
      settled_(std::move(settled)),
      claimant_(std::move(claimant)),
      rules_(rules) {
  SetCharge(std::move(claimant_.charge));
}

void Entitlement::SetCharge(Amounts charge) {
  claimant_.charge = std::move(charge);
  if (!claimant_.account) return;
  named_ = NamedIn(balance_.terms(*claimant_.account).min, claimant_.charge);
}

void Entitlement::Count(const Holding& victim, int sign) {
  if (!victim.account) return;
  for (Balance* balance : {&balance_, &settled_}) {
    balance->Add(*victim.account, victim.charge, sign);
  }
}

std::optional<Refusal> Entitlement::WhyNot() const {
  if (!claimant_.account) return std::nullopt;
  return balance_.WhyNot(*claimant_.account, claimant_.charge, &settled_);
}

bool Entitlement::IsGuaranteed() const {
  return claimant_.account && balance_.IsGuaranteed(*claimant_.account, claimant_.charge);
}

bool Entitlement::MayTake(const Holding& victim) const {
  const bool lower = victim.priority < claimant_.priority;
  if (!claimant_.account) return !victim.account && lower;
  if (victim.is_exempt) return false;
  if (!victim.account) return lower || (rules_.from_pods_without_quota && IsGuaranteed());
  if (victim.account == claimant_.account) return lower && !IsGuaranteed();
  return victim.over_quota && MayTakeFromOther(victim);
}

bool Entitlement::IsUnprotected(const Holding& victim) const {
  if (!claimant_.account || !victim.account || victim.account == claimant_.account) return false;
  if (victim.is_exempt) return false;
  bool named = false, too_much = false;
  for (const auto& [resource, amount] : victim.charge.entries()) {
    if (amount <= 0) continue;
    std::vector<Member> theirs = balance_.PathOf(*victim.account, resource);
    if (theirs.empty()) continue;
    named = true;
    const Member innermost = theirs.front();
    std::vector<Member> ours = balance_.PathOf(*claimant_.account);
    CutCommonPart(ours, theirs);
    const auto is_beyond = [&](Member member) { return balance_.IsBeyondMin(member, resource); };
    too_much |= settled_.IsBeyondMin(innermost, resource) && std::ranges::all_of(theirs, is_beyond);
  }
  return !named || (victim.over_quota && too_much);
}

bool Entitlement::MayTakeFromOther(const Holding& victim) const {
  if (!claimant_.account || !victim.account) return false;
  const bool guaranteed = IsGuaranteed();
  const std::vector<Member> path = balance_.PathOf(*claimant_.account);
  const auto within = [&](Member member, const Amounts::Entry& asked) {
    Amounts one;
    one.Set(asked.first, asked.second);
    return guaranteed ? balance_.WithinMin(member, one) : balance_.WithinShare(member, one);
  };
  // The claimant's side must hold in every resource that it requests, including resources it shares
  // with a parent.
  const bool own = std::ranges::all_of(claimant_.charge.entries(), [&](const auto& asked) {
    const std::vector<Member> from = balance_.PathOf(*claimant_.account, asked.first);
    return from.empty() || within(from.front(), asked);
  });
  if (!own) return false;
  return std::ranges::any_of(named_.entries(), [&](const Amounts::Entry& asked) {
    if (victim.charge.Get(asked.first) <= 0) return false;
    std::vector<Member> ours = path;  // Paths below the lowest common parent.
    std::vector<Member> theirs = balance_.PathOf(*victim.account, asked.first);
    if (theirs.empty()) return false;
    CutCommonPart(ours, theirs);
    if (!settled_.IsBeyondMin(theirs.front(), asked.first)) return false;
    const auto too_much = [&](Member member) {
      return guaranteed ? balance_.IsBeyondMin(member, asked.first)
                        : balance_.IsBeyondShare(member, asked.first);
    };
    return std::ranges::all_of(ours, [&](Member member) { return within(member, asked); }) &&
           std::ranges::all_of(theirs, too_much);
  });
}

}  // namespace nos::quota
