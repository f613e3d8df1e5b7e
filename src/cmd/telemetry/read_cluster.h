// The nodes and pods that a command looks at: of a live cluster, or of a dump.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "cluster/objects.h"
#include "cluster/surroundings.h"
#include "kube/client.h"

namespace nos::cmd {

struct ClusterObjects {
  std::vector<std::shared_ptr<const cluster::Node>> nodes;
  std::vector<std::shared_ptr<const cluster::Pod>> pods;
  // None: it may not be read, or the dump has nothing of it.
  std::optional<cluster::Surroundings> around;
  bool is_dump = false;  // of which nobody knows what it leaves out
  // As controllers::ReadPoolToTell has those that cannot be used as they are written; not in
  // `around`.
  std::vector<std::shared_ptr<const cluster::NodePool>> wrong_pools = {};
};

// Objects that cannot be read are reported on stderr and left out; so is all that surrounds pods
// when some of it may not be read.
Result<ClusterObjects> ReadLiveCluster(const std::string& kubeconfig, const std::string& context);
// What `kubectl get nodes,pods -A -o yaml` printed, with other kinds of `Surroundings` or without;
// "-": standard input. Error: kInvalid, also when an object is given twice, or neither
// a node nor a NodePool.
Result<ClusterObjects> ReadDump(const std::vector<std::string>& files);

// Lists and decodes; an object that cannot be read is reported and left out.
Result<std::vector<std::shared_ptr<const cluster::Node>>> ListNodes(kube::Client& client);
Result<std::vector<std::shared_ptr<const cluster::Pod>>> ListPods(kube::Client& client);
// Both kinds; none where the API server does not know them.
Result<std::vector<std::shared_ptr<const cluster::ElasticQuota>>> ListQuotas(kube::Client& client);
// By name, as controllers::ReadPoolToTell has them; none where the API server does not know them.
Result<std::vector<std::shared_ptr<const cluster::NodePool>>> ListPools(kube::Client& client);
// Of what surrounds the nodes, by name; what they leave out is learnt from the nodes.
std::vector<std::shared_ptr<const cluster::NodePool>> PoolsIn(const ClusterObjects& objects);

}  // namespace nos::cmd
