// Counters, gauges and histograms, exported in the Prometheus text format.
//
//   // kPlans: {MetricFamily::Kind::kCounter, "nos_x_total", "What it counts."}
//   metrics.Count(kPlans, {{"result", "ok"}});
//
// Names follow prometheus.io/docs/practices/naming: base units, "_total" for counters. A family's
// name is its identity: use it with one kind, and always with the same label names. Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace nos {

struct MetricFamily {
  enum class Kind { kCounter, kGauge, kDuration, kSize };
  Kind kind;
  const char* name;
  const char* help;
  // An older name under which the same values are exported too, for one minor version: alerts and
  // dashboards that use it keep working.
  const char* deprecated_name = nullptr;
};

using MetricLabels = std::map<std::string, std::string>;

class Metrics {
 public:
  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  void Count(const MetricFamily& counter, const MetricLabels& labels, double by = 1);
  // Raises the counter to a total that another component has counted since the start.
  void CountTo(const MetricFamily& counter, const MetricLabels& labels, double total);
  void Set(const MetricFamily& gauge, const MetricLabels& labels, double value);
  // Replaces all values of the family by these.
  void SetAll(const MetricFamily& gauge,
              const std::vector<std::pair<MetricLabels, double>>& values);
  // A histogram in seconds, with buckets from 1 ms to a minute.
  void Observe(const MetricFamily& duration, const MetricLabels& labels, Duration value);

  // A histogram of counts, with buckets from 1 to 64.
  void ObserveSize(const MetricFamily& size, const MetricLabels& labels, size_t value);

  // The exposition format 0.0.4, including memory, CPU time and start time of this process.
  std::string Text();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace nos
