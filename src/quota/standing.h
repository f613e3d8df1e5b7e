// Which pods of a quota are covered by its min, and which run on what it borrows: label
// nos.nebuly.com/capacity: in-quota|over-quota.
//
// The oldest come first, then the more important, the smaller, and by name, as long as the sum of
// them stays within min, in all that min names. From the first that does not, all are over: it is
// they who may have to go. What a quota's parent names and it does not, its pods share with those
// of the parent's own namespaces: of that who uses it is counted so for itself. Source:
// nos-behaviour 6.3, but for priorities, which went the other way there.
//
// Values and pure functions of them.
#pragma once

#include <memory>
#include <set>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "quota/amounts.h"

namespace nos::quota {

inline constexpr std::string_view kCapacityLabel = "nos.nebuly.com/capacity";
inline constexpr std::string_view kInQuota = "in-quota";
inline constexpr std::string_view kOverQuota = "over-quota";

struct Holder {
  std::shared_ptr<const cluster::Pod> pod;
  Amounts charge;
  bool over_quota = false;  // as CountInQuota has it
};

// The order in which they are covered, of those that count where no more is guaranteed than `min`.
// No two with pods of one name are alike to it.
class StandingOrder {
 public:
  explicit StandingOrder(const Amounts& min);
  bool operator()(const Holder* a, const Holder* b) const;

 private:
  std::vector<cluster::ResourceId> named_;  // by name: ids differ from run to run
};

// Says of each where it stands; returns how many of them, from the front, are in quota. REQUIRES:
// they are in that order.
size_t CountInQuota(const Amounts& min, const std::vector<Holder*>& ordered);

// The same of one resource that pods of several quotas share, as they come and go. Those that do
// not use it are left out. The holders must outlive it, unchanged until they are removed.
class SharedStanding {
 public:
  SharedStanding(cluster::ResourceId resource, Amount min);
  SharedStanding(const SharedStanding&) = delete;
  SharedStanding& operator=(const SharedStanding&) = delete;
  // Visits those of the others that are covered no more, or now.
  using Crossed = FunctionRef<void(const Holder&)>;
  void Add(const Holder& holder, Crossed crossed);
  void Remove(const Holder& holder, Crossed crossed);
  // Whether it is covered, or does not use the resource. REQUIRES: it was added.
  bool Covers(const Holder& holder) const;

 private:
  Amount UseOf(const Holder& holder) const { return holder.charge.Get(resource_); }
  bool IsBeforeFirstOver(const Holder& holder) const;

  cluster::ResourceId resource_;
  Amount min_, covered_ = 0;  // of those before first_over_
  StandingOrder order_;
  std::set<const Holder*, StandingOrder> holders_;
  std::set<const Holder*, StandingOrder>::iterator first_over_;
};

}  // namespace nos::quota
