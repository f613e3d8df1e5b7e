#include "controllers/pending/awaited_gpus.h"

#include <algorithm>
#include <map>
#include <utility>

#include "cluster/instance_search.h"
#include "cluster/resources.h"
#include "controllers/pending/pod_rank.h"

namespace nos::controllers {
namespace {

using Pod = std::shared_ptr<const cluster::Pod>;
using Covered = std::set<std::string, std::less<>>;
using Standing = std::pair<bool, int32_t>;  // min covers the pod; its priority

Standing StandingOf(const cluster::Pod& pod, const Covered& covered) {
  return {covered.contains(pod.Key()), pod.priority};
}

// The pods that a plan is made for, by their requests.
class Rivals {
 public:
  Rivals(const std::vector<Pod>& planned, const Covered& covered) {
    for (const Pod& pod : planned) {
      cluster::ResourceVector requests = cluster::RequestsOf(*pod);
      const Standing standing = StandingOf(*pod, covered);
      const auto [at, fresh] = kinds_.try_emplace(requests.entries(), Kind{requests, standing, {}});
      Kind& kind = at->second;
      if (!fresh) kind.highest = std::max(kind.highest, standing);
      if (!pod->nominated_node.empty()) kind.nominated.insert(pod->nominated_node);
    }
  }

  // True if one that goes before a pod of this standing, or is nominated to the node too, could
  // get slices there now.
  bool AnyBefore(Standing standing, const cluster::NodeInfo& node) const {
    return std::ranges::any_of(kinds_, [&](const auto& item) {
      const Kind& kind = item.second;
      return (kind.highest > standing || kind.nominated.contains(node.node->meta.name)) &&
             cluster::CanProvide(node, kind.requests);
    });
  }

 private:
  struct Kind {
    cluster::ResourceVector requests;
    Standing highest;
    std::set<std::string, std::less<>> nominated;  // nodes
  };
  std::map<std::vector<std::pair<cluster::ResourceId, int64_t>>, Kind> kinds_;
};

// Nominated pods that are neither planned for nor in the snapshot, in the order of their ranks.
std::vector<Pod> AwaitingIn(const std::vector<Pod>& pods, const std::vector<Pod>& planned,
                            const cluster::ClusterSnapshot& snapshot) {
  std::set<std::string> keys;
  for (const Pod& pod : planned) keys.insert(pod->Key());
  std::vector<Pod> awaiting;
  for (const Pod& pod : pods) {
    const bool waits = pod->node_name.empty() && !pod->Finished() && !pod->meta.deleted;
    if (!waits || pod->nominated_node.empty() || keys.contains(pod->Key())) continue;
    const cluster::NodeInfo* node = snapshot.Find(pod->nominated_node);
    if (node == nullptr || !node->gpus.managed) continue;
    const bool reserved = std::ranges::any_of(
        node->pods, [&](const Pod& there) { return there->Key() == pod->Key(); });
    if (!reserved) awaiting.push_back(pod);
  }
  std::ranges::sort(awaiting, {}, [](const Pod& pod) { return RankOf(*pod); });
  return awaiting;
}

// The node as it is once its agent has carried out its plan: an agent that is silent must not make
// the pods lose their GPUs.
cluster::ClusterSnapshot WithoutPlan(const cluster::NodeInfo& node,
                                     const cluster::ClusterSnapshot& snapshot) {
  cluster::ClusterSnapshot done = snapshot;
  const std::string name = node.node->meta.name;
  const cluster::NodeGpus gpus = node.gpus;
  done.SetNode(cluster::WithoutPlan(node.node));
  // Cannot fail: the node is in the snapshot.
  (void)done.SetGpus(name, gpus);
  return done;
}

// The GPUs on which a pod gets its instances once others have left. Empty: there is room now, or
// none even then.
std::set<int> AwaitedWith(const cluster::ResourceVector& requests, const cluster::NodeInfo& node,
                          const cluster::ClusterSnapshot& snapshot) {
  if (cluster::CanProvide(node, requests)) return {};
  cluster::ClusterSnapshot later = snapshot;
  // Cannot fail: the node is in the snapshot.
  (void)later.SetGpus(node.node->meta.name, cluster::WithoutLeavers(node));
  const auto promised = cluster::FindInstances(*later.Find(node.node->meta.name), requests);
  std::set<int> gpus;
  if (!promised) return gpus;
  for (const cluster::PromisedInstance& instance : *promised) gpus.insert(instance.gpu);
  return gpus;
}

}  // namespace

void HoldAwaitedGpus(const std::vector<Pod>& pods, const std::vector<Pod>& planned,
                     const Covered& covered, cluster::ClusterSnapshot& snapshot) {
  const std::vector<Pod> awaiting = AwaitingIn(pods, planned, snapshot);
  if (awaiting.empty() || planned.empty()) return;
  const Rivals rivals(planned, covered);
  for (const Pod& pod : awaiting) {
    const cluster::ClusterSnapshot done =
        WithoutPlan(*snapshot.Find(pod->nominated_node), snapshot);
    const cluster::NodeInfo& node = *done.Find(pod->nominated_node);
    if (rivals.AnyBefore(StandingOf(*pod, covered), node)) continue;
    const std::set<int> awaited = AwaitedWith(cluster::RequestsOf(*pod), node, done);
    if (awaited.empty()) continue;
    cluster::NodeGpus gpus = node.gpus;
    for (cluster::Gpu& gpu : gpus.gpus) {
      if (!awaited.contains(gpu.index)) continue;
      gpu.fixed = true;
      for (cluster::Instance& instance : gpu.instances) instance.used = true;
    }
    // Cannot fail: the node is in the snapshot.
    (void)snapshot.SetGpus(pod->nominated_node, std::move(gpus));
  }
}

}  // namespace nos::controllers
