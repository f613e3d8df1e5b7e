// Hybrid nodes, on which the spec of each GPU decides about its mode: beside MIG and MPS, whole
// GPUs and time slices (device/plain_gpus.h). Nodes labelled "mig" may have whole GPUs too, without
// MPS and time slices.
#include "agent/device_plugin.h"
#include "agent/mps_grant.h"
#include "agent/sharing/strategies.h"
#include "device/plain_gpus.h"

namespace nos::agent {
namespace {

class HybridSharing final : public SharingModeStrategy {
 public:
  explicit HybridSharing(const SharingOptions& options)
      : whole_(options.whole),
        on_mig_nodes_(options.whole_on_mig_nodes),
        time_slices_(options.time_slices) {}

  std::string_view section() const override { return "hybrid"; }
  void Describe(ConfigFields& fields, DevicePlugins&) override {
    fields.Number(
        "timeSlices", time_slices_, 0, gpu::kMaxTimeSlices,
        "Number of pods that may share a GPU by time slices on a node with label "
        "nos.nebuly.com/gpu-partitioning=hybrid (nvidia.com/gpu.shared); 0, 1: none. Requires "
        "devicePlugin.mode builtin.");
    fields.Flag("wholeOnMigNodes", on_mig_nodes_,
                "Give whole GPUs (nvidia.com/gpu) on nodes with label "
                "nos.nebuly.com/gpu-partitioning=mig too, to pods that ask for them. GPUs without "
                "instances then count in the node's capacity. Has no effect unless "
                "devicePlugin.mode is builtin.");
  }
  Status UsePlugin(const PluginTraits& plugin) override {
    whole_ = plugin.whole;
    return Status::Ok();
  }
  void AddSettings(SharingSettings& settings) const override {
    settings.time_slices = static_cast<int>(time_slices_);
    settings.shows_unused = on_mig_nodes_;
  }
  std::unique_ptr<device::Backend> Decorate(device::Backend& backend, const ModeContext&) override {
    return std::make_unique<device::PlainGpus>(backend);
  }
  Result<std::optional<kubelet::ContainerGrant>> Grant(const kubelet::Allocation& allocation,
                                                       device::Backend&) const override {
    return GrantTimeSlices(allocation);
  }
  std::optional<RequestedMode> ModeOf(std::string_view label) const override {
    if (!whole_) return std::nullopt;
    if (label == "mig" && on_mig_nodes_) return RequestedMode{.per_gpu = true};
    return label == "hybrid" ? std::optional<RequestedMode>({.per_gpu = true, .mps = true})
                             : std::nullopt;
  }

 private:
  bool whole_;  // GPUs may be given as a whole; without it a node cannot be hybrid
  bool on_mig_nodes_;
  int64_t time_slices_;
};

}  // namespace

std::shared_ptr<SharingModeStrategy> MakeHybridSharing(const SharingOptions& options) {
  return std::make_shared<HybridSharing>(options);
}

}  // namespace nos::agent
