// Hybrid nodes, on which the spec of each GPU decides about its mode: beside MIG and MPS, whole
// GPUs and time slices (device/plain_gpus.h).
#pragma once

#include <memory>

#include "agent/sharing_mode.h"

namespace nos::agent {

class HybridSharing final : public SharingModeStrategy {
 public:
  // `whole`: GPUs may be given as a whole; without it a node cannot be hybrid. `time_slices`: of
  // each GPU; 0: none.
  HybridSharing(bool whole, int64_t time_slices) : whole_(whole), time_slices_(time_slices) {}

  std::string_view section() const override { return "hybrid"; }
  void Describe(ConfigFields& fields, DevicePlugins& plugins) override;
  Status UsePlugin(const PluginTraits& plugin) override;
  void AddSettings(SharingSettings& settings) const override {
    settings.time_slices = static_cast<int>(time_slices_);
  }
  std::unique_ptr<device::Backend> Decorate(device::Backend& backend,
                                            const ModeContext& context) override;
  Result<std::optional<kubelet::ContainerGrant>> Grant(const kubelet::Allocation& allocation,
                                                       device::Backend& backend) const override;
  std::optional<SharingMode> ModeOf(std::string_view label) const override;

 private:
  bool whole_;
  int64_t time_slices_;
};

}  // namespace nos::agent
