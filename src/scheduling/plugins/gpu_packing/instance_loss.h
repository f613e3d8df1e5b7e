// What taking free MIG instances of a node costs what its GPUs can still serve.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cluster/snapshot.h"
#include "gpu/catalogue.h"

namespace nos::scheduling {

struct InstanceLoss {
  double gpus = 0;        // of potential (gpu/fragmentation.h), in whole GPUs of the model
  double free_slots = 0;  // not in use beside the instances, on the GPUs that have them
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

  std::map<const gpu::Model*, std::vector<gpu::ProfileId>> plain_;
};

}  // namespace nos::scheduling
