// Samples as Prometheus has them: what subjects are called there, and the labels that they join by.
//
//   utilization of gpu/GPU-1         nos_gpu_utilization{cluster,UUID,gpu,modelName,node,...}
//   memory_used of instance/MIG-1    nos_instance_memory_used{...,GPU_I_ID,GPU_I_PROFILE,mig}
//   allocated of cluster, node/n     nos_cluster_allocated{cluster}, nos_node_allocated{..,node}
//   used of quota/ns/q/nvidia.com/x, composite-quota/...
//                                    nos_quota_used{cluster,namespace,quota,type,resource}
//
// GPUs and instances have namespace, pod and container of whoever alone holds them, as in the
// layout that was reported last before the sample. One owner.
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

// "region=eu,env=prod". Error: kInvalid: what is no label, or one that is ours.
Result<Labels> ParseLabels(std::string_view text);

// Names of metrics, separated by commas, "*" for the rest of one; empty: all.
class MetricFilter {
 public:
  explicit MetricFilter(std::string_view text);
  bool Takes(std::string_view name) const;

 private:
  std::vector<std::string> names_;
};

class SeriesNames {
 public:
  // `further`: labels that all get.
  explicit SeriesNames(Labels further) : further_(std::move(further)) {}

  void Follow(const std::string& cluster, const telemetry::Layout& layout);
  void Follow(const std::string& cluster, const telemetryserver::State& state);
  // The layouts of an envelope, before its samples: what was seen at one look belongs together, in
  // whatever order it is told.
  void Follow(const telemetry::Envelope& envelope);
  // "nos_gpu_utilization"
  static std::string MetricName(std::string_view subject, std::string_view metric);
  // Without the metric's name.
  const Labels& LabelsOf(const std::string& cluster, const std::string& subject);

 private:
  struct Known {
    Labels labels;
    bool layout = false;  // from one; else made up from the subject alone, and not kept for ever
  };
  void Put(const std::string& cluster, const std::string& subject, Labels labels);
  void Complete(const std::string& cluster, Labels& labels) const;

  const Labels further_;
  std::unordered_map<std::string, Known> known_;                        // by cluster and subject
  std::unordered_map<std::string, std::vector<std::string>> of_nodes_;  // keys of known_
  size_t made_up_ = 0;
};

}  // namespace nos::exports
