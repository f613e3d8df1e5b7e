#include "scheduling/plugins/pod_topology_spread/spread_counts.h"

#include <algorithm>

namespace nos::scheduling {

void SpreadCounts::Add(std::string_view value, int64_t pods) {
  auto domain = domains_.find(value);
  const bool fresh = domain == domains_.end();
  if (!fresh && pods == 0) return;
  if (fresh) domain = domains_.try_emplace(std::string(value), 0).first;
  if (!fresh) --with_[static_cast<size_t>(domain->second)];
  domain->second += pods;
  const auto count = static_cast<size_t>(domain->second);
  if (count >= with_.size()) with_.resize(count + 1);
  ++with_[count];
  least_ = domains_.size() == 1 ? count : std::min(least_, count);
  while (with_[least_] == 0) ++least_;
}

int64_t SpreadCounts::At(std::string_view value) const {
  const auto domain = domains_.find(value);
  return domain == domains_.end() ? 0 : domain->second;
}

}  // namespace nos::scheduling
