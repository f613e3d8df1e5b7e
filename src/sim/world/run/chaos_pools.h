// Node pools of a fault simulation: drawn from its seed, and what must have come of them at the
// end.
//
//   ChaosPools pools(seed);
//   options.autoscaler = pools.DrawAutoscaler(options.faults);
//   Status added = pools.Add(world);
//   if (!pools.Restless(world).empty()) ...
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "sim/world.h"

namespace nos::sim {

class ChaosPools {
 public:
  explicit ChaosPools(uint64_t seed) : random_(seed) {}

  // And how often pools fail.
  controllers::AutoscalerConfig DrawAutoscaler(FaultRates& rates);
  // One to three. `models`: what their GPUs can be cut into.
  Status Add(World& world, std::vector<const gpu::Model*>& models);
  // Whose controller makes it anew; "": it has none.
  std::string DrawOwner(const std::string& pod);

  // Why the autoscaler is not done: something is on its way to another place, nodes are awaited, or
  // one of `waiting` could run on a node that could be asked for.
  std::vector<std::string> Restless(
      World& world, const std::vector<std::shared_ptr<const cluster::Pod>>& waiting) const;

 private:
  Random random_;
  std::vector<std::shared_ptr<const cluster::NodePool>> pools_;
};

}  // namespace nos::sim
