// What becomes of all GPU slots of a cluster, as shares of them. A GPU that is shared by MPS counts
// as if MIG divided it.
//
// Every slot is held or not. Of those not held, in this order: stranded, when its node could not
// take a pod (not ready, cordoned, the GPU is broken, or CPU and memory left suffice for no waiting
// pod and not for the typical one); fragmented, when nothing that is wanted can be given out there
// (a free instance of a profile that nobody waits for, a rest that no wanted profile fits into);
// free otherwise. While nothing waits, every profile is wanted.
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
};

struct Shares {
  int64_t gpus = 0, slots = 0;
  double allocated = 0, idle = 0, free = 0, fragmented = 0, stranded = 0;  // 0..1, of all slots
  double measured = 0;         // of all slots: held, and their utilization is known
  std::optional<double> used;  // held times utilization where that is known; none: known nowhere
  int64_t pods_pending = 0, pods_running = 0;
  std::optional<double> seconds_to_slice;  // median of the last hour
  std::vector<ModelShare> models;
};

// `stale`: measurements older than this count as unknown.
Shares SharesOf(const State& state, const gpu::Catalogue& catalogue, telemetry::Millis stale);
// As metrics of the subject "cluster".
std::vector<std::pair<std::string, double>> MetricsOf(const Shares& shares);
// Slots that the GPU counts as, however it is divided; null: nobody knows its model.
int64_t SlotsOf(const telemetry::Gpu& gpu, const gpu::Model* model);

}  // namespace nos::telemetryserver
