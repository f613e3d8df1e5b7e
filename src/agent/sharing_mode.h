// A way to share GPUs, as the agent and its device plugin use it. They know no mode by name: each
// step of a reconciliation asks all modes of the node.
//
//   for (const auto& mode : modes) mode->OnObserved(round);          // once a reconciliation
//   for (const auto& mode : modes) mode->RequestDaemons(round);      // when the targets are known
//   for (const auto& mode : modes) mode->KeepDaemons(round);
//   if (!next) next = mode->Next(round, deferral);                   // what no spec requests
//
// Each default is the answer of a mode that the step does not concern. A mode is a folder in
// sharing/ and one line in sharing/registry.cc (README.md, "Adding a sharing mode"). Grant() and
// Prefer()'s function are called by threads of the device plugin, all else by the agent's thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agent/node/failures.h"
#include "agent/node/observed_state.h"
#include "base/config_fields.h"
#include "device/actuator.h"
#include "device/backend.h"
#include "device/health.h"
#include "kubelet/device_plugin_server.h"
#include "kubelet/pod_resources.h"
#include "reconcile/condition.h"

namespace nos::agent {

class DevicePlugins;
class ShareDaemons;
class DevicePluginStrategy;
struct PluginTraits;

// Everything that a mode may use while the agent runs.
struct ModeContext {
  const gpu::Catalogue& catalogue;
  DevicePluginStrategy& plugin;
  kubelet::PodResources& pod_resources;
  device::GpuHealth& health;
  std::function<void()> look;  // makes the agent observe again; from any thread
};

// Reasons to put off an operation, beyond those that the mode itself knows.
struct Deferral {
  std::function<bool(const device::Operation&)> operation;
  std::function<bool(const device::GpuInfo&)> gpu;  // a change of the GPU's mode
};

class SharingModeStrategy {
 public:
  using Gpus = std::span<const device::ObservedGpu>;
  using Pods = std::span<const std::shared_ptr<const cluster::Pod>>;

  virtual ~SharingModeStrategy() = default;

  // 1. Configuration.
  // The group of the agent's configuration that has the mode's keys; modes may have one in common.
  virtual std::string_view section() const { return ""; }
  virtual void Describe(ConfigFields& /*fields*/, DevicePlugins& /*plugins*/) {}
  // Name of the plugin that offers the mode's devices in place of the node's own; "": none.
  virtual std::string_view plugin() const { return ""; }
  // Adapts the mode to the plugin. Error: kInvalid, naming the keys that exclude each other.
  virtual Status UsePlugin(const PluginTraits& /*plugin*/) { return Status::Ok(); }
  // Adds the settings that do not change while the agent runs. settings.hybrid is set.
  virtual void AddSettings(SharingSettings& /*settings*/) const {}
  // The daemons by which ResourceClaims may share devices; null: the mode has none. Call it after
  // Decorate.
  virtual ShareDaemons* Daemons() { return nullptr; }
  // A backend that also has the mode's devices; null: `backend` is enough.
  virtual std::unique_ptr<device::Backend> Decorate(device::Backend& /*backend*/,
                                                    const ModeContext& /*context*/) {
    return nullptr;
  }

  // 2. Containers, as kubelet::DevicePluginOptions has it. No value: devices of another mode.
  virtual Result<std::optional<kubelet::ContainerGrant>> Grant(
      const kubelet::Allocation& /*allocation*/, device::Backend& /*backend*/) const {
    return std::optional<kubelet::ContainerGrant>();
  }
  virtual std::function<std::vector<std::string>(const kubelet::Choice&)> Prefer() const {
    return {};
  }

  // 3. Observation.
  // The node's mode if its label (gpu-partitioning) names this one.
  virtual std::optional<RequestedMode> ModeOf(std::string_view /*label*/) const {
    return std::nullopt;
  }
  // Adds the settings that depend on the node's state.
  virtual void Adapt(SharingSettings& /*settings*/, const cluster::Node& /*node*/,
                     const Failures& /*failures*/, Time /*now*/) {}
  // The devices have been read. May add targets, which the spec does not override.
  virtual void OnObserved(ObservedState& /*round*/) {}
  // Indices of GPUs whose observed state is not yet the actual one: they are neither changed nor
  // reported.
  virtual std::set<int> NotTakenOver(const ObservedState& /*round*/) const { return {}; }
  // True if the GPU, with these disabling conditions, becomes healthy by itself.
  virtual bool Recovers(int /*gpu*/, std::span<const device::HealthCondition> /*faults*/) const {
    return false;
  }
  // The reason why the GPU cannot have the layout of its spec. `observed`: null if it is not.
  virtual std::optional<gpu::Obstacle> WhyNot(int /*gpu*/,
                                              const device::ObservedGpu* /*observed*/) const {
    return std::nullopt;
  }
  // Pods that do not meet the requirements of their devices.
  virtual std::vector<PodViolation> CheckPods(const NodeDevices& /*devices*/, Pods /*pods*/) const {
    return {};
  }
  // Requests the daemons that serve the mode's devices; those without request end. KeepDaemons is
  // called after all modes have requested theirs, and withholds devices that are not served.
  virtual void RequestDaemons(const ObservedState& /*round*/) {}
  virtual void KeepDaemons(ObservedState& /*round*/) {}

  // 4. Operations.
  // The next operation that no spec requests, as the node's label or leftovers need it.
  virtual std::optional<device::Operation> Next(const ObservedState& /*round*/,
                                                const Deferral& /*deferral*/) const {
    return std::nullopt;
  }
  // True if the GPU's change of mode is under way and is not to be requested again now.
  virtual bool Delays(const device::GpuInfo& /*gpu*/, Time /*now*/) const { return false; }
  // True if the operation is safe while pods use the GPU.
  virtual bool IsHarmless(const device::Operation& /*operation*/, Gpus /*gpus*/) const {
    return false;
  }
  // True if a daemon still has the GPU or instance open.
  virtual bool IsServed(const std::string& /*uuid*/) const { return false; }
  // The last check before the device is destroyed. False: not yet. REQUIRES: the kubelet cannot
  // give the device to a pod any more.
  virtual bool MayDestroy(const device::Operation& /*operation*/, const ObservedState& /*round*/) {
    return true;
  }
  // Applies the operation in the mode's own way; no value: as device::Apply.
  virtual std::optional<Status> Apply(const device::Operation& /*operation*/, Gpus /*gpus*/,
                                      device::Backend& /*backend*/) {
    return std::nullopt;
  }
  // The operation has failed for good. True: it is not due again before a new plan requests it.
  virtual bool Delay(const device::Operation& /*operation*/, const Status& /*error*/, Gpus /*gpus*/,
                     Time /*now*/) {
    return false;
  }

  // 5. Report: a condition of the node.
  virtual std::optional<reconcile::WantedCondition> Condition(Gpus /*gpus*/) const {
    return std::nullopt;
  }
};

}  // namespace nos::agent
