// What pods need besides their request so that MPS shares serve them, and who lacks it.
//
// Clients reach their server through shared memory, so they need the daemons' /dev/shm: the host's
// IPC namespace, where the agent does not mount it (MpsGrantOptions::shm_folder). And a server that
// is not started for all users serves one at a time: clients of another wait until the first has
// none left. Source: docs.nvidia.com/deploy/mps, "Architecture" and "Provisioning Sequence".
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cluster/objects.h"
#include "agent/node/devices.h"

namespace nos::agent {

struct MpsNeeds {
  bool host_ipc = false;
  bool one_user = false;  // for all pods of a GPU, or of a MIG instance that is shared
};

// A pod that asks for shares and will hardly be served so.
struct MpsLack {
  std::string ns, name, uid;
  std::string reason, message;  // of an Event
  friend bool operator==(const MpsLack&, const MpsLack&) = default;
};

// `pods`: those bound to the node. Of users only what the pods say is known, not what their images
// do; of two on one GPU, the pod that came later lacks.
std::vector<MpsLack> LackedForMps(const NodeDevices& devices,
                                  std::span<const std::shared_ptr<const cluster::Pod>> pods,
                                  const MpsNeeds& needs);

}  // namespace nos::agent
