// How much one address and one reader may ask of the server.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "telemetryserver/api/rate_limit.h"

namespace nos::telemetryserver {

struct LimitOptions {
  // 0: as often as they like.
  int64_t address_per_second = 50, reader_per_second = 20;
  int64_t actions_per_minute = 30, failures_per_minute = 10;
};

class Limits {
 public:
  explicit Limits(const LimitOptions& options);

  RateLimit address, reader, actions;
  RateLimit failures;      // of one address to sign in
  RateLimit all_failures;  // of all together: each costs the API server a question

  // While it lives nobody else acts for that reader, and few act at all. Null: come again.
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
