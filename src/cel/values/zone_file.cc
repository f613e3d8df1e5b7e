#include "cel/values/zone_file.h"

#include <algorithm>
#include <string>

#include "base/file.h"

namespace nos::cel {
namespace {

constexpr size_t kHeader = 44;
constexpr size_t kMaxName = 64;

// Big-endian numbers of a file; zero behind its end.
int64_t Number(std::string_view file, size_t at, size_t width) {
  if (at + width > file.size()) return 0;
  uint64_t value = static_cast<unsigned char>(file[at]) >= 0x80 ? ~uint64_t{0} : 0;
  for (size_t i = 0; i < width; ++i) {
    value = (value << 8) | static_cast<unsigned char>(file[at + i]);
  }
  return static_cast<int64_t>(value);
}

struct Counts {
  size_t utc_flags, standard_flags, leaps, times, types, letters;
  size_t Body(size_t width) const {
    return times * width + times + types * 6 + letters + leaps * (width + 4) + standard_flags +
           utc_flags;
  }
};

Counts ReadCounts(std::string_view file, size_t at) {
  const auto count = [&](size_t i) {
    return std::min<size_t>(static_cast<size_t>(Number(file, at + 20 + i * 4, 4)), file.size());
  };
  return {count(0), count(1), count(2), count(3), count(4), count(5)};
}

bool SafeName(std::string_view zone) {
  return !zone.empty() && zone.size() <= kMaxName && zone[0] != '/' && zone[0] != '.' &&
         zone.find("..") == std::string_view::npos && zone.find('\\') == std::string_view::npos &&
         zone.find('\0') == std::string_view::npos;
}

}  // namespace

std::optional<int64_t> ZoneFileOffset(std::string_view zone, int64_t seconds) {
  if (!SafeName(zone)) return std::nullopt;
  const auto read = ReadFile("/usr/share/zoneinfo/" + std::string(zone));
  if (!read.ok() || !read->starts_with("TZif") || read->size() < kHeader) return std::nullopt;
  const std::string_view file = *read;
  size_t start = 0;
  size_t width = 4;
  if (file[4] >= '2') {  // the second half has times of 64 bits
    start = kHeader + ReadCounts(file, 0).Body(4);
    width = 8;
  }
  const Counts counts = ReadCounts(file, start);
  const size_t times = start + kHeader;
  const size_t indices = times + counts.times * width;
  const size_t types = indices + counts.times;
  if (counts.types == 0 || times + counts.Body(width) > file.size()) return std::nullopt;
  size_t type = 0;
  for (size_t i = 0; i < counts.times; ++i) {
    if (Number(file, times + i * width, width) > seconds) break;
    type = static_cast<unsigned char>(file[indices + i]);
  }
  return Number(file, types + type * 6, 4);
}

}  // namespace nos::cel
