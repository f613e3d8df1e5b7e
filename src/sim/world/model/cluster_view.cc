#include "sim/world/model/cluster_view.h"

#include "sim/specs.h"

namespace nos::sim {

ClusterView::ClusterView(kube::Transport& api, const Clock& clock)
    : client_(api),
      clock_(clock),
      pods_(kube::kPods, cluster::ReadPod),
      nodes_(kube::kNodes, cluster::ReadNode) {}

std::vector<std::shared_ptr<const cluster::Pod>> ClusterView::Pods() {
  UpdatePods();
  return *pods_.Snapshot();
}

std::vector<std::shared_ptr<const cluster::Node>> ClusterView::Nodes() {
  UpdateNodes();
  return *nodes_.Snapshot();
}

std::shared_ptr<const cluster::Pod> ClusterView::FindPod(std::string_view name) {
  std::shared_ptr<const cluster::Pod> found;
  for (const auto& pod : Pods()) {
    const auto label = pod->meta.labels.find(kPodLabel);
    const bool mine =
        pod->meta.name == name || (label != pod->meta.labels.end() && label->second == name);
    if (mine && (found == nullptr || found->meta.created <= pod->meta.created)) found = pod;
  }
  return found;
}

}  // namespace nos::sim
