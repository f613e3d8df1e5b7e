// Decides which victims may be evicted so that a pod (the claimant) obtains the quota it is
// entitled to.
//
//   Entitlement claim(balance, claimant, rules);
//   while (auto refusal = claim.WhyNot()) claim.Take(...);    // a victim that MayTake allows
//
//   claimant                    victim             may be evicted if
//   without a quota             without a quota    it has a lower priority
//                               with a quota       never
//   its min covers it           without a quota    the rules allow it, or it has a lower priority
//                               of its own quota   never
//                               of another quota   it is over quota, and that quota uses more than
//                                                  its min
//   its min does not cover it   without a quota    it has a lower priority
//                               of its own quota   it has a lower priority
//                               of another quota   it is over quota, the claimant's quota stays
//                                                  within min plus its share of idle capacity, and
//                                                  the victim's quota uses more than min plus its
//                                                  share
//
// Nominated pods count toward the use of a quota, but victims are taken only from what a quota has
// running beyond its min. A claimant with a quota never evicts an exempt pod, with or without a
// quota.
//
// A victim with a quota must use at least one resource that the claimant requests, that the
// claimant's quota names and that the victim's quota overuses. Pods without a quota may be evicted
// for any resource that the claimant's node is short of.
//
// In a tree of quotas, the rows about two quotas must hold on every level: both paths to the root
// are cut off below the lowest common parent, and each remaining member of the paths is checked. A
// parent's own namespaces form a member beside its children. Levels above the quotas themselves are
// checked only for the resource that the victim uses.
//
// If no such victims make room on any node, a claimant that its min covers may also evict pods of
// other quotas to which their quotas guarantee nothing, on the node that it gets (MayClear):
// otherwise pods without requests could keep it off every node by their affinity.
//
// The rules are those of the Go implementation of nos, with two additions: it never evicted pods
// without a quota, so min was no guarantee, and it did not share capacity between the namespaces of
// a composite quota.
//
// Values: a copy is a what-if.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "quota/balance.h"

namespace nos::quota {

struct ReclaimRules {
  // A claimant covered by min may also evict pods that no quota covers.
  bool from_pods_without_quota = true;
};

// The properties of a pod that quotas look at.
struct Holding {
  std::optional<size_t> account;
  Amounts charge;
  int32_t priority = 0;
  bool over_quota = false;  // runs on borrowed capacity; see standing.h
  bool is_exempt = false;   // never a victim of a claimant with a quota
};

class Entitlement {
 public:
  // REQUIRES: `balance` does not include the claimant. `settled`: the balance without nominated
  // pods.
  Entitlement(Balance balance, Balance settled, Holding claimant, ReclaimRules rules);
  Entitlement(const Balance& balance, Holding claimant, ReclaimRules rules)
      : Entitlement(balance, balance, std::move(claimant), rules) {}

  // Charges differ between nodes for pods that request whole GPUs or time slices.
  void SetCharge(Amounts charge);

  // True if the rules allow this victim, given the victims taken so far.
  bool MayTake(const Holding& victim) const;
  // True if the claimant is guaranteed and may evict the pod from its own node, whatever the pod
  // uses there.
  bool MayClear(const Holding& victim) const { return IsGuaranteed() && IsUnprotected(victim); }
  // The pod belongs to another quota, which guarantees nothing to it: each resource that the pod
  // uses is named by no min, or the pod is over quota in a resource of which its quota uses too
  // much.
  bool IsUnprotected(const Holding& victim) const;
  void Take(const Holding& victim) { Count(victim, -1); }
  void GiveBack(const Holding& victim) { Count(victim, 1); }
  // Why the quota still refuses the claimant. Absent: the quota admits it.
  std::optional<Refusal> WhyNot() const;
  // True if the quota's min covers the claimant's charge in every resource that min names. False if
  // the pod has no quota, or the charge has no resource that min names.
  bool IsGuaranteed() const;

  const Balance& balance() const { return balance_; }
  const Amounts& charge() const { return claimant_.charge; }

 private:
  void Count(const Holding& victim, int sign);
  bool MayTakeFromOther(const Holding& victim) const;

  Balance balance_, settled_;
  Holding claimant_;
  Amounts named_;  // the part of the charge that the quota's min names
  ReclaimRules rules_;
};

}  // namespace nos::quota
