// Shares of all GPU slots of a cluster by their use. A GPU shared by MPS counts as if it were
// divided by MIG.
//
// A slot is held or not. The first matching rule applies to slots that are not held. Stranded: the
// node cannot take a pod (not ready, cordoned, the GPU is unhealthy, or free CPU and memory suffice
// neither for a pending pod nor for the typical one). Fragmented: no layout beside the instances in
// use gives the slot to a requested profile. Free: all others; some of them are on GPUs that no pod
// uses (`empty`). While no pod is pending, every profile counts as requested; likewise on a model
// that offers no requested profile. Pods with scheduling gates request nothing yet.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gpu/catalogue.h"
#include "telemetryserver/state.h"

namespace nos::telemetryserver {

struct ModelShare {
  std::string product;
  int64_t gpus = 0;
  double allocated = 0;
  int64_t memory = 0;  // of one GPU, MiB
};

struct Shares {
  int64_t gpus = 0, slots = 0;
  double allocated = 0, idle = 0, free = 0, fragmented = 0, stranded = 0;  // 0..1, of all slots
  double empty = 0;  // of all slots: on GPUs without holders, not stranded
  int64_t empty_gpus = 0, empty_nodes = 0;
  double measured = 0;         // of all slots: held, with known utilization
  std::optional<double> used;  // sum of held slots times utilization; nullopt: not measured
  int64_t pods_pending = 0, pods_running = 0;
  std::optional<double> seconds_to_slice;  // median of the last hour
  std::vector<ModelShare> models;
};

// `stale`: measurements older than this count as unknown.
Shares SharesOf(const State& state, const gpu::Catalogue& catalogue, telemetry::Millis stale);
// Converts shares to metrics of the subject "cluster".
std::vector<std::pair<std::string, double>> MetricsOf(const Shares& shares);
// Number of slots of the GPU, independent of its sharing mode; null model: unknown product.
int64_t SlotsOf(const telemetry::Gpu& gpu, const gpu::Model* model);

}  // namespace nos::telemetryserver
