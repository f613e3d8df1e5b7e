// Demand shown to the autoscaler that makes the nodes of a pool with a `signal`
// (cluster/node_pool.h): for each node that is missing one pod that waits and fits on an empty node
// of that pool alone, or one ProvisioningRequest for all of them.
//
//   ScalingSignal signal(config);
//   NOS_RETURN_IF_ERROR(signal.Show(pool, 3, view, client, now));   // 3 nodes are missing
//
// The pods ask for the cpu and memory of a whole node, for whole GPUs where the pool's are not
// divided, and select its labels; nobody's slices, so that an autoscaler that knows no slices makes
// exactly these nodes. They are of a priority below all others, and gone as soon as they are not
// needed: a node that has come is for the pods that wait. One owner thread.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/node_pool.h"
#include "reconcile/reconciler.h"

namespace nos::controllers {

// Label of such pods, and of ProvisioningRequests and their PodTemplates: the pool's name.
inline constexpr std::string_view kDemandOf = "nos.nebuly.com/demand-of";

struct SignalConfig {
  std::string ns = "nos";             // where they are made
  std::string image;                  // of the pods
  std::vector<std::string> command;   // of the pods; empty: the image's own
  std::string priority_class;         // of the pods; "": the cluster's default
  bool provisioning_requests = true;  // there may be some, and the right to make them
};

bool IsDemand(const cluster::Pod& pod);

class ScalingSignal {
 public:
  explicit ScalingSignal(SignalConfig config) : config_(std::move(config)) {}

  // Shows that so many further nodes of the pool are missing, and no more: what is beyond is
  // deleted, newest first, and so is a pod that has got a node. Of pods 500 at most at a time. A
  // ProvisioningRequest that is being served stays until none is missing. REQUIRES: pool.signal is
  // one. Errors: as the API server's; kInvalid: the pool's name is too long for a label, or the
  // cluster has no ProvisioningRequests.
  Status Show(const cluster::NodePool& pool, int count, const reconcile::View& view, kube::Client& client,
              Time now);
  // Deletes what is left of pools that are gone or have no signal any more. REQUIRES: view.around.
  Status Clean(const reconcile::View& view, kube::Client& client);

 private:
  // What a ProvisioningRequest was like when it was last looked at.
  struct Request {
    int count = -1;  // not known
    std::string shape;
    Time read{};
  };

  Status ShowPods(const cluster::NodePool& pool, int count, const reconcile::View& view, kube::Client& client);
  Status ShowRequest(const cluster::NodePool& pool, int count, kube::Client& client, Time now);
  Status Replace(const cluster::NodePool& pool, int count, const Json& spec,
                 const std::string& shape, kube::Client& client);
  Status DeleteRequest(const std::string& pool, kube::Client& client);
  // Which pools have requests, once after a start.
  Status FindRequests(kube::Client& client);

  SignalConfig config_;
  std::map<std::string, Request, std::less<>> requests_;  // by pool
  bool found_ = false;
};

}  // namespace nos::controllers
