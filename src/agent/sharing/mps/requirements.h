// Requirements of pods with MPS shares beyond the resource request, and the pods that do not meet
// them.
//
// Clients reach their server through shared memory, so they need the daemon's /dev/shm: the host's
// IPC namespace, unless the agent mounts it (MpsGrantOptions::shm_folder). A server that is not
// started for all users serves one user at a time: clients of another user wait until the first
// user has none left. Source: docs.nvidia.com/deploy/mps, "Architecture" and "Provisioning
// Sequence".
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "agent/node/observed_state.h"
#include "agent/sharing_modes.h"
#include "cluster/objects.h"

namespace nos::agent {

// `pods`: the pods bound to the node. Only users in pod specs are known, not those of images. If
// two pods of one GPU have different users, the later pod is reported.
std::vector<PodViolation> FindMpsViolations(
    const NodeDevices& devices, std::span<const std::shared_ptr<const cluster::Pod>> pods,
    const MpsPodRequirements& needs);

}  // namespace nos::agent
