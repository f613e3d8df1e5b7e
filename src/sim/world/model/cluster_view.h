// The pods and nodes of a virtual cluster as its API server has them, for those who look on from
// outside: invariant checkers, tests, displays.
//
//   ClusterView view(api, clock);
//   view.pods().AddHandler(...);          // called by Update and Pods
//   for (const auto& pod : view.Pods()) ...
//
// One thread.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "cluster/objects.h"
#include "kube/cache.h"
#include "kube/client.h"

namespace nos::sim {

class ClusterView {
 public:
  // The references must outlive the object.
  ClusterView(kube::Transport& api, const Clock& clock);

  // The current objects of the API server.
  std::vector<std::shared_ptr<const cluster::Pod>> Pods();
  std::vector<std::shared_ptr<const cluster::Node>> Nodes();
  // The latest pod submitted under this name, or its successor; null if there is none.
  std::shared_ptr<const cluster::Pod> FindPod(std::string_view name);

  // Takes note of all changes up to now.
  void UpdatePods() { pods_.Pump(client_, clock_.Now()); }
  void UpdateNodes() { nodes_.Pump(client_, clock_.Now()); }
  // The state of the last update.
  kube::Cache<cluster::Pod>& pods() { return pods_; }
  const kube::Cache<cluster::Pod>& pods() const { return pods_; }
  kube::Cache<cluster::Node>& nodes() { return nodes_; }
  const kube::Cache<cluster::Node>& nodes() const { return nodes_; }

  kube::Client& client() { return client_; }

 private:
  kube::Client client_;
  const Clock& clock_;
  kube::Cache<cluster::Pod> pods_;
  kube::Cache<cluster::Node> nodes_;
};

}  // namespace nos::sim
