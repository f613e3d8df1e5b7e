#include "scheduling/plugins/dynamic_resources/doubtful_claims.h"

#include <algorithm>

#include "dra/device_index.h"

namespace nos::scheduling {
namespace {

constexpr Duration kPause = std::chrono::seconds(10);

bool IsInDoubt(const cluster::Pod& pod, const dra::DeviceIndex& index) {
  return std::ranges::any_of(dra::SpecClaimKeysOf(pod), [&](const std::string& key) {
    const auto* assumed = index.FindAssumed(key);
    return assumed != nullptr && assumed->doubtful && assumed->pod_uid == pod.meta.uid;
  });
}

// The devices of a pod that had a node are left to Kubernetes, which knows when the kubelet is done
// with them.
bool HoldsUnusedDevices(const cluster::Pod& pod, const dra::DeviceIndex& index) {
  if (!pod.node_name.empty() || index.HasPlacedMember(pod)) return false;
  return std::ranges::any_of(dra::SpecClaimKeysOf(pod), [&](const std::string& key) {
    const auto& claim = index.FindClaim(key);
    return claim != nullptr && claim->allocation && dra::IsReservedFor(*claim, pod) &&
           claim->reserved_for.size() == 1;
  });
}

}  // namespace

void DoubtfulClaims::OnGone(const Pod& pod, const cluster::ClusterSnapshot& snapshot, Time now) {
  const auto& index = snapshot.context().devices;
  if (index == nullptr || !IsInDoubt(*pod, *index)) return;
  gone_[pod->meta.uid] = {pod, now + kPause};
}

std::vector<DoubtfulClaims::Pod> DoubtfulClaims::TakeDue(const cluster::ClusterSnapshot& snapshot,
                                                         Time now) {
  std::vector<Pod> due;
  if (gone_.empty()) return due;
  const dra::DeviceIndex& index = *snapshot.context().devices;
  std::erase_if(gone_, [&](const auto& entry) {
    const Gone& gone = entry.second;
    return gone.due <= now && !IsInDoubt(*gone.pod, index) && !HoldsUnusedDevices(*gone.pod, index);
  });
  for (auto& [uid, gone] : gone_) {
    if (gone.due > now) continue;
    gone.due = now + kPause;
    due.push_back(gone.pod);
  }
  return due;
}

std::optional<Time> DoubtfulClaims::NextDue() const {
  std::optional<Time> next;
  for (const auto& [uid, gone] : gone_) next = std::min(next.value_or(Time::max()), gone.due);
  return next;
}

}  // namespace nos::scheduling
