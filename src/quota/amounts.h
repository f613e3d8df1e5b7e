// Amounts of resources whose sums cannot overflow, so that what was added can be taken off again
// whatever hostile pods ask for: cpu in thousandths of a core, all else in whole units (bytes,
// devices), as cluster::ResourceVector counts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cluster/resources.h"

namespace nos::quota {

// Each pod has at most 2^63 of anything.
using Amount = __int128;

class Amounts {
 public:
  using Entry = std::pair<cluster::ResourceId, Amount>;

  // Zeros are kept: what a limit names is limited, if to nothing.
  static Amounts From(const cluster::ResourceList& list);
  // Absent: it is not named.
  std::optional<Amount> Named(cluster::ResourceId id) const;
  Amount Get(cluster::ResourceId id) const { return Named(id).value_or(0); }
  void Set(cluster::ResourceId id, Amount amount);
  // `sign` times the others. What becomes 0 is not named any more.
  void Add(const Amounts& others, int sign = 1);
  bool empty() const { return entries_.empty(); }
  // Sorted by id.
  const std::vector<Entry>& entries() const { return entries_; }
  friend bool operator==(const Amounts&, const Amounts&) = default;

 private:
  std::vector<Entry> entries_;
};

// As Kubernetes writes it; what is beyond its numbers as the last of them.
Quantity QuantityOf(cluster::ResourceId id, Amount amount);
cluster::ResourceList ListOf(const Amounts& amounts);
// "40", "1500m", "16Gi".
std::string TextOf(cluster::ResourceId id, Amount amount);

}  // namespace nos::quota
