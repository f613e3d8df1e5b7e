#include "net/rate_limit.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <vector>

namespace nos::net {

double RateLimit::TokensAt(const Bucket& bucket, Time now) const {
  if (now < bucket.at) return options_.burst;  // the clock was set back
  const double passed = ToSeconds(now - bucket.at);
  return std::min(options_.burst, bucket.tokens + passed * options_.per_second);
}

Duration RateLimit::Look(const std::string& who, Time now, double spend) {
  if (options_.per_second <= 0) return {};
  const std::scoped_lock lock(mutex_);
  const auto found = buckets_.find(who);
  const double tokens = found == buckets_.end() ? options_.burst : TokensAt(found->second, now);
  if (tokens < 1) return FromSeconds((1 - tokens) / options_.per_second);
  if (spend == 0) return {};
  if (found == buckets_.end()) MakeRoom(now);
  buckets_.insert_or_assign(who, Bucket{tokens - spend, now});
  return {};
}

// A full bucket equals an unknown client, so full buckets are removed first; otherwise the half
// that was unused longest.
void RateLimit::MakeRoom(Time now) {
  if (buckets_.size() < options_.max_known) return;
  std::erase_if(buckets_,
                [&](const auto& entry) { return TokensAt(entry.second, now) >= options_.burst; });
  if (buckets_.size() < options_.max_known) return;
  std::vector<Time> times;
  times.reserve(buckets_.size());
  for (const auto& [who, bucket] : buckets_) times.push_back(bucket.at);
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::ranges::nth_element(times, middle);
  std::erase_if(buckets_, [&](const auto& entry) { return entry.second.at <= *middle; });
}

bool RateLimit::Knows(const std::string& who, Time now) const {
  const std::scoped_lock lock(mutex_);
  const auto found = buckets_.find(who);
  return found != buckets_.end() && TokensAt(found->second, now) < options_.burst;
}

size_t RateLimit::known() const {
  const std::scoped_lock lock(mutex_);
  return buckets_.size();
}

std::string NetworkOf(const std::string& address) {
  std::array<unsigned char, 16> bytes{};
  if (inet_pton(AF_INET6, address.c_str(), bytes.data()) != 1) return address;
  std::fill(bytes.begin() + 8, bytes.end(), 0);
  std::array<char, INET6_ADDRSTRLEN> text{};
  inet_ntop(AF_INET6, bytes.data(), text.data(), text.size());
  return std::string(text.data()) + "/64";
}

}  // namespace nos::net
