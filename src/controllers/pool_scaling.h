// Reads and changes the wanted node count of a pool in the system that creates its nodes.
//
//   NOS_ASSIGN(const PoolScale scale, scaling.Read(pool, client));
//   NOS_RETURN_IF_ERROR(scaling.Write(pool, scale, 5, {}, client));
//
// A pool with a scaleTargetRef uses the subresource `scale` of that object. A write fails with
// kConflict if another client has changed the object since it was read. A pool with a webhook uses
// HTTP:
//   GET  URL                             -> {"replicas": 4}
//   POST URL {"pool":"a100","replicas":3,"from":4,"remove":["gpu-7"]} -> any 2xx
// `from` is the count that was read. It equals `replicas` if another client has already made the
// pool smaller and the POST only names the node. The webhook answers 409 if `from` is out of date.
// It may receive the same POST twice.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/node_pool.h"
#include "kube/client.h"

namespace nos::controllers {

struct PoolScale {
  int32_t wanted = 0;
  std::string version;  // resource version of the scaled object; "" for a webhook
};

class PoolScaling {
 public:
  // Sends one HTTP request to a webhook and returns the body of a 2xx answer. Errors are those of
  // kube::Client. Without a function, pools with webhooks fail with kUnimplemented.
  using CallWebhook = std::function<Result<std::string>(
      std::string_view method, const std::string& url, const std::string& body)>;
  explicit PoolScaling(CallWebhook webhook = {}) : webhook_(std::move(webhook)) {}

  // Error: as reported by the API server or the webhook; kInvalid if the object has no subresource
  // scale or the answer contains no number.
  Result<PoolScale> Read(const cluster::NodePool& pool, kube::Client& client);
  // `remove`: names of the nodes to remove if the count decreases.
  Status Write(const cluster::NodePool& pool, const PoolScale& last, int32_t wanted,
               const std::vector<std::string>& remove, kube::Client& client);
  // Sets the pool's deleteAnnotation on the machine of the node: on the object that the node's
  // annotations cluster.x-k8s.io/machine and cluster.x-k8s.io/cluster-namespace name, else on the
  // node itself. OK if the pool has no deleteAnnotation. Error: kInvalid if that object is not this
  // node's machine.
  Status Name(const cluster::NodePool& pool, const cluster::Node& node, kube::Client& client);
  // Removes the annotation again because the node stays. OK if it is absent.
  Status Unname(const cluster::NodePool& pool, const cluster::Node& node, kube::Client& client);

 private:
  // Finds the resource of a kind by discovery and caches it. `scales`: requires the subresource
  // scale.
  Result<kube::Resource> ResourceOf(std::string_view api_version, std::string_view kind,
                                    bool scales, kube::Client& client);
  Result<kube::Resource> TargetOf(const cluster::NodePool& pool, kube::Client& client);
  Status Mark(const cluster::NodePool& pool, const cluster::Node& node, bool named,
              kube::Client& client);

  CallWebhook webhook_;
  std::map<std::string, kube::Resource> resources_;  // key: "apiVersion kind"
};

}  // namespace nos::controllers
