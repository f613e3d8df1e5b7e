// What taking free MIG instances of a node costs what its GPUs can still serve.
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
  double gpus = 0;        // of potential (gpu/fragmentation.h), in whole GPUs of the model
  double free_slots = 0;  // not in use beside the instances, on the GPUs that have them
  auto operator<=>(const InstanceLoss&) const = default;
};

// Which free instance a pod gets is the kubelet's choice, out of a set without order, so the loss
// is the mean over those there are. The worst one would put a node with a good and a bad choice
// behind one that has the bad choice alone. Several instances count as often as one; that taking
// the first changes the others is left out.
//
// On nodes whose GPUs nos does not cut an instance serves nothing but such pods: no loss. Where no
// instance is free one has to be cut, which takes a moment and may cost others theirs: a whole GPU
// each, beside what the best place for it loses.
//
// Remembers facts of models: not synchronised. The catalogue must outlive it.
class InstanceLosses {
 public:
  InstanceLoss Of(const cluster::NodeInfo& node, cluster::ResourceId resource, int64_t count);

 private:
  const std::vector<gpu::ProfileId>& PlainOf(const gpu::Model& model);
  std::optional<gpu::ProfileId> ProfileOf(const gpu::Model& model, cluster::ResourceId resource);

  InstanceLoss LossOf(const gpu::Occupancy& used, const gpu::Occupancy& after);
  void ConsiderOther(const cluster::Gpu& gpu, cluster::ResourceId resource, int choices,
                     std::optional<InstanceLoss>& cut);
  const std::optional<InstanceLoss>& BestCut(const gpu::Occupancy& used, gpu::ProfileId profile);

  std::map<const gpu::Model*, std::vector<gpu::ProfileId>> plain_;
  // By name, as often as resources are asked for of models.
  std::map<std::pair<const gpu::Model*, cluster::ResourceId>, std::optional<gpu::ProfileId>>
      profiles_;
  // By model, layout or memory taken, number of shares, and profile: as many as there can be.
  std::map<std::tuple<const gpu::Model*, int, int, gpu::ProfileId>, std::optional<InstanceLoss>>
      best_cuts_;
};

}  // namespace nos::scheduling
