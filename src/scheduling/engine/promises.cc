#include "scheduling/engine/promises.h"
#include "scheduling/framework.h"

namespace nos::scheduling {

SnapshotWithCycle WithOthers(const Framework& framework, const cluster::ClusterSnapshot& snapshot,
                             const Cycle& cycle, const cluster::Pod& pod, Pods others,
                             const cluster::NodeInfo& node) {
  SnapshotWithCycle with{snapshot, cycle};
  const std::string& name = node.node->meta.name;
  const auto touch = [](std::string_view, std::string_view) {};
  bool follows = true;
  for (const auto& other : others) {
    (void)with.snapshot.Bind(other, name);  // the node exists
    for (const PreFilterPlugin* plugin : framework.pre_filters()) {
      follows = follows && plugin->Update(pod, *other, true, *with.snapshot.Find(name),
                                          with.cycle.state, touch);
    }
  }
  if (!follows) with.cycle = framework.PreFilter(pod, with.snapshot);
  return with;
}

Verdict FilterBeside(const Framework& framework, const cluster::ClusterSnapshot& snapshot,
                     const Cycle& cycle, const cluster::Pod& pod, const cluster::NodeInfo& node,
                     const Promises& promises) {
  const auto others = promises.find(node.node->meta.name);
  if (others != promises.end()) {
    const SnapshotWithCycle with =
        WithOthers(framework, snapshot, cycle, pod, others->second, node);
    Verdict verdict = framework.Filter(with.cycle, pod, *with.snapshot.Find(others->first));
    if (!verdict.fits()) return verdict;
  }
  return framework.Filter(cycle, pod, node);
}

}  // namespace nos::scheduling
