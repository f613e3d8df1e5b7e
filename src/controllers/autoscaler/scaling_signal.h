// Publishes demand to another autoscaler that creates the nodes of a pool with a `signal`
// (cluster/node_pool.h). It creates one pending pod for each missing node, which fits only on an
// empty node of that pool, or one ProvisioningRequest for all missing nodes.
//
//   ScalingSignal signal(config);
//   NOS_RETURN_IF_ERROR(signal.Show(pool, 3, view, client, now));   // 3 nodes are missing
//
// The pods request the cpu and memory of a whole node, and whole GPUs if the pool's GPUs are not
// partitioned, and select the pool's labels. They request no slices, because most autoscalers do
// not know slices. They have a lower priority than all other pods and are deleted as soon as they
// are not needed: a new node is meant for the pending pods. Owned by one thread.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/node_pool.h"
#include "reconcile/reconciler.h"

namespace nos::controllers {

// Label of demand pods, ProvisioningRequests and their PodTemplates. Its value is the pool's name.
inline constexpr std::string_view kDemandOf = "nos.nebuly.com/demand-of";

struct SignalConfig {
  std::string ns = "nos";                   // namespace of the demand objects
  std::string image;                        // image of the demand pods
  std::vector<std::string> command;         // command of the demand pods; empty: the image's own
  std::string priority_class;               // of the demand pods; "": the cluster's default
  bool provisioning_requests = true;        // the cluster has the API and nos may create them
  std::vector<std::string> pull_secrets{};  // imagePullSecrets of the demand pods
  // Namespace in which an earlier version kept demand objects. Objects left there are
  // deleted. Empty or `ns`: none.
  std::string former_ns{};
};

bool IsDemand(const cluster::Pod& pod);

class ScalingSignal {
 public:
  explicit ScalingSignal(SignalConfig config) : config_(std::move(config)) {}

  // Publishes that `count` further nodes of the pool are missing. Surplus pods are deleted, newest
  // first, and so are pods that have been bound to a node. At most 500 pods exist at a time. A
  // ProvisioningRequest in progress stays until no node is missing. REQUIRES: pool.signal is set.
  // Error: as reported by the API server; kInvalid if the pool's name is too long for a label or
  // the cluster has no ProvisioningRequests.
  Status Show(const cluster::NodePool& pool, int count, const reconcile::Listers& view,
              kube::Client& client, Time now);
  // Deletes the demand objects of pools that no longer exist or have no signal, and all in the
  // former namespace. REQUIRES: view.context.
  Status Clean(const reconcile::Listers& view, kube::Client& client);

 private:
  // The state of a ProvisioningRequest when it was last read.
  struct Request {
    int count = -1;  // -1: unknown
    std::string shape;
    Time read{};
  };

  Status ShowPods(const cluster::NodePool& pool, int count, const reconcile::Listers& view,
                  kube::Client& client);
  Status ShowRequest(const cluster::NodePool& pool, int count, kube::Client& client, Time now);
  Status Replace(const cluster::NodePool& pool, int count, const Json& spec,
                 const std::string& shape, kube::Client& client);
  Status DeleteRequest(const std::string& pool, kube::Client& client);
  // Lists existing requests once after a start, and deletes those in the former namespace.
  Status FindRequests(kube::Client& client);
  bool HasFormer() const { return !config_.former_ns.empty() && config_.former_ns != config_.ns; }

  SignalConfig config_;
  std::map<std::string, Request, std::less<>> requests_;  // by pool
  bool found_ = false;
};

}  // namespace nos::controllers
