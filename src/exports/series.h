// Maps samples to Prometheus series: metric names, and labels for joins.
//
//   utilization of gpu/GPU-1         nos_gpu_utilization{cluster,UUID,gpu,modelName,node,...}
//   memory_used of instance/MIG-1    nos_instance_memory_used{...,GPU_I_ID,GPU_I_PROFILE,mig}
//   allocated of cluster, node/n     nos_cluster_allocated{cluster}, nos_node_allocated{..,node}
//   used of quota/ns/q/nvidia.com/x, composite-quota/...
//                                    nos_quota_used{cluster,namespace,quota,type,resource}
//
// Series of GPUs and instances have the labels namespace, pod and container of their only holder,
// from the last layout reported before the sample. Used by one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/status.h"
#include "telemetry/envelope.h"
#include "telemetry/records.h"
#include "telemetryserver/state.h"

namespace nos::exports {

using Labels = std::vector<std::pair<std::string, std::string>>;  // sorted by name

// Parses "region=eu,env=prod". Error: kInvalid: not a label, or a label that nos sets.
Result<Labels> ParseLabels(std::string_view text);

// Metric names separated by commas; "*" at the end of a name matches any suffix. Empty: all
// metrics.
class MetricFilter {
 public:
  explicit MetricFilter(std::string_view text);
  bool Takes(std::string_view name) const;

 private:
  std::vector<std::string> names_;
};

class SeriesNames {
 public:
  // `further`: labels added to all series.
  explicit SeriesNames(Labels further) : further_(std::move(further)) {}

  void Follow(const std::string& cluster, const telemetry::Layout& layout);
  void Follow(const std::string& cluster, const telemetryserver::State& state);
  // Applies the layouts of an envelope before its samples: both come from one read of the GPUs, in
  // any order.
  void Follow(const telemetry::Envelope& envelope);
  // "nos_gpu_utilization"
  static std::string MetricName(std::string_view subject, std::string_view metric);
  // Labels without the metric name.
  const Labels& LabelsOf(const std::string& cluster, const std::string& subject);

 private:
  struct Known {
    Labels labels;
    bool layout = false;  // from a layout; else from the subject alone, and may be evicted
  };
  void Put(const std::string& cluster, const std::string& subject, Labels labels);
  void Complete(const std::string& cluster, Labels& labels) const;

  const Labels further_;
  std::unordered_map<std::string, Known> known_;                        // by cluster and subject
  std::unordered_map<std::string, std::vector<std::string>> of_nodes_;  // keys of known_ per node
  size_t made_up_ = 0;
};

}  // namespace nos::exports
