// Rate limits per client: a token bucket each, refilled at a constant rate. An unknown client has a
// full bucket, so that only active clients need memory. The number of buckets is bounded.
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

namespace nos::net {

class RateLimit {
 public:
  struct Options {
    double per_second = 0, burst = 1;  // 0: no limit
    size_t max_known = 10'000;
  };
  explicit RateLimit(Options options) : options_(options) {}

  // Takes `tokens`. Zero: allowed; otherwise the time until a token is available. The bucket may
  // owe tokens after that, so that a request larger than the bucket is possible.
  Duration Take(const std::string& who, Time now, double tokens = 1) {
    return Look(who, now, tokens);
  }
  // Same, without taking the token.
  Duration Wait(const std::string& who, Time now) { return Look(who, now, 0); }
  // True if the client was active recently.
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

// Key of the limits: an IPv6 host has 2^64 addresses, which count as one.
std::string NetworkOf(const std::string& address);

}  // namespace nos::net
