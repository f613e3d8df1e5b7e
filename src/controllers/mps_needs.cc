#include "controllers/mps_needs.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "device/mps_share.h"
#include "gpu/shares.h"

namespace nos::controllers {
namespace {

using Pod = std::shared_ptr<const cluster::Pod>;

bool AsksForShares(const cluster::Container& container) {
  return std::ranges::any_of(container.limits, [](const auto& limit) {
    return gpu::IsShareResource(limit.first) && limit.second.Value() > 0;
  });
}

// Of the first container that has shares; -1: its image decides.
int64_t UserOf(const cluster::Pod& pod) {
  const auto container = std::ranges::find_if(pod.containers, AsksForShares);
  return container != pod.containers.end() && container->user >= 0 ? container->user : pod.user;
}

MpsLack Lack(const cluster::Pod& pod, std::string reason, std::string message) {
  return {pod.meta.ns, pod.meta.name, pod.meta.uid, std::move(reason), std::move(message)};
}

}  // namespace

std::vector<MpsLack> LackedForMps(const NodeDevices& devices, std::span<const Pod> pods,
                                  const MpsNeeds& needs) {
  std::vector<Pod> sharing;
  for (const Pod& pod : pods) {
    if (!pod->Finished() && std::ranges::any_of(pod->containers, AsksForShares)) {
      sharing.push_back(pod);
    }
  }
  std::ranges::sort(sharing, {},
                    [](const Pod& pod) { return std::tuple(pod->meta.created, pod->Key()); });
  std::vector<MpsLack> lacks;
  for (const Pod& pod : sharing) {
    if (!needs.host_ipc || pod->host_ipc) continue;
    lacks.push_back(Lack(*pod, "MpsNeedsHostIPC",
                         "an MPS share is reached through the host's shared memory: set "
                         "spec.hostIPC: true, or CUDA programs of this pod cannot use it"));
  }
  if (!needs.one_user) return lacks;
  std::map<std::string, std::vector<std::string>> gpus;  // by pod
  for (const auto& [device, pod] : devices.holders) {
    if (const auto share = device::ParseMpsShareId(device)) gpus[pod].push_back(share->gpu_uuid);
  }
  std::map<std::string, Pod> first;  // by GPU: who said its user first
  for (const Pod& pod : sharing) {
    const int64_t user = UserOf(*pod);
    if (user < 0) continue;
    for (const std::string& gpu : gpus[pod->Key()]) {
      const cluster::Pod& other = *first.try_emplace(gpu, pod).first->second;
      if (UserOf(other) == user) continue;
      lacks.push_back(
          Lack(*pod, "MpsOtherUser",
               fmt::format("runs as user {}, and pod {} on the same GPU as user {}: one "
                           "user at a time is served, so this pod's CUDA programs wait "
                           "for the other's to end. Set the same "
                           "securityContext.runAsUser, or mps.multiUser of the agent",
                           user, other.Key(), UserOf(other))));
      break;
    }
  }
  return lacks;
}

}  // namespace nos::controllers
