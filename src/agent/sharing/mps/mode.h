// GPUs that are shared by MPS: which ones are, and which ones were by an earlier agent.
//
// A share has a memory limit only while a daemon serves its GPU. Therefore a daemon runs until the
// GPU is no longer to be shared and has no shares left. A restarted agent does not know what the
// earlier one shared: it takes a GPU over if pods hold shares of it or a daemon runs, and changes
// nothing there before. Owned by one thread, except Grant() and Prefer().
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/sharing/mps/service.h"
#include "agent/sharing_mode.h"
#include "gpu/shares.h"

namespace nos::agent {

class MpsSharing final : public SharingModeStrategy {
 public:
  MpsSharing(std::shared_ptr<MpsService> service, MpsPodRequirements needs)
      : service_(std::move(service)), needs_(needs) {}

  std::string_view section() const override { return "mps"; }
  void Describe(ConfigFields& fields, DevicePlugins& plugins) override;
  std::string_view plugin() const override { return service_->enabled() ? plugin_ : ""; }
  Status UsePlugin(const PluginTraits& plugin) override;
  std::unique_ptr<device::Backend> Decorate(device::Backend& backend,
                                            const ModeContext& context) override;
  Result<std::optional<kubelet::ContainerGrant>> Grant(const kubelet::Allocation& allocation,
                                                       device::Backend& backend) const override;
  std::function<std::vector<std::string>(const kubelet::Choice&)> Prefer() const override;

  std::optional<SharingMode> ModeOf(std::string_view label) const override;
  // Adds empty targets for GPUs whose devices are to be destroyed as they become free, whatever the
  // spec says: their sharing mode must change, or no plan can include their devices, or they have
  // more shares than allowed.
  void OnObserved(ObservedState& round) override;
  // Nodes that are not hybrid neither take over GPUs in MIG mode nor share them.
  std::set<int> NotTakenOver(const ObservedState& round) const override;
  bool Recovers(int gpu, std::span<const device::HealthCondition> faults) const override;
  std::vector<PodViolation> CheckPods(const NodeDevices& devices, Pods pods) const override;
  void RequestDaemons(const ObservedState& round) override;
  void KeepDaemons(ObservedState&) override { service_->Keep(); }

  // Shares a GPU as the node's mode requests, or ends that.
  std::optional<device::Operation> Next(const ObservedState& round,
                                        const Deferral& deferral) const override;
  bool IsServed(const std::string& uuid) const override { return service_->IsServed(uuid); }
  // Puts back the compute mode of a GPU that an earlier agent shared, if this agent shares none.
  std::optional<Status> Apply(const device::Operation& operation, Gpus gpus,
                              device::Backend& backend) override;

 private:
  std::set<std::string> WereShared(const ObservedState& round) const;
  std::optional<device::Operation> NextPutBack(const ObservedState& round,
                                               const Deferral& deferral) const;

  const std::shared_ptr<MpsService> service_;
  MpsPodRequirements needs_;
  bool prefers_ = false;  // the kubelet asks which shares a container should get
  std::string plugin_ = "builtin";
  int64_t overhead_mib_ = gpu::kShareOverheadMib, max_clients_ = gpu::kMaxShares;
  std::set<std::string> leaving_;  // UUIDs of GPUs whose daemons were asked to stop
};

}  // namespace nos::agent
