// Which pods of a quota are covered by its min, and which run on what it borrows: label
// nos.nebuly.com/capacity: in-quota|over-quota.
//
// The oldest come first, then the more important, the smaller, and by name, as long as the sum of
// them stays within min, in all that min names. From the first that does not, all are over: it is
// they who may have to go. What a quota's parent names and it does not, its pods share with those
// of the parent's own namespaces: of that who uses it is counted so for itself. Source:
// nos-behaviour 6.3, but for priorities, which went the other way there.
//
// Pure functions of values.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

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

}  // namespace nos::quota
