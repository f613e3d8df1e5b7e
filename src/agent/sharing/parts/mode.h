// MIG instances of hybrid nodes that several pods share by MPS (device/mig_parts.h).
//
// A part is offered while a daemon serves its instance; the instance's daemon ends before its last
// part is destroyed. Owned by one thread, except Grant().
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "agent/sharing/mps/service.h"
#include "agent/sharing_mode.h"

namespace nos::agent {

class PartSharing final : public SharingModeStrategy {
 public:
  PartSharing(std::shared_ptr<MpsService> mps, std::vector<gpu::InstancePart> parts)
      : mps_(std::move(mps)), parts_(std::move(parts)) {}

  std::string_view section() const override { return "hybrid"; }
  void Describe(ConfigFields& fields, DevicePlugins& plugins) override;
  Status UsePlugin(const PluginTraits& plugin) override;
  void AddSettings(SharingSettings& settings) const override;
  std::unique_ptr<device::Backend> Decorate(device::Backend& backend,
                                            const ModeContext& context) override;
  Result<std::optional<kubelet::ContainerGrant>> Grant(const kubelet::Allocation& allocation,
                                                       device::Backend& backend) const override;
  void RequestDaemons(const ObservedState& round) override;
  void KeepDaemons(ObservedState& round) override;
  bool MayDestroy(const device::Operation& operation, const ObservedState& round) override;

 private:
  const std::shared_ptr<MpsService> mps_;
  std::string text_;  // of the configuration
  std::vector<gpu::InstancePart> parts_;
  bool offered_ = true;  // the plugin supports parts
  // UUIDs of divided instances whose last part is about to be destroyed: their daemons are stopped
  // first.
  std::set<std::string> ending_;
};

}  // namespace nos::agent
