// Reads the nodes, pods and related objects of a live cluster or a dump, for a command.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "cluster/context.h"
#include "cluster/objects.h"
#include "dra/objects.h"
#include "kube/client.h"
#include "scheduling/plugin.h"

namespace nos::cmd {

inline const kube::Resource kResourceClaims{"resource.k8s.io", "v1", "resourceclaims",
                                            "ResourceClaim", true};

struct ClusterObjects {
  std::vector<std::shared_ptr<const cluster::Node>> nodes;
  std::vector<std::shared_ptr<const cluster::Pod>> pods;
  // nullopt: reading is not permitted, or the dump contains none of these objects.
  std::optional<cluster::ClusterContext> context;
  bool is_dump = false;  // a dump may be incomplete
  // On the clock of the API server; nullopt: a dump, or the server has not said.
  std::optional<Time> server_time = {};
  // Names of profiles of nos scheduler that partition GPUs, as its Lease says; nullopt: not known.
  std::optional<std::set<std::string, std::less<>>> partitioning_profiles = {};
  // Pools that cannot be used as written, from controllers::ReadPoolToReport; not part of
  // `context`.
  std::vector<std::shared_ptr<const cluster::NodePool>> wrong_pools = {};
};

// True if nos scheduler partitions GPUs for pods with this scheduler name: as its Lease says, else
// by default.
scheduling::PartitionedBy PartitionedFor(const ClusterObjects& objects,
                                         std::string_view scheduler_name);

// Objects that cannot be read are reported on stderr and left out. If reading any related object is
// not permitted, all related objects are left out.
Result<ClusterObjects> ReadLiveCluster(const std::string& kubeconfig, const std::string& context);
// Output of `kubectl get nodes,pods -A -o yaml`, with or without other kinds of `ClusterContext`;
// "-" is standard input. Error: kInvalid; also if an object occurs twice, or there is neither a
// node nor a NodePool.
Result<ClusterObjects> ReadDump(const std::vector<std::string>& files);

// Lists and decodes; an object that cannot be read is reported and left out.
Result<std::vector<std::shared_ptr<const cluster::Node>>> ListNodes(kube::Client& client);
Result<std::vector<std::shared_ptr<const cluster::Pod>>> ListPods(kube::Client& client);
// Both kinds of quotas; empty if the API server does not know them.
Result<std::vector<std::shared_ptr<const cluster::ElasticQuota>>> ListQuotas(kube::Client& client);
// Empty if the API server does not know the kind.
Result<std::vector<std::shared_ptr<const dra::ResourceClaim>>> ListClaims(kube::Client& client);
// By name, from controllers::ReadPoolToReport; empty if the API server does not know the kind.
Result<std::vector<std::shared_ptr<const cluster::NodePool>>> ListPools(kube::Client& client);
// The pools of `objects.context`, by name; fields that they leave out are recorded from existing
// nodes.
std::vector<std::shared_ptr<const cluster::NodePool>> PoolsIn(const ClusterObjects& objects);

}  // namespace nos::cmd
