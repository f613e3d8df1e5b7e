#include "scheduling/engine/promises.h"

#include <memory>
#include <utility>

#include "cluster/instance_search.h"
#include "scheduling/framework.h"

namespace nos::scheduling {
namespace {

using PodPtr = std::shared_ptr<const cluster::Pod>;

// The pod with the instances that are to be created for it on this node, if none of its profile is
// free. Without them an instance of another profile, in place of which they would be
// created, would count as free.
PodPtr WithInstances(const PodPtr& pod, const cluster::NodeInfo& node) {
  if (!node.gpus.managed || !pod->promised.empty()) return pod;
  const cluster::ResourceVector requests = cluster::RequestsOf(*pod);
  if (cluster::HasFreeInstances(node, requests)) return pod;
  auto instances = cluster::FindInstances(node, requests);
  if (!instances || instances->empty()) return pod;
  auto with = std::make_shared<cluster::Pod>(*pod);
  with->promised = *std::move(instances);
  return with;
}

}  // namespace

SnapshotWithCycle WithOthers(const Framework& framework, const cluster::ClusterSnapshot& snapshot,
                             const Cycle& cycle, const cluster::Pod& pod, Pods others,
                             const cluster::NodeInfo& node) {
  SnapshotWithCycle with{snapshot, cycle};
  const std::string& name = node.node->meta.name;
  const auto touch = [](std::string_view, std::string_view) {};
  bool follows = true;
  for (const PodPtr& other : others) {
    // The node exists.
    (void)with.snapshot.Bind(WithInstances(other, *with.snapshot.Find(name)), name);
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
