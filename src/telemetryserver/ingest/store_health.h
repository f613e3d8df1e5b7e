// Records if the last write to the store succeeded, and since when a round of writes runs.
//
//   StoreHealth health(metrics);
//   const StoreHealth::Round round(health);
//   health.Set(store.Transaction(write));  // logs when writing starts to fail, and when it resumes
//   if (!health.Get().ok()) ...
//
// Thread-safe.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/status.h"

namespace nos::telemetryserver {

// A round that runs longer has a disk that stalls: most end within a second.
inline constexpr Duration kMaxRound = std::chrono::seconds(20);

class StoreHealth {
 public:
  class Round {
   public:
    explicit Round(StoreHealth& health) : health_(health) { health_.Running(true); }
    ~Round() { health_.Running(false); }
    Round(const Round&) = delete;
    Round& operator=(const Round&) = delete;

   private:
    StoreHealth& health_;
  };

  // `metrics` must outlive this object; failures are counted there. `now`: of a steady clock.
  explicit StoreHealth(
      Metrics& metrics, std::function<Time()> now = [] { return SteadyClock().Now(); })
      : metrics_(metrics), now_(std::move(now)) {}

  void Set(const Status& status);
  // OK, or why writing fails. kUnavailable: a round runs for longer than kMaxRound.
  Status Get() const;
  // The last write failed.
  bool failing() const;

 private:
  void Running(bool runs);

  Metrics& metrics_;
  const std::function<Time()> now_;
  mutable std::mutex mutex_;
  Status status_;
  std::optional<Time> since_;  // the start of the round that runs
};

}  // namespace nos::telemetryserver
