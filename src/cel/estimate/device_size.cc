#include "cel/estimate/device_size.h"

#include <algorithm>

namespace nos::cel {
namespace {

// The place of a field or of what is in a container.
Place Step(Place place, std::string_view name) {
  const bool keys = name == "@keys";
  const bool values = name == "@items" || name == "@values";
  switch (place) {
    case Place::kDevice:
      if (name == "driver") return Place::kDriver;
      if (name == "allowMultipleAllocations") return Place::kMultiple;
      if (name == "attributes") return Place::kAttributes;
      if (name == "capacity") return Place::kCapacity;
      return Place::kNone;
    case Place::kAttributes:
      return keys ? Place::kDomain : values ? Place::kDomainAttributes : Place::kNone;
    case Place::kDomainAttributes:
      return keys ? Place::kIdentifier : Place::kAttribute;
    case Place::kCapacity:
      return keys ? Place::kDomain : values ? Place::kDomainCapacity : Place::kNone;
    case Place::kDomainCapacity:
      return keys ? Place::kIdentifier : values ? Place::kQuantity : Place::kNone;
    default:
      return Place::kNone;
  }
}

}  // namespace

Path::Path(std::string_view variable)
    : names_(std::make_shared<std::vector<std::string_view>>(1, variable)), size_(1) {}

Path Path::Then(std::string_view name) const {
  Path longer = *this;
  if (names_ == nullptr || size_ == names_->size()) {
    longer.names_ = std::make_shared<std::vector<std::string_view>>(std::max<size_t>(1, size_ * 2));
    if (names_ != nullptr) std::copy(names_->begin(), names_->end(), longer.names_->begin());
  }
  (*longer.names_)[size_] = name;
  ++longer.size_;
  return longer;
}

Place Path::place() const {
  if (size_ == 0 || names_->front() != "device") return Place::kNone;
  Place place = Place::kDevice;
  for (size_t i = 1; i < size_ && place != Place::kNone; ++i) place = Step(place, (*names_)[i]);
  return place;
}

std::optional<Range> SizeAt(Place place) {
  switch (place) {
    case Place::kNone:
      return std::nullopt;
    case Place::kDevice:
    case Place::kQuantity:
      return Range{0, 0};
    case Place::kMultiple:
      return Range{0, 1};
    case Place::kAttributes:
    case Place::kDomainAttributes:
    case Place::kCapacity:
    case Place::kDomainCapacity:
    case Place::kIdentifier:
      return Range{0, 32};
    case Place::kDriver:
    case Place::kDomain:
      return Range{0, 63};
    case Place::kAttribute:
      return Range{0, 64};
  }
  return std::nullopt;
}

}  // namespace nos::cel
