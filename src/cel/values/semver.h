// Semantic versions (semver.org 2.0): "1.2.3-rc.1+build".
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "cel/values/arena.h"

namespace nos::cel {

struct Semver {
  struct Identifier {
    std::string_view text;  // empty for a number
    uint64_t number = 0;
  };
  uint64_t major = 0;
  uint64_t minor = 0;
  uint64_t patch = 0;
  std::span<const Identifier> prerelease;
  std::string_view text;  // with build metadata

  // Null if the text is no version.
  static const Semver* Parse(Arena& arena, std::string_view text);
  // Also accepts "v1.2" and leading zeros.
  static const Semver* ParseTolerant(Arena& arena, std::string_view text);
  // -1, 0 or 1. Build metadata have no order.
  int Compare(const Semver& other) const;
};

}  // namespace nos::cel
