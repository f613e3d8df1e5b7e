#include "device/backend/readings.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace nos::device {
namespace {

constexpr double kMaxOfAnything = 1e15;  // no counter of a GPU reaches this

bool IsShare(std::string_view metric) {
  return metric == metric::kUtilization || metric == metric::kMemoryUtilization;
}

}  // namespace

void Readings::Take(std::string_view metric, const Result<double>& value) {
  const std::string name(metric);
  if (!value.ok()) {
    if (!metrics.contains(name)) unmeasured[name] = value.status().message();
    return;
  }
  // Counters of work overshoot slightly, so shares may be up to 1.1.
  const double most = IsShare(metric) ? 1.1 : kMaxOfAnything;
  if (!(*value >= 0 && *value <= most)) {
    unmeasured[name] = fmt::format("the driver says {}, which cannot be", *value);
    return;
  }
  metrics[name] = IsShare(metric) ? std::min(*value, 1.0) : *value;
  unmeasured.erase(name);
}

std::optional<double> Readings::Find(std::string_view metric) const {
  const auto found = metrics.find(metric);
  if (found == metrics.end()) return std::nullopt;
  return found->second;
}

Readings NothingMeasured(const std::string& why) {
  Readings readings;
  for (const std::string_view metric :
       {metric::kUtilization, metric::kMemoryUsed, metric::kMemoryTotal}) {
    readings.unmeasured[std::string(metric)] = why;
  }
  return readings;
}

}  // namespace nos::device
