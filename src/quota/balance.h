// Computes what quotas guarantee, how much of it is used, and which pods quotas admit.
//
//   Balance balance(quotas);
//   balance.Add(*balance.AccountOf("team-a"), charge);           // of a running pod
//   if (auto refusal = balance.WhyNot(account, charge)) return *refusal;
//
// A quota is an account. Unused `min` of one quota may be borrowed by the other quotas on its
// level: the children of one parent, or all quotas without a parent. On each level
//
//   borrowed = sum of max(0, used - min)  <=  lendable = sum of min(max(0, min - used),
//                                                                   lendingLimit)
//
// Without lending limits this means that total use stays within the total of all min. A parent's
// use includes the use of its children. The part of a parent's min that exceeds the sum of its
// children's belongs to the parent's own namespaces. Children may also use what the parent borrows
// on its level.
//
// Only resources named in `min` are lent and borrowed, and only those named in `max` are capped. If
// several quotas name a namespace, a composite quota is in force, else the oldest. A quota that is
// in force in no namespace guarantees and lends nothing.
//
// Borrowed may exceed lendable: if min is lowered, or if other schedulers bind pods, possibly to
// nodes that do not exist. Quotas with too much use are then refused more, as are quotas that would
// have to borrow. Pods covered by min are still admitted.
//
// Values: a copy is a what-if. Add and WhyNot cost time proportional to the resources in the charge
// and the depth of the tree, not to the number of quotas.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cluster/context.h"
#include "cluster/elastic_quota.h"
#include "quota/amounts.h"

namespace nos::quota {

using SharedQuota = std::shared_ptr<const cluster::ElasticQuota>;

// All quotas in the cluster context.
std::vector<SharedQuota> QuotasOf(const cluster::ClusterContext& context);

// A quota with its resolved place in the tree.
struct Terms {
  SharedQuota quota;
  Amounts min, max, borrowing_limit, lending_limit;
  Amounts own_min;                      // min minus what its children are guaranteed
  std::vector<std::string> namespaces;  // namespaces where the quota is in force, sorted
  std::optional<size_t> parent;         // account of the parent
  // User-readable reasons why parts of the quota are not in force.
  std::vector<std::string> problems;
  // The quota or a descendant is in force in a namespace. If false, it counts for nothing.
  bool in_force = false;
  // Resources that this quota's min does not name, with the account of the nearest ancestor that
  // does: this quota's pods use that ancestor's own min.
  std::map<cluster::ResourceId, size_t> inherited;
  std::vector<size_t> heirs;  // accounts whose `inherited` has this account
};

// Reason why a quota refuses a pod now.
struct Refusal {
  enum class Kind { kMax, kBorrowingLimit, kNothingIdle } kind;
  SharedQuota quota;  // the quota whose limit refuses
  cluster::ResourceId resource;
  // kMax: use without the pod. Other kinds: borrowed amount including the pod, of the quota
  // (kBorrowingLimit) or of its whole level (kNothingIdle); `limit` is then what the level has
  // idle.
  Amount asked, used, limit;
  Amount held = 0;  // by pods whose end leaves more for the request
  // Amount by which the request exceeds the limit.
  Amount Lack() const { return used + (kind == Kind::kMax ? asked : 0) - limit; }
  // "elastic quota team-a/eq allows at most 10 of nvidia.com/gpu: 9 used, 2 asked for"
  std::string Text() const;
  // Advice to the owner: "raise max of cpu in elastic quota team-a/eq to 11, or wait ...". Waiting
  // is part of it only if pods hold what the request lacks.
  std::string Remedy() const;
};

// One participant of a level: an account, or (`own`) the part of a parent's min that remains for
// its own namespaces, which takes part beside its children.
struct Member {
  size_t account;
  bool own = false;
  friend bool operator==(const Member&, const Member&) = default;
};

class Balance {
 public:
  Balance() = default;
  explicit Balance(std::vector<SharedQuota> quotas);

  // Accounts are numbered from 0 and sorted by kind (composite first), namespace and name.
  size_t size() const { return accounts_.size(); }
  const Terms& terms(size_t account) const { return *accounts_[account].terms; }
  // Includes use by descendants.
  const Amounts& used(size_t account) const { return accounts_[account].used; }
  // Absent: no quota is in force in the namespace.
  std::optional<size_t> AccountOf(std::string_view ns) const;

  // Adds `sign` times the charge to the account and its ancestors.
  void Add(size_t account, const Amounts& charge, int sign = 1);

  // Absent: the quotas admit the charge. A charge covered by min is not refused because a level was
  // overused before. `settled`: the balance without nominated pods, which decides what was overused
  // before; null: this balance. `limited`: the balance for checks of max and borrowing limits,
  // which are hard limits; null: this balance.
  std::optional<Refusal> WhyNot(size_t account, const Amounts& charge,
                                const Balance* settled = nullptr,
                                const Balance* limited = nullptr) const;
  // Members in which pods of the account's namespaces count, innermost first.
  std::vector<Member> PathOf(size_t account) const;
  // The same for one resource. If the account's min does not name it, the path starts at the
  // nearest ancestor that does. Empty: no ancestor names it.
  std::vector<Member> PathOf(size_t account, cluster::ResourceId resource) const;
  // True if the member's min covers its use plus the charge in all resources that min names.
  bool WithinMin(Member member, const Amounts& charge) const;
  // The same for min plus the share of idle capacity, computed after the charge is added.
  bool WithinShare(Member member, const Amounts& charge) const;
  // True if the member uses more of the resource than its min (IsBeyondShare: than min plus its
  // share). False if min does not name the resource.
  bool IsBeyondMin(Member member, cluster::ResourceId resource) const;
  bool IsBeyondShare(Member member, cluster::ResourceId resource) const;
  // True if min of the account's own namespaces covers its use, `besides` and the charge in every
  // resource that min names, and the charge has at least one such resource. Resources shared with a
  // parent must be covered by the parent's own min. A guaranteed charge is due to the account on
  // any node.
  bool IsGuaranteed(size_t account, const Amounts& charge, const Amounts& besides = {}) const;

  // The member's share of idle capacity: of what its level has idle, and of what its parent obtains
  // from the levels above, in proportion to min times weight, rounded down. Only for resources that
  // min names. Computed as if the member used `asked` more.
  Amount ShareOf(Member member, cluster::ResourceId resource, Amount asked = 0) const;
  Amount ShareOf(size_t account, cluster::ResourceId resource) const {
    return ShareOf(Member{account}, resource);
  }
  Amount BorrowedBy(size_t account, cluster::ResourceId resource) const;
  // The amount that the account lends: its part of the borrowed amount on its level, in proportion
  // to what it could lend. The parts of a level add up to the borrowed amount, as far as the level
  // can lend that much.
  Amount LentBy(size_t account, cluster::ResourceId resource) const;

 private:
  // Sums of one resource over the members of a level whose min names it: accounts below one parent.
  // The parent's own part, which has no account number, is added by PoolBelow.
  struct SharedCapacity {
    Amount min = 0, weighted = 0, used = 0, lendable = 0, borrowed = 0;
    void Add(const SharedCapacity& other, int sign);
  };
  using Level = std::vector<std::pair<cluster::ResourceId, SharedCapacity>>;  // sorted
  struct Account {
    std::shared_ptr<const Terms> terms;
    Amounts used;
    Level children;
  };

  void PutInForce(std::vector<SharedQuota> quotas);
  void FindParents(std::vector<Terms>& terms) const;
  static void RemoveZeroMins(std::vector<Terms>& terms);
  static void FindOwnMins(std::vector<Terms>& terms);
  static void FindHeirs(std::vector<Terms>& terms);
  const Level& LevelBelow(std::optional<size_t> parent) const;
  // Contribution of an account to the pool of its level if it uses `used`.
  SharedCapacity PartOf(size_t account, cluster::ResourceId resource, Amount used) const;
  // Contribution of the parent's own part if the parent uses `used`.
  SharedCapacity RestOf(size_t parent, cluster::ResourceId resource, Amount used) const;
  // Contribution of a member that uses `asked` more than now.
  SharedCapacity PartOf(Member member, cluster::ResourceId resource, Amount asked = 0) const;
  // The account that owns the member's level. Absent: the root level.
  std::optional<size_t> Above(Member member) const;
  // SharedCapacity of the level below `parent`, including the parent's own part.
  SharedCapacity PoolBelow(std::optional<size_t> parent, cluster::ResourceId resource) const;
  void Count(size_t account, cluster::ResourceId resource, Amount amount);
  std::optional<Refusal> OverLimit(size_t account, cluster::ResourceId resource,
                                   Amount asked) const;
  std::optional<Refusal> NothingIdle(Member member, cluster::ResourceId resource,
                                     Amount asked) const;
  std::optional<Refusal> WhyNotAt(Member member, cluster::ResourceId resource, Amount asked,
                                  const Balance& limited) const;
  Amount BorrowedWith(size_t account, cluster::ResourceId resource, Amount asked) const;

  std::vector<Account> accounts_;
  Level roots_;
  std::unordered_map<std::string, size_t> by_namespace_;
};

}  // namespace nos::quota
