// Selects the pods that belong together with a pod that has no constraints of its own.
#pragma once

#include "cluster/context.h"

namespace nos::scheduling {

// Combines the selectors of all Services that select the pod and of the ReplicationController,
// ReplicaSet or StatefulSet that controls it. Empty: there are none.
cluster::LabelSelector DefaultSelector(const cluster::Pod& pod,
                                       const cluster::ClusterContext& context);

}  // namespace nos::scheduling
