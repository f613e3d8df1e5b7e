// Hybrid nodes, on which the spec of each GPU decides about its mode: beside MIG and MPS, whole
// GPUs and time slices (device/plain_gpus.h).
#include "agent/device_plugin.h"
#include "agent/mps_grant.h"
#include "agent/sharing/strategies.h"
#include "device/plain_gpus.h"

namespace nos::agent {
namespace {

class HybridSharing final : public SharingModeStrategy {
 public:
  HybridSharing(bool whole, int time_slices) : whole_(whole), time_slices_(time_slices) {}

  std::string_view section() const override { return "hybrid"; }
  void Describe(ConfigFields& fields, DevicePlugins&) override {
    fields.Number(
        "timeSlices", time_slices_, 0, gpu::kMaxTimeSlices,
        "Number of pods that may share a GPU by time slices on a node with label "
        "nos.nebuly.com/gpu-partitioning=hybrid (nvidia.com/gpu.shared); 0, 1: none. Requires "
        "devicePlugin.mode builtin.");
  }
  Status UsePlugin(const PluginTraits& plugin) override {
    whole_ = plugin.whole;
    return Status::Ok();
  }
  void AddSettings(SharingSettings& settings) const override {
    settings.time_slices = static_cast<int>(time_slices_);
  }
  std::unique_ptr<device::Backend> Decorate(device::Backend& backend, const ModeContext&) override {
    return std::make_unique<device::PlainGpus>(backend);
  }
  Result<std::optional<kubelet::ContainerGrant>> Grant(const kubelet::Allocation& allocation,
                                                       device::Backend&) const override {
    return GrantTimeSlices(allocation);
  }
  std::optional<RequestedMode> ModeOf(std::string_view label) const override {
    if (label != "hybrid" || !whole_) return std::nullopt;
    return RequestedMode{.per_gpu = true, .mps = true};
  }

 private:
  bool whole_;  // GPUs may be given as a whole; without it a node cannot be hybrid
  int64_t time_slices_;
};

}  // namespace

std::shared_ptr<SharingModeStrategy> MakeHybridSharing(const SharingOptions& options) {
  return std::make_shared<HybridSharing>(options.whole, options.time_slices);
}

}  // namespace nos::agent
