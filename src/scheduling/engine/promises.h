// Nominations: capacity held on nodes for pending pods while their victims terminate.
//
// Semantics are those of kube-scheduler's RunFilterPluginsWithNominatedPods. A pod must fit on a
// node together with the nominated pods that go before it. It must also fit without them, because
// they do not run there yet and may end up on other nodes: the pod must not depend on them.
// Nominations on other nodes are ignored.
//
// A nominated pod that needs another layout of a GPU counts with the instances of that layout, as
// far as they fit beside the instances in use. Instances of pods that leave the node, or have
// left it, do not count as in use, although the agent still reports them: other pods would take
// them one by one before the nominated pod has room.
//
// Pure functions.
#pragma once

#include <optional>

#include "scheduling/cycle.h"

namespace nos::scheduling {

class Framework;

// A snapshot, with the pre-filter result of one pod for it.
struct SnapshotWithCycle {
  cluster::ClusterSnapshot snapshot;
  Cycle cycle;
  // A nominated pod gets its instances only where pods that leave the node have theirs, or after
  // the node's present plan.
  bool awaits_leavers = false;
};

// Binds the other pods to this node, in their order. `cycle`: pre-filter result of the pod in the
// given snapshot.
SnapshotWithCycle WithOthers(const Framework& framework, const cluster::ClusterSnapshot& snapshot,
                             const Cycle& cycle, const cluster::Pod& pod, Pods others,
                             const cluster::NodeInfo& node);

// Returns the reason if the pod, which fits both with and without the other pods, might still take
// their room. It might take an instance that is to be replaced by one for them, because kubelets
// choose any free instance of the profile. While the others wait for pods that leave, any instance
// of a GPU that is to serve them may be in the way: the instance that serves a pod changes as pods
// leave, so a pod that came meanwhile might be evicted at once. `with`: the node with the others.
std::optional<Verdict> WhyHeldForOthers(const cluster::Pod& pod, const cluster::NodeInfo& node,
                                        const SnapshotWithCycle& with);

// The reason if the pod would take a free instance while instances are created for another pod on
// this node, in place of free ones of the same profile that the kubelet still offers: it might give
// the pod one of these, and the other pod would lose its place. `requests`: the pod's.
std::optional<Verdict> WhyHeldForPrepared(const cluster::ResourceVector& requests,
                                          const cluster::NodeInfo& node);

// Verdict of the node on the pod: with nominated pods, then without.
Verdict FilterBeside(const Framework& framework, const cluster::ClusterSnapshot& snapshot,
                     const Cycle& cycle, const cluster::Pod& pod, const cluster::NodeInfo& node,
                     const Promises& promises);

}  // namespace nos::scheduling
