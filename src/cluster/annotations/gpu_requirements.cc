#include "cluster/gpu_requirements.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "base/quantity.h"
#include "base/text.h"

namespace nos::cluster {
namespace {

constexpr int64_t kMib = 1 << 20;

Status Wrong(std::string_view key, std::string_view value, std::string_view what) {
  return Invalid(fmt::format("annotation {}: '{}' {}", key, Shortened(value, 100), what));
}

}  // namespace

Result<std::optional<GpuRequirements>> ReadGpuRequirements(const StringMap& annotations) {
  const auto text = [&](std::string_view key) {
    const auto found = annotations.find(key);
    return found == annotations.end() ? std::string_view() : Trim(found->second);
  };
  constexpr std::string_view kPrefix = "nos.nebuly.com/need-";
  constexpr std::array kKnown = {kNeedMemory, kNeedCompute, kNeedIsolation, kNeedModels,
                                 kNeedContainer};
  for (auto at = annotations.lower_bound(std::string(kPrefix));
       at != annotations.end() && at->first.starts_with(kPrefix); ++at) {
    if (std::ranges::find(kKnown, std::string_view(at->first)) == kKnown.end()) {
      return Wrong(Shortened(at->first, 100), text(at->first), "is no need that is known");
    }
  }
  if (!annotations.contains(kNeedMemory)) {
    for (const std::string_view key : {kNeedCompute, kNeedIsolation, kNeedModels, kNeedContainer}) {
      if (annotations.contains(key)) {
        return Wrong(key, text(key), fmt::format("needs {} beside it", kNeedMemory));
      }
    }
    return std::optional<GpuRequirements>();
  }
  GpuRequirements need;
  const std::string_view memory = text(kNeedMemory);
  const auto bytes = Quantity::Parse(memory);
  if (!bytes.ok() || bytes->Value() < kMib) {
    return Wrong(kNeedMemory, memory, "is no amount of memory such as 10Gi, or less than 1Mi");
  }
  need.memory_mib = bytes->Value() / kMib + (bytes->Value() % kMib == 0 ? 0 : 1);
  if (const std::string_view compute = text(kNeedCompute); annotations.contains(kNeedCompute)) {
    const auto share = Quantity::Parse(compute);
    need.compute_milli = share.ok() ? share->MilliValue() : 0;
    if (need.compute_milli < 1 || need.compute_milli > 1000) {
      return Wrong(kNeedCompute, compute, "is no part of a GPU such as 0.25, above 0 and up to 1");
    }
  }
  if (const std::string_view isolated = text(kNeedIsolation);
      annotations.contains(kNeedIsolation)) {
    need.isolated = isolated == "true";
    if (!need.isolated && isolated != "false") {
      return Wrong(kNeedIsolation, isolated, "is neither true nor false");
    }
  }
  if (annotations.contains(kNeedModels)) {
    for (const std::string_view model : Split(text(kNeedModels), ',')) {
      if (Trim(model).empty()) return Wrong(kNeedModels, text(kNeedModels), "has an empty name");
      need.models.emplace_back(Trim(model));
    }
  }
  need.container = text(kNeedContainer);
  return std::optional(std::move(need));
}

}  // namespace nos::cluster
