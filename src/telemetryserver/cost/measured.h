// Measurements of GPUs and slices by windows of five minutes: mean utilization, and which reported.
//
//   Measured measured;
//   measured.Add("instance/MIG-1", bucket, step);
//   measured.Utilization("instance/MIG-1", at);   // nullopt: not measured around that time
//
// Pure. Internal to this library.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "telemetryserver/levels.h"

namespace nos::telemetryserver {

inline constexpr telemetry::Millis kCostWindow = 5 * kMinute;

class Measured {
 public:
  // Utilization. `step`: length of the bucket; 0: a sample.
  void Add(const std::string& subject, const Bucket& bucket, telemetry::Millis step);
  // The subject reported something in the bucket.
  void AddReport(const std::string& subject, telemetry::Millis at, telemetry::Millis step);
  std::optional<double> Utilization(const std::string& subject, telemetry::Millis at) const;
  bool Reported(const std::string& subject, telemetry::Millis at) const;

 private:
  struct Mean {
    double sum = 0, count = 0;
  };
  using Windows = std::map<telemetry::Millis, Mean>;  // by their beginning
  std::unordered_map<std::string, Windows> utilization_;
  std::unordered_map<std::string, std::unordered_set<telemetry::Millis>> reported_;
};

}  // namespace nos::telemetryserver
