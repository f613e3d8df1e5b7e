// Whose pods may be evicted for a pod's quota: the rules of who has to give way to whom.
//
//   Claim claim(balance, claimant, rules);
//   while (auto refusal = claim.WhyNot()) claim.Take(...);    // one that MayTake allows
//
//   claimant                    victim             may be taken when
//   without a quota             without one        it has a lower priority
//                               with one           never
//   its min covers it           without one        the rules allow it, or it has a lower priority
//                               of its own quota   never
//                               of another quota   it is over quota, and that quota uses more than
//                                                  min
//   its min does not cover it   without one        it has a lower priority
//                               of its own quota   it has a lower priority
//                               of another quota   it is over quota, the claimant's quota stays
//                                                  within min and its share of what is idle, and
//                                                  the victim's uses more than min and its share
//
// Promised pods count for what a quota uses, but no quota loses more than what it has running
// beyond its min. From a system pod no claimant with a quota takes anything, whether that has a
// quota or not.
//
// Of quotas only resources count that the claimant asks for and its quota names, and a victim with
// a quota has to have one of which that uses too much; pods without a quota go for whatever the
// claimant lacks. In a tree, what is said of two quotas has to be true of those that stand beside
// each other, on the way up from each, and of the quotas themselves, above these only of the
// resource that the victim has; what a parent keeps for its own namespaces stands beside its
// children. Source: nos-behaviour 6.7; pods without a quota were never reclaimed there, which made
// min no guarantee, and a composite quota's namespaces were strangers to each other.
//
// Values.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "quota/balance.h"

namespace nos::quota {

struct ReclaimRules {
  // What a quota guarantees is also taken from pods that no quota covers.
  bool from_pods_without_quota = true;
};

// A pod, as far as quotas are concerned.
struct Holding {
  std::optional<size_t> account;
  Amounts charge;
  int32_t priority = 0;
  bool over_quota = false;  // it runs on what its quota borrows; see standing.h
  bool is_system = false;   // the cluster cannot do without it
};

class Claim {
 public:
  // `claimant` is not counted in the balance; `settled` is that without what is only promised.
  Claim(Balance balance, Balance settled, Holding claimant, ReclaimRules rules);
  Claim(const Balance& balance, Holding claimant, ReclaimRules rules)
      : Claim(balance, balance, std::move(claimant), rules) {}

  // What the claimant would count for: that may differ from node to node.
  void SetCharge(Amounts charge);

  // As things are with those that were taken.
  bool MayTake(const Holding& victim) const;
  void Take(const Holding& victim) { Count(victim, -1); }
  void GiveBack(const Holding& victim) { Count(victim, 1); }
  // Why the quota would still not let the claimant in; absent: it would.
  std::optional<Refusal> WhyNot() const;
  // Whether all is covered by its quota's min, of what that names; false when it names nothing that
  // is asked for, or there is no quota.
  bool IsGuaranteed() const;

  const Balance& balance() const { return balance_; }
  const Amounts& charge() const { return claimant_.charge; }

 private:
  void Count(const Holding& victim, int sign);
  bool MayTakeFromOther(const Holding& victim) const;

  Balance balance_, settled_;
  Holding claimant_;
  Amounts named_;  // what it asks for of what its quota's min names
  ReclaimRules rules_;
};

}  // namespace nos::quota
