// Request limits per address and per reader.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "net/rate_limit.h"

namespace nos::telemetryserver {

struct LimitOptions {
  // 0: no limit.
  int64_t address_per_second = 50, reader_per_second = 20;
  int64_t actions_per_minute = 30, failures_per_minute = 10;
};

class Limits {
 public:
  explicit Limits(const LimitOptions& options);

  net::RateLimit address, reader, actions;
  net::RateLimit failures;      // failed sign-ins of one address
  net::RateLimit all_failures;  // over all addresses: each costs a request to the API server

  // Allows one action per reader and a few in total while it lives. Null: the limit is reached.
  class Turn {
   public:
    Turn(Limits& limits, std::string who) : limits_(limits), who_(std::move(who)) {}
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    Limits& limits_;
    const std::string who_;
  };
  std::unique_ptr<Turn> Begin(const std::string& who);

 private:
  std::mutex mutex_;
  std::set<std::string> acting_;
};

}  // namespace nos::telemetryserver
