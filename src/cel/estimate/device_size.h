// The largest sizes of what lies in a device, by the path to it.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "cel/estimate/range.h"

namespace nos::cel {

// A place in a device. kNone: somewhere else, or unknown.
enum class Place {
  kNone,
  kDevice,
  kDriver,
  kMultiple,
  kAttributes,
  kDomainAttributes,
  kAttribute,
  kCapacity,
  kDomainCapacity,
  kQuantity,
  kDomain,
  kIdentifier,
};

// A variable and the names behind it, with "@items", "@values", "@keys" for what is in a container.
//
// A path that grows may overwrite the last name of another path with the same beginning: upstream's
// paths are slices of Go, its estimates depend on that, and the API server decides by them.
class Path {
 public:
  Path() = default;
  explicit Path(std::string_view variable);
  Path Then(std::string_view name) const;
  Place place() const;

 private:
  std::shared_ptr<std::vector<std::string_view>> names_;  // its capacity is that of a slice
  size_t size_ = 0;
};

// Limits of the API (resource.k8s.io/v1).
std::optional<Range> SizeAt(Place place);
inline std::optional<Range> SizeAt(const Path& path) { return SizeAt(path.place()); }

}  // namespace nos::cel
