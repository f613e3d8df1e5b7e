#include "scheduling/testing/build.h"

namespace nos::scheduling::testing {

using cluster::ClusterSnapshot;
using cluster::Node;
using cluster::Pod;

cluster::ResourceList Resources(Amounts amounts) {
  cluster::ResourceList list;
  for (const auto& [name, text] : amounts) list[name] = Quantity::Parse(text).value();
  return list;
}

Pod PodOf(std::string name, Amounts requests, std::string node) {
  Pod pod;
  pod.meta.ns = "x";
  pod.meta.name = std::move(name);
  pod.node_name = std::move(node);
  pod.phase = "Pending";
  pod.containers.push_back({"main", Resources(requests), {}, false});
  return pod;
}

Node NodeOf(std::string name, Amounts allocatable, cluster::StringMap labels) {
  Node node;
  node.meta.name = std::move(name);
  node.meta.labels = std::move(labels);
  node.allocatable = Resources(allocatable);
  node.allocatable.try_emplace("pods", Quantity::FromValue(110));
  return node;
}

ClusterSnapshot Snap(const std::vector<Node>& nodes, const std::vector<Pod>& pods) {
  std::vector<std::shared_ptr<const Node>> shared_nodes;
  std::vector<std::shared_ptr<const Pod>> shared_pods;
  shared_nodes.reserve(nodes.size());
  shared_pods.reserve(pods.size());
  for (const Node& node : nodes) shared_nodes.push_back(std::make_shared<const Node>(node));
  for (const Pod& pod : pods) shared_pods.push_back(std::make_shared<const Pod>(pod));
  return ClusterSnapshot::Build(shared_nodes, shared_pods, gpu::Catalogue::Builtin());
}

}  // namespace nos::scheduling::testing
