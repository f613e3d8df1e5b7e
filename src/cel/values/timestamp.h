// Points in time with their offset from UTC, and durations as Go writes them ("1h30m").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace nos::cel {

inline constexpr int64_t kMinUnixTime = -62135596800;  // year 1
inline constexpr int64_t kMaxUnixTime = 253402300799;  // year 9999
inline constexpr int64_t kNanosPerSecond = 1'000'000'000;

struct Timestamp {
  int64_t seconds = 0;  // since 1970
  int32_t nanos = 0;
  int32_t offset = 0;  // seconds east of UTC, only for text

  bool SameInstant(const Timestamp& other) const {
    return seconds == other.seconds && nanos == other.nanos;
  }
  int Compare(const Timestamp& other) const;

  // RFC 3339, with the liberties that Go's parser takes. Empty if the text is no time.
  static std::optional<Timestamp> Parse(std::string_view text);
  std::string ToString() const;
};

// The calendar of a timestamp in a zone.
struct CivilTime {
  int64_t year = 0;
  int month = 0;        // 1 to 12
  int day = 0;          // 1 to 31
  int day_of_year = 0;  // 0 to 365
  int weekday = 0;      // 0 is Sunday
  int hour = 0;
  int minute = 0;
  int second = 0;

  // `seconds` since 1970, in the local time of the zone.
  static CivilTime Of(int64_t seconds);
};

// The zone's offset from UTC at a time: "UTC", "+02:30", or a name of the IANA database, which is
// read from /usr/share/zoneinfo. Empty if there is no such zone.
std::optional<int64_t> ZoneOffset(std::string_view zone, int64_t seconds);

// Nanoseconds; none if the text is no duration.
std::optional<int64_t> ParseDuration(std::string_view text);

}  // namespace nos::cel
