#include "dra/publication/counters.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace nos::dra {
namespace {

constexpr size_t kMaxCounters = 32;  // in a set, and of a device
// In the order of gpu::ModelShape::engines.
constexpr std::array kEngines = {"decoders", "encoders", "jpeg-engines", "ofa-engines"};

std::string EngineName(size_t index) {
  return index < kEngines.size() ? kEngines[index] : fmt::format("engine-{}", index);
}

// True if its starts alone do not limit the number of its instances.
bool IsLimited(const gpu::ProfileShape& profile) {
  return profile.starts.size() > profile.max_count;
}

}  // namespace

// An instance that excludes others needs all of a counter of which each of the others needs one. No
// layout has more instances than slots.
CounterAmounts CountersOfGpu(const gpu::Model& model) {
  const gpu::ModelShape& shape = model.shape();
  CounterAmounts all;
  for (int slot = 0; slot < shape.slots; ++slot) all[fmt::format("memory-slice-{}", slot)] = 1;
  for (size_t i = 0; i < shape.engines.size(); ++i) {
    if (shape.engines[i] > 0) all[EngineName(i)] = shape.engines[i];
  }
  for (size_t i = 0; i < shape.profiles.size(); ++i) {
    const gpu::ProfileShape& profile = shape.profiles[i];
    if (IsLimited(profile)) all[fmt::format("profile-{}", i)] = profile.max_count;
    if (profile.excludes != 0) all[fmt::format("exclusive-{}", i)] = shape.slots;
  }
  return all;
}

CounterAmounts CountersOf(const gpu::Model& model, gpu::Placement placement) {
  const gpu::ModelShape& shape = model.shape();
  const gpu::ProfileShape& profile = shape.profiles[placement.profile];
  CounterAmounts used;
  for (int i = 0; i < profile.size; ++i) {
    used[fmt::format("memory-slice-{}", placement.start + i)] = 1;
  }
  for (size_t i = 0; i < profile.engines.size(); ++i) {
    if (profile.engines[i] > 0) used[EngineName(i)] = profile.engines[i];
  }
  if (IsLimited(profile)) used[fmt::format("profile-{}", placement.profile)] = 1;
  for (size_t i = 0; i < shape.profiles.size(); ++i) {
    if (((shape.profiles[i].excludes >> placement.profile) & 1U) != 0) {
      used[fmt::format("exclusive-{}", i)] = 1;
    }
  }
  if (profile.excludes != 0) used[fmt::format("exclusive-{}", placement.profile)] = shape.slots;
  return used;
}

bool HasCounters(const gpu::Model& model) {
  if (model.counted()) return false;
  const auto divided = [](const gpu::ProfileShape& profile) {
    return profile.part_of != gpu::ProfileShape::kNotDivided;
  };
  return std::ranges::none_of(model.shape().profiles, divided) &&
         CountersOfGpu(model).size() <= kMaxCounters;
}

}  // namespace nos::dra
