// GPU samples of a node as Prometheus metrics. Names are those of the DCGM exporter, so that
// existing dashboards work; labels join with those of kube-state-metrics (namespace, pod,
// container).
//
// Source of names, units and labels: NVIDIA/dcgm-exporter, etc/default-counters.csv and README.
#pragma once

#include <map>
#include <span>

#include "base/metrics.h"
#include "telemetryreporter/node_sample.h"
#include "telemetryreporter/sampler.h"

namespace nos::telemetry {

class GpuMetrics {
 public:
  // `metrics` must outlive this object.
  explicit GpuMetrics(Metrics& metrics) : metrics_(metrics) {}

  // Publishes exactly the metrics of this sample; unmeasured values are removed.
  void Show(const NodeSample& sample, std::span<const XidEvent> xids);

 private:
  Metrics& metrics_;
  std::map<int, uint64_t> last_xid_;  // by GPU
};

}  // namespace nos::telemetry
