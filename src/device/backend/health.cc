#include "device/health.h"

#include <fmt/core.h>

#include <algorithm>
#include <tuple>
#include <utility>

namespace nos::device {
namespace {

auto Key(const HealthCondition& condition) {
  return std::tuple(condition.gpu, condition.instance, condition.kind, condition.xid);
}

}  // namespace

std::string HealthCondition::Reason() const {
  switch (kind) {
    case Kind::kXid:
      return fmt::format("Xid{}", xid);
    case Kind::kMemoryError:
      return "MemoryError";
    case Kind::kLost:
      return "GpuLost";
    case Kind::kUnwatched:
      return "HealthNotWatched";
    case HealthCondition::Kind::kMps:
      return "MpsNotServed";
    case Kind::kHangs:
      return "GpuHangs";
    case Kind::kDriverHangs:
      return "DriverHangs";
  }
  return "Unknown";
}

void GpuHealth::Add(HealthCondition condition) {
  {
    const std::lock_guard lock(mutex_);
    const auto at = std::lower_bound(
        conditions_.begin(), conditions_.end(), condition,
        [](const auto& left, const auto& right) { return Key(left) < Key(right); });
    if (at != conditions_.end() && Key(*at) == Key(condition)) {
      if (*at == condition) return;
      *at = std::move(condition);
    } else {
      conditions_.insert(at, std::move(condition));
    }
  }
  if (listener_) listener_();
}

template <typename Predicate>
void GpuHealth::EraseIf(const Predicate& predicate) {
  {
    const std::lock_guard lock(mutex_);
    if (std::erase_if(conditions_, predicate) == 0) return;
  }
  if (listener_) listener_();
}

void GpuHealth::Clear(int gpu, HealthCondition::Kind kind) {
  EraseIf([&](const HealthCondition& condition) {
    return condition.gpu == gpu && condition.kind == kind;
  });
}

void GpuHealth::ClearOne(int gpu, std::optional<uint32_t> instance, HealthCondition::Kind kind) {
  EraseIf([&](const HealthCondition& condition) {
    return condition.gpu == gpu && condition.instance == instance && condition.kind == kind;
  });
}

void GpuHealth::ClearInstance(int gpu, uint32_t instance) {
  EraseIf([&](const HealthCondition& condition) {
    return condition.gpu == gpu && condition.instance == instance;
  });
}

void GpuHealth::ClearGpu(int gpu) {
  EraseIf([&](const HealthCondition& condition) { return condition.gpu == gpu; });
}

std::vector<HealthCondition> GpuHealth::Conditions() const {
  const std::lock_guard lock(mutex_);
  return conditions_;
}

bool GpuHealth::Usable(int gpu, uint32_t instance) const {
  const std::lock_guard lock(mutex_);
  return std::none_of(conditions_.begin(), conditions_.end(), [&](const auto& condition) {
    return condition.Disables() && condition.gpu == gpu &&
           (!condition.instance || *condition.instance == instance);
  });
}

}  // namespace nos::device
