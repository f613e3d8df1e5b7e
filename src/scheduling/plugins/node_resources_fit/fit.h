// Whether a pod's requests fit beside what a node runs, resource by resource. For the plugin and
// for callers that do the arithmetic themselves, over dense vectors (cluster/resources.h).
//
//   for (const Shortfall& s : Shortfalls(cluster::RequestsOf(pod), node.allocatable,
//                                        node.requested, Mig::kIgnore)) ...
//
// Pure functions; may be called from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cluster/resources.h"
#include "cluster/snapshot.h"

namespace nos::scheduling {

struct Shortfall {
  cluster::ResourceId resource = 0;
  int64_t requested = 0;    // by the pod
  int64_t used = 0;         // on the node
  int64_t allocatable = 0;  // of the node
  // Not even an empty node has enough. Never so for MIG instances: GPUs can be cut anew; nor, as to
  // kube-scheduler, for pods.
  bool hopeless = false;
};

// Whether slices count: a planner that cuts GPUs leaves them out, on hybrid nodes whole GPUs, too.
enum class Mig { kCount, kIgnore, kIgnoreWholeGpus };
// What such a planner leaves out of what a managed node has.
Mig MigOn(const cluster::NodeInfo& node);

// In the order of resource ids; empty when everything fits. A resource of which nothing is
// requested never lacks, even on a node that has less of it than is in use.
std::vector<Shortfall> Shortfalls(const cluster::ResourceVector& requests,
                                  const cluster::ResourceVector& allocatable,
                                  const cluster::ResourceVector& used, Mig mig = Mig::kCount);
// The same as a yes or no, without allocating.
bool Fits(const cluster::ResourceVector& requests, const cluster::ResourceVector& allocatable,
          const cluster::ResourceVector& used, Mig mig = Mig::kCount);

// As kube-scheduler words it: "Insufficient cpu", "Too many pods".
std::string Message(const Shortfall& shortfall);

}  // namespace nos::scheduling
