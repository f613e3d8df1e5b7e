#include "device/nebuly_gpus.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

namespace nos::device {

Result<std::string> NebulyGpus::UuidOf(int gpu) {
  NOS_ASSIGN(const std::vector<GpuInfo> infos, ListGpus());
  const auto info = std::ranges::find(infos, gpu, &GpuInfo::index);
  if (info == infos.end()) return NotFound(fmt::format("there is no GPU {}", gpu));
  return info->uuid;
}

Status NebulyGpus::EnableMps(int gpu) {
  NOS_ASSIGN(const std::string uuid, UuidOf(gpu));
  const bool anew = [&] {
    const std::scoped_lock lock(mutex_);
    return !shared_.contains(uuid);
  }();
  std::vector<std::string> offered;
  if (anew) {
    NOS_ASSIGN(offered, offered_());
  }
  NOS_RETURN_IF_ERROR(MpsGpus::EnableMps(gpu));
  const std::scoped_lock lock(mutex_);
  shared_.insert(uuid);
  if (anew) AdoptOffered(uuid, offered);
  return Status::Ok();
}

Status NebulyGpus::DisableMps(int gpu) {
  NOS_ASSIGN(const std::string uuid, UuidOf(gpu));
  NOS_RETURN_IF_ERROR(MpsGpus::DisableMps(gpu));
  const std::scoped_lock lock(mutex_);
  shared_.erase(uuid);
  return Status::Ok();
}

bool NebulyGpus::AnyShared() {
  const std::scoped_lock lock(mutex_);
  return !shared_.empty();
}

// REQUIRES: mutex_ is held.
bool NebulyGpus::IsNamed(const std::string& name) const {
  return std::ranges::any_of(names_, [&](const auto& known) { return known.second == name; });
}

// The shares that are not listed yet: held ones, then those with lower numbers. REQUIRES: mutex_ is
// held.
std::vector<MpsShare> NebulyGpus::NotListed(const std::set<MpsShare>& held) const {
  std::set<std::string> listed;
  for (const auto& [id, name] : names_) listed.insert(name);
  std::vector<MpsShare> missing;
  const auto add = [&](const MpsShare& share) {
    if (listed.insert(MpsShareId(share)).second) missing.push_back(share);
  };
  for (const MpsShare& share : held) add(share);
  for (const MpsShare& share : held) {
    for (int number = 0; number < share.start; ++number) add({share.gpu_uuid, share.gib, number});
  }
  return missing;
}

// Adopts the shares offered by the kubelet; Adopt() later records which of them pods hold.
// REQUIRES: mutex_ is held.
void NebulyGpus::AdoptOffered(const std::string& uuid, const std::vector<std::string>& ids) {
  std::set<MpsShare> shares;  // sorted: the plugin can drop only the highest numbers
  for (const std::string& id : ids) {
    const std::optional<MpsShare> share = ParseMpsShareId(id);
    if (share && share->gpu_uuid == uuid) shares.insert(*share);
  }
  const Result<std::vector<GpuInfo>> infos = ListGpus();
  if (!infos.ok()) return;
  const auto info = std::ranges::find(*infos, uuid, &GpuInfo::uuid);
  if (info == infos->end()) return;
  // A refused share can be ignored, because no pod holds it.
  for (const MpsShare& share : shares) (void)AdoptOne(share, *info, /*held=*/false);
}

std::vector<std::string> NebulyGpus::Adopt(std::span<const std::string> device_ids) {
  const std::scoped_lock lock(mutex_);
  std::set<MpsShare> held;
  std::vector<std::string> others;
  for (const std::string& id : device_ids) {
    const std::optional<MpsShare> share = ParseMpsShareId(id);
    share ? void(held.insert(*share)) : others.push_back(id);
  }
  for (const MpsShare& share : held) unused_.erase(MpsShareId(share));
  std::vector<std::string> refused = MpsGpus::Adopt(others);
  const std::vector<MpsShare> missing = NotListed(held);
  if (missing.empty()) return refused;
  const Result<std::vector<GpuInfo>> infos = ListGpus();
  if (!infos.ok()) return refused;  // retried by the next call
  for (const MpsShare& share : missing) {
    const auto info = std::ranges::find(*infos, share.gpu_uuid, &GpuInfo::uuid);
    if (info == infos->end() || info->share_gib == 0) continue;
    std::string why = AdoptOne(share, *info, held.contains(share));
    if (!why.empty()) refused.push_back(std::move(why));
  }
  return refused;
}

// Removes shares that no pod has held yet, highest numbers first, until the rest fits. If a pod has
// just got one of them, the next Adopt() restores it as held. REQUIRES: mutex_ is held.
void NebulyGpus::MakeRoom(const GpuInfo& gpu) {
  int room = gpu.share_gib;
  std::multimap<int, GpuInstance> unused;  // by number
  std::vector<GpuInstance> shares = SharesOn(gpu.index);
  for (GpuInstance& instance : shares) {
    room -= instance.size;
    Rename(instance);
    const std::optional<MpsShare> share = ParseMpsShareId(instance.uuid);
    if (share && unused_.contains(instance.uuid)) unused.emplace(share->start, instance);
  }
  while (room < 0 && !unused.empty()) {
    const auto highest = std::prev(unused.end());
    if (Remove(gpu.index, highest->second.id).ok()) room += highest->second.size;
    unused.erase(highest);
  }
}

// Adopts the share at the lowest free start; returns the reason of a refusal. A share that is not
// held must fit. REQUIRES: mutex_ is held.
std::string NebulyGpus::AdoptOne(const MpsShare& share, const GpuInfo& gpu, bool held) {
  std::set<int> starts;
  int taken = 0;
  for (const GpuInstance& instance : SharesOn(gpu.index)) {
    starts.insert(instance.start);
    taken += instance.size;
  }
  if (!held && taken + share.gib > gpu.share_gib) return "";
  int start = 0;
  while (starts.contains(start)) ++start;
  const std::string name = MpsShareId(share);
  const std::string id = MpsShareId({share.gpu_uuid, share.gib, start});
  const std::vector<std::string> refused = MpsGpus::Adopt(std::vector<std::string>{id});
  if (!refused.empty()) return fmt::format("device {}: {}", name, refused.front());
  names_[id] = name;
  if (held) {
    MakeRoom(gpu);
  } else {
    unused_.insert(name);
  }
  return "";
}

// REQUIRES: mutex_ is held.
void NebulyGpus::Rename(GpuInstance& instance) const {
  const auto name = names_.find(instance.uuid);
  if (name != names_.end()) instance.uuid = name->second;
}

Result<std::vector<GpuInstance>> NebulyGpus::ListInstances(int gpu) {
  const std::scoped_lock lock(mutex_);
  NOS_ASSIGN(std::vector<GpuInstance> instances, MpsGpus::ListInstances(gpu));
  for (GpuInstance& instance : instances) Rename(instance);
  return instances;
}

Result<GpuInstance> NebulyGpus::Create(int gpu, const std::string& profile, uint8_t start) {
  const std::scoped_lock lock(mutex_);
  NOS_ASSIGN(GpuInstance made, MpsGpus::Create(gpu, profile, start));
  std::optional<MpsShare> share = ParseMpsShareId(made.uuid);
  if (!share) return made;  // a MIG instance
  share->start = 0;
  while (IsNamed(MpsShareId(*share))) ++share->start;
  names_[made.uuid] = MpsShareId(*share);
  Rename(made);
  unused_.insert(made.uuid);
  return made;
}

Status NebulyGpus::Destroy(int gpu, uint32_t instance_id) {
  const std::scoped_lock lock(mutex_);
  return Remove(gpu, instance_id);
}

// REQUIRES: mutex_ is held.
Status NebulyGpus::Remove(int gpu, uint32_t instance_id) {
  std::string id;
  for (const GpuInstance& instance : SharesOn(gpu)) {
    if (instance.id == instance_id) id = instance.uuid;
  }
  NOS_RETURN_IF_ERROR(MpsGpus::Destroy(gpu, instance_id));
  if (const auto named = names_.find(id); named != names_.end()) {
    unused_.erase(named->second);
    names_.erase(named);
  }
  return Status::Ok();
}

}  // namespace nos::device
