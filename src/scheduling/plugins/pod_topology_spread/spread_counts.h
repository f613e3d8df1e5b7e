// Numbers of pods per domain of one constraint, with their minimum.
//
//   SpreadCounts counts;
//   counts.Add("zone-a", 0);  // a domain without pods counts, too
//   counts.Add("zone-b", 2);
//   counts.Least();           // 0
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "scheduling/framework/domain_sums.h"

namespace nos::scheduling {

class SpreadCounts {
 public:
  static constexpr int64_t kNoDomain = std::numeric_limits<int32_t>::max();

  // `pods` may be negative. REQUIRES: counts stay >= 0.
  void Add(std::string_view value, int64_t pods);
  // 0 if the domain does not exist.
  int64_t At(std::string_view value) const;
  int64_t Least() const { return domains_.empty() ? kNoDomain : static_cast<int64_t>(least_); }
  const ByText<int64_t>& domains() const { return domains_; }

 private:
  ByText<int64_t> domains_;
  std::vector<size_t> with_;  // number of domains, by count
  size_t least_ = 0;
};

}  // namespace nos::scheduling
