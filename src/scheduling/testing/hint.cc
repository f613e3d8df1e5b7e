#include "scheduling/testing/hint.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

namespace nos::scheduling::testing {
namespace {

using cluster::ClusterSnapshot;
using cluster::Node;
using cluster::NodeInfo;
using cluster::Pod;
using Kind = ClusterEvent::Kind;

std::set<std::string> Fitting(const Plugin& plugin, const Pod& pod,
                              const ClusterSnapshot& snapshot) {
  CycleState state;
  const bool skip =
      dynamic_cast<const PreFilterPlugin&>(plugin).PreFilter(pod, snapshot, state).skip;
  const auto& filter = dynamic_cast<const FilterPlugin&>(plugin);
  std::set<std::string> names;
  for (size_t i = 0; i < snapshot.size(); ++i) {
    const NodeInfo& node = snapshot.node(i);
    if (skip || filter.Filter(state, pod, node).fits()) names.insert(node.node->meta.name);
  }
  return names;
}

class Happenings {
 public:
  Happenings(ClusterSnapshot& snapshot, const std::vector<Pod>& pool,
             const std::vector<Node>& nodes, Random& random)
      : snapshot_(snapshot), pool_(pool), nodes_(nodes), random_(random) {}

  ClusterEvent Next() {
    if (snapshot_.size() == 0) return SetNode();
    const NodeInfo node = snapshot_.node(random_.Below(snapshot_.size()));
    switch (random_.Below(6)) {
      case 0:
        return SetNode();
      case 1:
        if (random_.Below(3) != 0) return SetNode();
        snapshot_.RemoveNode(node.node->meta.name);
        return {Kind::kNodeRemoved, node.node, nullptr, nullptr, nullptr};
      case 2:
        return node.pods.empty() ? Bind(node) : Unbind(node);
      case 3:
        return node.pods.empty() ? Bind(node) : Relabel(node);
      default:
        return Bind(node);
    }
  }

 private:
  ClusterEvent SetNode() {
    const auto node = std::make_shared<const Node>(nodes_[random_.Below(nodes_.size())]);
    const NodeInfo* there = snapshot_.Find(node->meta.name);
    const auto before = there == nullptr ? nullptr : there->node;
    snapshot_.SetNode(node);
    return {before == nullptr ? Kind::kNodeAdded : Kind::kNodeChanged, before, node, nullptr,
            nullptr};
  }
  ClusterEvent Bind(const NodeInfo& node) {
    Pod pod = pool_[random_.Below(pool_.size())];
    pod.meta.name = fmt::format("fresh-{}", next_++);
    auto pending = std::make_shared<const Pod>(pod);
    pod.node_name = node.node->meta.name;
    auto bound = std::make_shared<const Pod>(std::move(pod));
    (void)snapshot_.Bind(bound, bound->node_name);
    return {Kind::kPodBound, nullptr, nullptr, pending, bound};
  }
  ClusterEvent Unbind(const NodeInfo& node) {
    const auto pod = node.pods[random_.Below(node.pods.size())];
    (void)snapshot_.Unbind(*pod, node.node->meta.name);
    return {Kind::kPodLeft, nullptr, nullptr, pod, nullptr};
  }
  ClusterEvent Relabel(const NodeInfo& node) {
    const auto before = node.pods[random_.Below(node.pods.size())];
    Pod pod = *before;
    if (random_.Below(3) == 0) {
      pod.meta.deleted = Time{};
    } else {
      pod.meta.labels = pool_[random_.Below(pool_.size())].meta.labels;
    }
    auto after = std::make_shared<const Pod>(std::move(pod));
    (void)snapshot_.UpdatePod(after);
    return {Kind::kPodChanged, nullptr, nullptr, before, after};
  }

  ClusterSnapshot& snapshot_;
  const std::vector<Pod>& pool_;
  const std::vector<Node>& nodes_;
  Random& random_;
  int next_ = 0;
};

}  // namespace

std::string HintFault(const Plugin& plugin, const Pod& pod, ClusterSnapshot snapshot,
                      const std::vector<Pod>& pool, const std::vector<Node>& nodes, int steps,
                      Random& random) {
  Happenings happenings(snapshot, pool, nodes, random);
  std::set<std::string> fitting = Fitting(plugin, pod, snapshot);
  for (int step = 0; step < steps; ++step) {
    const bool refused = fitting.size() < snapshot.size();
    const ClusterEvent event = happenings.Next();
    std::set<std::string> now = Fitting(plugin, pod, snapshot);
    const bool helped = refused && !std::ranges::includes(fitting, now);
    if (helped && !plugin.MayHelp(event, pod)) {
      return fmt::format("step {}: an event of kind {} helped", step, static_cast<int>(event.kind));
    }
    fitting = std::move(now);
  }
  return "";
}

}  // namespace nos::scheduling::testing
