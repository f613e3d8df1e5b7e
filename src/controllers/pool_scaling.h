// How many nodes of a pool are wanted, as whoever makes them has it, and telling it otherwise.
//
//   NOS_ASSIGN(const PoolScale scale, scaling.Read(pool, client));
//   NOS_RETURN_IF_ERROR(scaling.Write(pool, scale, 5, client));
//
// Of a pool with a scaleTargetRef: the subresource `scale` of that object. A write is refused
// (kConflict) when somebody else has changed the object since it was read. Of a pool with a
// webhook:
//   GET  URL                             -> {"replicas": 4}
//   POST URL {"pool":"a100","replicas":3,"from":4,"remove":["gpu-7"]} -> any 2xx
// where `from` is what was read, and as large as `replicas` where others have made the pool smaller
// and only the node is named. A hook answers 409 when that is not so any more. The POST may come
// twice.
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
  std::string version;  // of the scaled object; "" for a webhook
};

class PoolScaling {
 public:
  // Sends one HTTP request to a webhook and returns the body of a 2xx answer. Errors as
  // kube::Client has them. No function: pools with webhooks are told that they are not served here.
  using CallWebhook = std::function<Result<std::string>(
      std::string_view method, const std::string& url, const std::string& body)>;
  explicit PoolScaling(CallWebhook webhook = {}) : webhook_(std::move(webhook)) {}

  // Error: as the API server or the hook says; kInvalid: it has no subresource scale, or answers
  // with no number.
  Result<PoolScale> Read(const cluster::NodePool& pool, kube::Client& client);
  // `remove`: names of the nodes that are to go, when there shall be fewer.
  Status Write(const cluster::NodePool& pool, const PoolScale& last, int32_t wanted,
               const std::vector<std::string>& remove, kube::Client& client);
  // Sets the pool's deleteAnnotation on the machine of the node: on the object that its annotations
  // cluster.x-k8s.io/machine and cluster.x-k8s.io/cluster-namespace name, else on the node itself.
  // OK when the pool has none. Error: kInvalid: that object is not this node's machine.
  Status Name(const cluster::NodePool& pool, const cluster::Node& node, kube::Client& client);
  // Takes it off again: the node stays. OK when it is not there.
  Status Unname(const cluster::NodePool& pool, const cluster::Node& node, kube::Client& client);

 private:
  // The resource of a kind, from discovery; `scales`: that has the subresource scale. Remembered.
  Result<kube::Resource> ResourceOf(std::string_view api_version, std::string_view kind,
                                    bool scales, kube::Client& client);
  Result<kube::Resource> TargetOf(const cluster::NodePool& pool, kube::Client& client);
  Status Mark(const cluster::NodePool& pool, const cluster::Node& node, bool named,
              kube::Client& client);

  CallWebhook webhook_;
  std::map<std::string, kube::Resource> resources_;  // by "apiVersion kind"
};

}  // namespace nos::controllers
