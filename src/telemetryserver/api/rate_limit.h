// How often somebody may do something: a bucket of tokens each, refilled steadily. Who is not known
// has a full one, so that only those who spend take room, and there is a most of them.
//
//   RateLimit per_address({.per_second = 50, .burst = 250});
//   if (const Duration wait = per_address.Take(address, now); wait > Duration(0)) refuse;
//
// Thread-safe.
#pragma once

#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/clock.h"

namespace nos::telemetryserver {

class RateLimit {
 public:
  struct Options {
    double per_second = 0, burst = 1;  // 0: as often as they like
    size_t most_known = 10'000;
  };
  explicit RateLimit(Options options) : options_(options) {}

  // Zero: it may, and has. Else how long it has to wait for that.
  Duration Take(const std::string& who, Time now) { return Look(who, now, 1); }
  // The same without doing it.
  Duration Wait(const std::string& who, Time now) { return Look(who, now, 0); }
  // It has been here lately.
  bool Knows(const std::string& who, Time now) const;
  size_t known() const;

 private:
  struct Bucket {
    double tokens = 0;
    Time at{};
  };
  Duration Look(const std::string& who, Time now, double spend);
  double TokensAt(const Bucket& bucket, Time now) const;
  void MakeRoom(Time now);

  const Options options_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, Bucket> buckets_;
};

// What limits go by: an IPv6 host has 2^64 addresses of its own, which count as one.
std::string NetworkOf(const std::string& address);

}  // namespace nos::telemetryserver
