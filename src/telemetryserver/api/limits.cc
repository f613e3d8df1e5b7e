#include "telemetryserver/limits.h"

#include <algorithm>
#include <utility>

namespace nos::telemetryserver {
namespace {

// Each action holds a copy of the cluster's objects and a thread of the server.
constexpr size_t kMaxActing = 4;
constexpr double kSeconds = 5;        // burst size, as seconds of requests
constexpr double kMaxActions = 10;    // burst size of actions
constexpr double kFailuresOfAll = 5;  // multiple of the limit of one address

net::RateLimit::Options PerSecond(int64_t rate) {
  return {.per_second = static_cast<double>(rate), .burst = static_cast<double>(rate) * kSeconds};
}

net::RateLimit::Options PerMinute(double rate, double burst) {
  return {.per_second = rate / 60, .burst = std::max(1.0, burst)};
}

}  // namespace

Limits::Limits(const LimitOptions& options)
    : address(PerSecond(options.address_per_second)),
      reader(PerSecond(options.reader_per_second)),
      actions(PerMinute(static_cast<double>(options.actions_per_minute),
                        std::min(kMaxActions, static_cast<double>(options.actions_per_minute)))),
      failures(PerMinute(static_cast<double>(options.failures_per_minute),
                         static_cast<double>(options.failures_per_minute))),
      all_failures(PerMinute(kFailuresOfAll * static_cast<double>(options.failures_per_minute),
                             kFailuresOfAll * static_cast<double>(options.failures_per_minute))) {}

std::unique_ptr<Limits::Turn> Limits::Begin(const std::string& who) {
  const std::scoped_lock lock(mutex_);
  if (acting_.size() >= kMaxActing || !acting_.insert(who).second) return nullptr;
  return std::make_unique<Turn>(*this, who);
}

Limits::Turn::~Turn() {
  const std::scoped_lock lock(limits_.mutex_);
  limits_.acting_.erase(who_);
}

}  // namespace nos::telemetryserver
