// How pods could use the free slots of GPUs, by what the pending pods of a state request.
//
//   FreeSlots free(state, catalogue);
//   if (free.AreStranded(node, gpu)) ...         // no pod can run there
//   const int64_t usable = free.UsableOf(gpu);   // the others are fragmented
//
// Pure: no input or output. The state is read by the constructor only. Internal to this library.
#pragma once

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "gpu/catalogue.h"
#include "telemetryserver/state.h"

namespace nos::telemetryserver {

// Cores and MiB that a pod requests.
struct Need {
  double cpu = 0, memory = 0;
};

// Requests of pending pods, and typical requests of running pods.
struct Demand {
  std::vector<Need> waiting;       // each not covered by a smaller one
  std::optional<Need> typical;     // medians of pods that hold slices
  std::set<std::string> profiles;  // "1g.5gb", "10gb", requested by pending pods
  bool whole = false;              // a pending pod requests GPUs in another form
  bool any = false;                // any pod is pending that may be scheduled

  bool Names(std::string profile) const {
    std::ranges::replace(profile, '+', '.');  // as resource names have it
    return profiles.contains(profile);
  }
  bool Wants(const std::string& profile) const { return !any || Names(profile); }
};

// True if no pod holds a part of it.
bool IsEmpty(const telemetry::Gpu& gpu);

class FreeSlots {
 public:
  // `catalogue` must outlive this object.
  FreeSlots(const State& state, const gpu::Catalogue& catalogue);

  // The node cannot take a pod: not ready, cordoned, the GPU is unhealthy, or its free CPU and
  // memory suffice neither for a pending pod nor for the typical one.
  bool AreStranded(const Node& node, const telemetry::Gpu& gpu) const;
  // Number of the GPU's slots that pods could use beside the instances in use. REQUIRES: the GPU is
  // divided (slots > 0).
  int64_t UsableOf(const telemetry::Gpu& gpu);
  // Null: unknown product.
  const gpu::Model* ModelOf(const std::string& product);

 private:
  const gpu::Catalogue& catalogue_;
  const Demand demand_;
  std::unordered_map<std::string, const gpu::Model*> models_;  // by product
  std::unordered_map<std::string, int64_t> usable_;            // slots, by model and held instances
};

}  // namespace nos::telemetryserver
