// One consistent picture of the cluster for one decision. A fork costs what it changes.
//
//   ClusterSnapshot next = snapshot;              // shares every node
//   next.Bind(pod, "gpu-7");                      // copies one node
//
// Values: a copy may be changed without the original noticing. Not for concurrent writing.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "cluster/annotations.h"
#include "cluster/objects.h"
#include "cluster/resources.h"
#include "gpu/catalogue.h"

namespace nos::cluster {

struct NodeInfo {
  std::shared_ptr<const Node> node;
  std::vector<std::shared_ptr<const Pod>> pods;  // bound and not finished
  NodeGpus gpus;
  ResourceVector allocatable;
  ResourceVector requested;  // sum over pods; counts pods under "pods"
};

class ClusterSnapshot {
 public:
  ClusterSnapshot() = default;
  // Finished pods are left out; pods bound to unknown nodes too. Pods that hold slices mark
  // instances used even when the node's status does not say so yet. The catalogue must outlive it.
  static ClusterSnapshot Build(const std::vector<std::shared_ptr<const Node>>& nodes,
                               const std::vector<std::shared_ptr<const Pod>>& pods,
                               const gpu::Catalogue& catalogue);

  size_t size() const;                   // nodes
  const NodeInfo& node(size_t i) const;  // sorted by name
  const NodeInfo* Find(std::string_view name) const;
  // Error: kNotFound.
  Status Bind(std::shared_ptr<const Pod> pod, std::string_view node);
  Status SetGpus(std::string_view node, NodeGpus gpus);

 private:
  std::shared_ptr<const std::vector<std::shared_ptr<const NodeInfo>>> base_;
};

}  // namespace nos::cluster
