#include "agent/sharing/mps/requirements.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "cluster/placeholder.h"
#include "device/mig_parts.h"
#include "device/mps_share.h"
#include "gpu/modes.h"
#include "gpu/shares.h"

namespace nos::agent {
namespace {

using Pod = std::shared_ptr<const cluster::Pod>;

bool AsksForShares(const cluster::Container& container) {
  return std::ranges::any_of(container.limits, [](const auto& limit) {
    const bool share = gpu::IsShareResource(limit.first) || gpu::IsPartResource(limit.first);
    return share && limit.second.Value() > 0;
  });
}

bool AsksForSharesAnywhere(const cluster::Pod& pod) {
  return std::ranges::any_of(pod.containers, AsksForShares) ||
         std::ranges::any_of(pod.init_containers, AsksForShares);
}

// The users of the containers with shares, if the pod spec names them.
std::set<int64_t> UsersOf(const cluster::Pod& pod) {
  std::set<int64_t> users;
  for (const auto* containers : {&pod.containers, &pod.init_containers}) {
    for (const cluster::Container& container : *containers) {
      const int64_t user = container.user >= 0 ? container.user : pod.user;
      if (user >= 0 && AsksForShares(container)) users.insert(user);
    }
  }
  return users;
}

PodViolation Lack(const cluster::Pod& pod, std::string reason, std::string message) {
  return {pod.meta.ns, pod.meta.name, pod.meta.uid, std::move(reason), std::move(message)};
}

// The problem if the pod's user differs from that of the first pod on one of these GPUs; "" if
// none.
std::string OtherUser(const Pod& pod, const std::vector<std::string>& gpus,
                      std::map<std::string, std::pair<int64_t, Pod>>& first) {
  for (const int64_t user : UsersOf(*pod)) {
    for (const std::string& gpu : gpus) {
      const auto& [known, other] = first.try_emplace(gpu, user, pod).first->second;
      if (known == user) continue;
      return fmt::format(
          "Sharing a GPU or MIG instance as user {} with Pod {}, which runs as user {}: MPS serves "
          "one user at a time, so programs of one Pod wait until those of the other end. Set the "
          "same securityContext.runAsUser, or mps.multiUser of the agent",
          user, other->Key(), known);
    }
  }
  return "";
}

}  // namespace

std::vector<PodViolation> FindMpsViolations(const NodeDevices& devices, std::span<const Pod> pods,
                                            const MpsPodRequirements& needs) {
  std::vector<Pod> sharing;
  for (const Pod& pod : pods) {
    if (!pod->Finished() && AsksForSharesAnywhere(*pod)) {
      sharing.push_back(pod);
    }
  }
  std::ranges::sort(sharing, {},
                    [](const Pod& pod) { return std::tuple(pod->meta.created, pod->Key()); });
  std::vector<PodViolation> lacks;
  for (const Pod& pod : sharing) {
    // A placeholder runs no CUDA program.
    if (!needs.host_ipc || pod->host_ipc || cluster::IsPlaceholder(*pod)) continue;
    lacks.push_back(
        Lack(*pod, "MpsNeedsHostIPC",
             "Failed to share GPU with Pod: it lacks spec.hostIPC: true. MPS uses the "
             "host's shared memory, so CUDA programs of this Pod cannot use its share"));
  }
  if (!needs.one_user) return lacks;
  std::map<std::string, std::vector<std::string>> gpus;  // by pod
  for (const auto& [device, pod] : devices.holders) {
    if (const auto share = device::ParseMpsShareId(device)) gpus[pod].push_back(share->gpu_uuid);
    if (const auto part = device::ParseMigPartId(device)) gpus[pod].push_back(part->mig_uuid);
  }
  std::map<std::string, std::pair<int64_t, Pod>> first;  // by GPU: the first user and its pod
  for (const Pod& pod : sharing) {
    const std::string problem = OtherUser(pod, gpus[pod->Key()], first);
    if (!problem.empty()) lacks.push_back(Lack(*pod, "MpsOtherUser", problem));
  }
  return lacks;
}

}  // namespace nos::agent
