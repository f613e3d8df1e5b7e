#include "base/uuid.h"

#include <fmt/core.h>

#include <cstdint>

#include "base/random.h"

namespace nos {

std::string NameBasedUuid(std::string_view name) {
  uint64_t seed = 0xcbf29ce484222325ULL;  // FNV-1a
  for (const char c : name) seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  Random random(seed);
  const uint64_t high = (random.Next() & ~0xf000ULL) | 0x5000;
  const uint64_t low = (random.Next() & ~(3ULL << 62)) | (2ULL << 62);
  return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", high >> 32, (high >> 16) & 0xffff,
                     high & 0xffff, low >> 48, low & 0xffffffffffffULL);
}

}  // namespace nos
