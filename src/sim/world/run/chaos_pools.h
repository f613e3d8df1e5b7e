// Node pools of a fault simulation: drawn from its seed, and the conditions that they must meet at
// the end.
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

  // Also draws the rates of pool faults.
  controllers::AutoscalerConfig DrawAutoscaler(FaultRates& rates);
  // Adds one to three pools. Appends the models of their GPUs to `models`.
  Status Add(World& world, std::vector<const gpu::Model*>& models);
  // The owner that recreates the pod; "": none.
  std::string DrawOwner(const std::string& pod);

  // Reasons why the autoscaler is not done: a move is in progress, nodes have not joined yet, or a
  // pod of `waiting` could run on a node that could be requested.
  std::vector<std::string> Restless(
      World& world, const std::vector<std::shared_ptr<const cluster::Pod>>& waiting) const;

 private:
  Random random_;
  std::vector<std::shared_ptr<const cluster::NodePool>> pools_;
};

}  // namespace nos::sim
