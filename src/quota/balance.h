// What quotas guarantee, who uses how much of it, and so who may have more.
//
//   Balance balance(quotas);
//   balance.Add(*balance.AccountOf("team-a"), charge);           // of a pod that runs
//   if (auto refusal = balance.WhyNot(account, charge)) Say(refusal->Text());
//
// A quota is an account. What one guarantees (`min`) and does not use, others may borrow: those on
// the same level, below the same parent, or those without one. So on each level
//
//   borrowed = sum of max(0, used - min)  <=  lendable = sum of min(max(0, min - used),
//   lendingLimit)
//
// which without lending limits says that all together use no more than is guaranteed to all. A
// parent counts what its children use as its own; what it guarantees beyond the sum of theirs is
// for its own namespaces. On its level the children may have what it borrows itself, too.
//
// Only resources that a quota names in `min` are lent and borrowed, and only those in `max` end
// there. Of several quotas that name a namespace a composite one is in force, else the older. One
// that is in force nowhere guarantees nothing, and so lends nothing.
//
// More may be borrowed than is idle: when min is lowered, when pods are bound by others, on nodes
// that do not even exist. Who has too much is refused more then, and so is who would borrow; what
// min covers is not.
//
// Values: a copy is a what-if. Costs of Add and WhyNot follow the resources of the charge and the
// depth of the tree, not the number of quotas.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cluster/elastic_quota.h"
#include "cluster/surroundings.h"
#include "quota/amounts.h"

namespace nos::quota {

using SharedQuota = std::shared_ptr<const cluster::ElasticQuota>;

// All that there are.
std::vector<SharedQuota> QuotasOf(const cluster::Surroundings& around);

// A quota as it is in force.
struct Terms {
  SharedQuota quota;
  Amounts min, max, borrowing_limit, lending_limit;
  Amounts own_min;                      // min without what those below it are guaranteed of it
  std::vector<std::string> namespaces;  // where it is in force, sorted
  std::optional<size_t> parent;         // an account
  std::vector<std::string> problems;    // what of it cannot be in force, and why; for people
  bool in_force = false;                // somewhere, or one below it is: else it counts for nothing
  // Resources of which its pods use what is that account's own: it is the nearest above that names
  // them, and this one does not. And who does so with this one.
  std::map<cluster::ResourceId, size_t> inherited;
  std::vector<size_t> heirs;
};

// Why a pod may not run now.
struct Refusal {
  enum class Kind { kMax, kBorrowingLimit, kNothingIdle } kind;
  SharedQuota quota;  // whose limit it is
  cluster::ResourceId resource;
  // kMax: without the pod. Else of what is borrowed, with the pod: by the quota, or
  // (kNothingIdle) by all of its level, of what these have idle.
  Amount asked, used, limit;
  // How much too much that is.
  Amount Lack() const { return used + (kind == Kind::kMax ? asked : 0) - limit; }
  // "elastic quota team-a/eq allows at most 10 of nvidia.com/gpu: 9 are used, 2 asked for"
  std::string Text() const;
  // What its owner could do: "raise max of cpu in elastic quota team-a/eq to 11, or wait ..."
  std::string Remedy() const;
};

// Where pods count on a level: an account, or what one that has others below it keeps for its own
// namespaces, beside them.
struct Member {
  size_t account;
  bool own = false;
  friend bool operator==(const Member&, const Member&) = default;
};

class Balance {
 public:
  Balance() = default;
  explicit Balance(std::vector<SharedQuota> quotas);

  // Accounts are numbered from 0, in the order of kind, namespace and name.
  size_t size() const { return accounts_.size(); }
  const Terms& terms(size_t account) const { return *accounts_[account].terms; }
  // With what those below it use.
  const Amounts& used(size_t account) const { return accounts_[account].used; }
  // Absent: no quota is in force there.
  std::optional<size_t> AccountOf(std::string_view ns) const;

  // Counts `sign` times the charge.
  void Add(size_t account, const Amounts& charge, int sign = 1);

  // Absent: it may. What min covers is not refused for what was too much before already, whoever
  // has it: `settled` is the balance without what is only promised; null: this one. `limited`: the
  // one that max and the borrowing limits, which nobody exceeds, are asked of; null: this one.
  std::optional<Refusal> WhyNot(size_t account, const Amounts& charge,
                                const Balance* settled = nullptr,
                                const Balance* limited = nullptr) const;
  // Where pods of the account's namespaces count, from the inside to the outside.
  std::vector<Member> PathOf(size_t account) const;
  // The same for one resource: of what the account's min does not name its pods use what is its
  // parent's own. None: nor does any above.
  std::vector<Member> PathOf(size_t account, cluster::ResourceId resource) const;
  // Whether the member's min covers the charge, too, in all that min names.
  bool WithinMin(Member member, const Amounts& charge) const;
  // The same of min and its share of what is idle, as that is then.
  bool WithinShare(Member member, const Amounts& charge) const;
  // Whether it uses more than that of the resource, which min names.
  bool IsBeyondMin(Member member, cluster::ResourceId resource) const;
  bool IsBeyondShare(Member member, cluster::ResourceId resource) const;
  // Whether the min of the account's own namespaces covers what the charge has of what that names,
  // beside what is used and `besides`, and it has something of it: then it is due to it, wherever
  // it is. What is shared with a parent's own namespaces has to be covered there.
  bool IsGuaranteed(size_t account, const Amounts& charge, const Amounts& besides = {}) const;

  // The member's share of what is idle on its level and of what its parent gets of what is idle
  // above, in proportion to min times weight, rounded down. Only of what min names.
  // As it is when it uses `asked` more.
  Amount ShareOf(Member member, cluster::ResourceId resource, Amount asked = 0) const;
  Amount ShareOf(size_t account, cluster::ResourceId resource) const {
    return ShareOf(Member{account}, resource);
  }
  Amount BorrowedBy(size_t account, cluster::ResourceId resource) const;
  // What it lends: of what is borrowed on its level its part, in proportion to what it could lend.
  // The parts of a level add up to what is borrowed, as far as that is covered.
  Amount LentBy(size_t account, cluster::ResourceId resource) const;

 private:
  // Of a resource, over the members of a level that name it in min: accounts below one parent, and
  // for what the parent has beyond them, in its own namespaces or otherwise, one without a number.
  struct Pool {
    Amount min = 0, weighted = 0, used = 0, lendable = 0, borrowed = 0;
    void Add(const Pool& other, int sign);
  };
  using Level = std::vector<std::pair<cluster::ResourceId, Pool>>;  // sorted
  struct Account {
    std::shared_ptr<const Terms> terms;
    Amounts used;
    Level children;
  };

  void PutInForce(std::vector<SharedQuota> quotas);
  void FindParents(std::vector<Terms>& terms) const;
  static void LeaveOutNothings(std::vector<Terms>& terms);
  static void FindOwnMins(std::vector<Terms>& terms);
  static void FindHeirs(std::vector<Terms>& terms);
  const Level& LevelBelow(std::optional<size_t> parent) const;
  // What an account that uses so much has in the pool of its level.
  Pool PartOf(size_t account, cluster::ResourceId resource, Amount used) const;
  // What is the parent's own, if it used so much.
  Pool RestOf(size_t parent, cluster::ResourceId resource, Amount used) const;
  // With so much more than it uses.
  Pool PartOf(Member member, cluster::ResourceId resource, Amount asked = 0) const;
  // The account below which its level is; none: it is the outermost.
  std::optional<size_t> Above(Member member) const;
  // With the parent's rest.
  Pool PoolBelow(std::optional<size_t> parent, cluster::ResourceId resource) const;
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
