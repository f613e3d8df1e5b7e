// Amounts of resources in 128-bit integers: sums cannot overflow, so subtracting a charge always
// undoes its addition, even if a hostile pod requests huge quantities.
//
// Units are those of cluster::ResourceVector: thousandths of a core for cpu, whole units (bytes,
// devices) for all other resources.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cluster/resources.h"

namespace nos::quota {

// Large enough for the sum over all pods: one pod requests at most 2^63 of a resource.
using Amount = __int128;

class Amounts {
 public:
  using Entry = std::pair<cluster::ResourceId, Amount>;

  // Keeps zeros: a limit of 0 is a limit, an absent entry is none.
  static Amounts From(const cluster::ResourceList& list);
  // Absent: the amounts do not name the resource.
  std::optional<Amount> Named(cluster::ResourceId id) const;
  Amount Get(cluster::ResourceId id) const { return Named(id).value_or(0); }
  void Set(cluster::ResourceId id, Amount amount);
  // Adds `sign` times the other amounts. Drops entries whose sum is 0.
  void Add(const Amounts& others, int sign = 1);
  bool empty() const { return entries_.empty(); }
  // Sorted by id.
  const std::vector<Entry>& entries() const { return entries_; }
  friend bool operator==(const Amounts&, const Amounts&) = default;

 private:
  std::vector<Entry> entries_;
};

// Kubernetes Quantity of an amount. Amounts outside int64 are clamped to its limits.
Quantity QuantityOf(cluster::ResourceId id, Amount amount);
cluster::ResourceList ListOf(const Amounts& amounts);
// In Kubernetes notation: "40", "1500m", "16Gi".
std::string TextOf(cluster::ResourceId id, Amount amount);

}  // namespace nos::quota
