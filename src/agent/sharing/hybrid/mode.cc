#include "agent/sharing/hybrid/mode.h"

#include "agent/device_plugin.h"
#include "agent/mps_grant.h"
#include "device/plain_gpus.h"

namespace nos::agent {

void HybridSharing::Describe(ConfigFields& fields, DevicePlugins&) {
  fields.Number(
      "timeSlices", time_slices_, 0, gpu::kMaxTimeSlices,
      "Number of pods that may share a GPU by time slices on a node with label "
      "nos.nebuly.com/gpu-partitioning=hybrid (nvidia.com/gpu.shared); 0, 1: none. Requires "
      "devicePlugin.mode builtin.");
}

Status HybridSharing::UsePlugin(const PluginTraits& plugin) {
  whole_ = plugin.whole;
  return Status::Ok();
}

std::unique_ptr<device::Backend> HybridSharing::Decorate(device::Backend& backend,
                                                         const ModeContext&) {
  return std::make_unique<device::PlainGpus>(backend);
}

Result<std::optional<kubelet::ContainerGrant>> HybridSharing::Grant(
    const kubelet::Allocation& allocation, device::Backend&) const {
  return GrantTimeSlices(allocation);
}

std::optional<SharingMode> HybridSharing::ModeOf(std::string_view label) const {
  if (label != "hybrid" || !whole_) return std::nullopt;
  return SharingMode{.per_gpu = true, .mps = true};
}

}  // namespace nos::agent
