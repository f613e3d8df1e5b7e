// Loss of a node's remaining GPU potential when a pod takes free MIG instances.
#pragma once

#include <compare>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cluster/snapshot.h"
#include "gpu/catalogue.h"

namespace nos::scheduling {

struct InstanceLoss {
  double gpus = 0;        // lost potential (gpu/fragmentation.h), in whole GPUs of the model
  double free_slots = 0;  // remaining free slots on the GPUs that have the instances
  auto operator<=>(const InstanceLoss&) const = default;
};

// The kubelet chooses among free instances in no defined order, so the loss is the mean over all of
// them. With the worst case instead, a node with a good and a bad choice would rank behind a node
// with only the bad one. Several instances count as a multiple of one; the effect of the first on
// the others is ignored.
//
// Nodes whose GPUs nos does not manage have no loss, because their instances serve only such pods.
// If no instance is free, one must be created, which takes time and may destroy free instances that
// other pods need: this costs a whole GPU per instance, plus the loss of the best placement.
//
// Caches facts about models; not thread-safe. The catalogue must outlive it.
class InstanceLosses {
 public:
  InstanceLoss Of(const cluster::NodeInfo& node, cluster::ResourceId resource, int64_t count);

 private:
  const std::vector<gpu::ProfileId>& PlainOf(const gpu::Model& model);
  std::optional<gpu::ProfileId> ProfileOf(const gpu::Model& model, cluster::ResourceId resource);

  InstanceLoss LossOf(const gpu::Occupancy& used, const gpu::Occupancy& after);
  void ConsiderOther(const cluster::Gpu& gpu, cluster::ResourceId resource, int choices,
                     std::optional<InstanceLoss>& creation);
  const std::optional<InstanceLoss>& BestCreation(const gpu::Occupancy& used,
                                                  gpu::ProfileId profile);

  std::map<const gpu::Model*, std::vector<gpu::ProfileId>> plain_;
  // Bounded by the requested resources times the models.
  std::map<std::pair<const gpu::Model*, cluster::ResourceId>, std::optional<gpu::ProfileId>>
      profiles_;
  // Key: model, layout or taken slots, number of shares, profile. Bounded by the possible layouts.
  std::map<std::tuple<const gpu::Model*, int, int, gpu::ProfileId>, std::optional<InstanceLoss>>
      best_creations_;
};

}  // namespace nos::scheduling
