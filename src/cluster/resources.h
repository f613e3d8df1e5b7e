// Resources as dense integers, for arithmetic in the hot path: cpu in thousandths of a core, all
// other resources in whole units (bytes, devices), as kube-scheduler counts them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cluster/objects.h"

namespace nos::cluster {

using ResourceId = uint16_t;

// Names and ids, process-wide and append-only. Thread-safe.
ResourceId InternResource(std::string_view name);
const std::string& ResourceName(ResourceId id);

// Sorted by id; absent means 0.
class ResourceVector {
 public:
  static ResourceVector From(const ResourceList& list);
  int64_t Get(ResourceId id) const;
  void Set(ResourceId id, int64_t amount);
  void Add(const ResourceVector& other);
  void Subtract(const ResourceVector& other);
  const std::vector<std::pair<ResourceId, int64_t>>& entries() const { return entries_; }
  friend bool operator==(const ResourceVector&, const ResourceVector&) = default;

 private:
  std::vector<std::pair<ResourceId, int64_t>> entries_;
};

}  // namespace nos::cluster
