// Which pods belong together with a pod that does not say so itself.
#pragma once

#include "cluster/surroundings.h"

namespace nos::scheduling {

// What the selectors of all services that select the pod ask for, and that of the replication
// controller, replica set or stateful set that controls it. Empty: nothing selects it.
cluster::LabelSelector DefaultSelector(const cluster::Pod& pod,
                                       const cluster::Surroundings& around);

}  // namespace nos::scheduling
