#include "agent/mps_grant.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <vector>

#include "device/mig_parts.h"
#include "device/mps_share.h"
#include "device/plain_gpus.h"

namespace nos::agent {
namespace {

Status NotServed(const std::string& uuid) {
  return {Code::kUnavailable,
          fmt::format("no MPS daemon serves {} now, and without one nothing would limit the "
                      "container's memory: the node's condition nos.nebuly.com/GpusHealthy and the "
                      "agent's log say why",
                      uuid)};
}

// A container keeps its environment for its whole life, so it must not start without the limit.
Status NoBound(const std::string& uuid) {
  return {Code::kUnavailable,
          fmt::format("the driver does not report how much memory {} has, and without that "
                      "nothing would hold the container to its part of the multiprocessors",
                      uuid)};
}

}  // namespace

kubelet::ContainerGrant MpsAccess(const std::string& uuid, const std::string& memory,
                                  int64_t thread_percentage, const MpsGrantOptions& options) {
  kubelet::ContainerGrant grant;
  const std::string pipes = options.pipe_folder(uuid);
  // CUDA takes an instance by its name only; the daemon of a GPU shows that GPU alone.
  if (device::IsMigUuid(uuid)) grant.environment["CUDA_VISIBLE_DEVICES"] = uuid;
  grant.environment["CUDA_MPS_PIPE_DIRECTORY"] = pipes;
  grant.environment["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] = fmt::format("0={}", memory);
  if (thread_percentage > 0) {
    grant.environment["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = std::to_string(thread_percentage);
  }
  grant.mounts = {{pipes, pipes, false}};
  if (!options.shm_folder.empty()) grant.mounts.push_back({options.shm_folder, "/dev/shm", false});
  return grant;
}

Result<std::optional<kubelet::ContainerGrant>> GrantMpsShares(const kubelet::Allocation& allocation,
                                                              const MpsGrantOptions& options) {
  std::vector<device::MpsShare> shares;
  for (const std::string& id : allocation.device_ids) {
    if (auto share = device::ParseMpsShareId(id)) shares.push_back(*std::move(share));
  }
  if (shares.empty()) return std::optional<kubelet::ContainerGrant>();
  const device::MpsShare& first = shares.front();
  for (const device::MpsShare& share : shares) {
    if (share.gpu_uuid == first.gpu_uuid) continue;
    return Invalid(fmt::format(
        "{} shares of {} for one container are of GPUs {} and {}, and a program reaches the MPS "
        "daemon of one GPU only: ask for one larger share, or for one share in each of several "
        "containers",
        shares.size(), allocation.resource, first.gpu_uuid, share.gpu_uuid));
  }
  const bool alike =
      shares.size() == allocation.device_ids.size() &&
      std::ranges::all_of(shares, [&](const auto& share) { return share.gib == first.gib; });
  if (!alike) {
    return Invalid(
        fmt::format("devices of {} for one container are of different kinds: ask for "
                    "one share",
                    allocation.resource));
  }
  if (!options.serves || !options.serves(first.gpu_uuid)) return NotServed(first.gpu_uuid);
  int percentage = 0;
  if (options.share_gib) {
    const int whole = options.share_gib(first.gpu_uuid);
    if (whole <= 0) return NoBound(first.gpu_uuid);
    percentage = std::clamp(100 * first.gib / whole, 1, 100);
  }
  kubelet::ContainerGrant grant =
      MpsAccess(first.gpu_uuid, fmt::format("{}G", first.gib), percentage, options);
  grant.visible = {first.gpu_uuid};
  return std::optional(std::move(grant));
}

Result<std::optional<kubelet::ContainerGrant>> GrantMigParts(const kubelet::Allocation& allocation,
                                                             const MpsGrantOptions& options,
                                                             bool in_proportion) {
  std::vector<device::MigPart> parts;
  for (const std::string& id : allocation.device_ids) {
    if (auto part = device::ParseMigPartId(id)) parts.push_back(*std::move(part));
  }
  if (parts.empty()) return std::optional<kubelet::ContainerGrant>();
  if (allocation.device_ids.size() > 1) {
    return Invalid(fmt::format(
        "{} devices of {} for one container: its programs reach the MPS daemon of one instance "
        "only, and have the memory of one share each: ask for one in each of several containers",
        allocation.device_ids.size(), allocation.resource));
  }
  const device::MigPart& part = parts.front();
  const int mib = options.part_mib ? options.part_mib(part.mig_uuid) : 0;
  if (mib <= 0) return NotServed(part.mig_uuid);
  kubelet::ContainerGrant grant = MpsAccess(part.mig_uuid, fmt::format("{}M", mib),
                                            in_proportion ? 100 / part.count : 0, options);
  grant.visible = {part.mig_uuid};
  return std::optional(std::move(grant));
}

std::optional<kubelet::ContainerGrant> GrantTimeSlices(const kubelet::Allocation& allocation) {
  kubelet::ContainerGrant grant;
  for (const std::string& id : allocation.device_ids) {
    const auto slice = device::ParseTimeSliceId(id);
    if (!slice) return std::nullopt;
    if (std::ranges::count(grant.visible, slice->gpu_uuid) == 0) {
      grant.visible.push_back(slice->gpu_uuid);
    }
  }
  return grant.visible.empty() ? std::nullopt : std::optional(std::move(grant));
}

std::vector<std::string> PreferOneGpu(const kubelet::Choice& choice) {
  std::map<std::string, std::vector<std::string>> by_gpu;
  for (const std::string& id : choice.available) {
    if (const auto share = device::ParseMpsShareId(id)) by_gpu[share->gpu_uuid].push_back(id);
  }
  std::vector<std::string> best;
  for (auto& [gpu, ids] : by_gpu) {
    // Required devices come first.
    const auto rest = std::ranges::stable_partition(ids, [&](const std::string& id) {
      return std::ranges::find(choice.must_include, id) != choice.must_include.end();
    });
    const auto must = std::ssize(ids) - std::ssize(rest);
    const bool fits = must == std::ssize(choice.must_include) && must <= choice.size &&
                      std::ssize(ids) >= choice.size;
    if (fits && (best.empty() || ids.size() < best.size())) best = ids;
  }
  best.resize(std::min(best.size(), static_cast<size_t>(std::max(0, choice.size))));
  return best;
}

}  // namespace nos::agent
