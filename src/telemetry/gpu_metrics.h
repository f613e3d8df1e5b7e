// What a node's GPUs measure as Prometheus metrics, under the names that DCGM's exporter has made
// common, so that dashboards that are there go on working, and with the labels that join with those
// of kube-state-metrics (namespace, pod, container).
//
// Source of names, units and labels: NVIDIA/dcgm-exporter, etc/default-counters.csv and README.
#pragma once

#include <map>
#include <span>

#include "base/metrics.h"
#include "telemetry/node_sample.h"
#include "telemetry/sampler.h"

namespace nos::telemetry {

class GpuMetrics {
 public:
  // `metrics` must outlive this.
  explicit GpuMetrics(Metrics& metrics) : metrics_(metrics) {}

  // The metrics of this sample and no others. What is unmeasured has none.
  void Show(const NodeSample& sample, std::span<const XidEvent> xids);

 private:
  Metrics& metrics_;
  std::map<int, uint64_t> last_xid_;  // by GPU
};

}  // namespace nos::telemetry
