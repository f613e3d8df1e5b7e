#include "telemetryserver/cost/measured.h"

#include <algorithm>
#include <cmath>

namespace nos::telemetryserver {

void Measured::Add(const std::string& subject, const Bucket& bucket, telemetry::Millis step) {
  AddReport(subject, bucket.at, step);
  if (!std::isfinite(bucket.mean) || bucket.count <= 0) return;
  Windows& windows = utilization_[subject];
  telemetry::Millis window = FloorTo(bucket.at, kCostWindow);
  do {
    Mean& mean = windows[window];
    mean.sum += std::clamp(bucket.mean, 0.0, 1.0) * bucket.count;
    mean.count += bucket.count;
    window += kCostWindow;
  } while (window < bucket.at + step);
}

void Measured::AddReport(const std::string& subject, telemetry::Millis at, telemetry::Millis step) {
  auto& windows = reported_[subject];
  telemetry::Millis window = FloorTo(at, kCostWindow);
  do {
    windows.insert(window);
    window += kCostWindow;
  } while (window < at + step);
}

std::optional<double> Measured::Utilization(const std::string& subject,
                                            telemetry::Millis at) const {
  const auto windows = utilization_.find(subject);
  if (windows == utilization_.end()) return std::nullopt;
  const auto mean = windows->second.find(FloorTo(at, kCostWindow));
  if (mean == windows->second.end()) return std::nullopt;
  return mean->second.sum / mean->second.count;
}

bool Measured::Reported(const std::string& subject, telemetry::Millis at) const {
  const auto windows = reported_.find(subject);
  return windows != reported_.end() && windows->second.contains(FloorTo(at, kCostWindow));
}

}  // namespace nos::telemetryserver
