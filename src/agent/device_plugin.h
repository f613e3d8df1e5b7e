// A program that offers the node's devices to the kubelet: nos itself, or a foreign plugin. Agent
// and daemon know none by name.
//
//   DevicePlugins plugins;
//   plugins.Describe(fields);                                   // the configuration chooses
//   DevicePluginStrategy& plugin = plugins.Choose(modes);
//   const auto open = plugins.Open(context);
//   extras.rules = plugin.rules();
//
// A plugin is a file in device_plugin/ and one line in device_plugin/registry.cc.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/device_rules.h"
#include "agent/sharing_modes.h"
#include "base/config_fields.h"
#include "base/metrics.h"
#include "device/driver_files.h"
#include "device/mps_gpus.h"
#include "kube/client.h"
#include "kubelet/device_plugin.h"
#include "kubelet/pod_resources.h"
#include "reconcile/condition.h"

namespace nos::agent {

// The devices that a plugin can offer beside MIG instances.
struct PluginTraits {
  bool shares = false;      // MPS shares
  bool whole = false;       // whole GPUs and time slices
  bool serves_mps = false;  // it runs the MPS daemons itself, and offers no parts of instances
};

// Everything that a plugin may use; outlives it.
struct PluginContext {
  std::string node;
  kube::Transport& transport;
  kubelet::PodResources& pod_resources;
  device::Backend& backend;
  const SharingModes& modes;
  const device::HostFolders& host;
  const Clock& clock;
  std::function<void()> look;  // makes the agent observe again; from any thread
};

class DevicePluginStrategy {
 public:
  virtual ~DevicePluginStrategy() = default;

  // The value of the configuration that chooses it.
  virtual std::string_view name() const = 0;
  virtual PluginTraits traits() const = 0;
  // True if it offers MPS shares only, beside the plugin of the node.
  virtual bool OnlyShares() const { return false; }
  virtual void Describe(ConfigFields& /*fields*/) {}
  // The GPUs' shares, with the ids that the plugin uses.
  virtual std::unique_ptr<device::MpsGpus> MakeShares(device::Backend& backend,
                                                      const device::MpsGpusOptions& options,
                                                      kubelet::PodResources& /*pod_resources*/) {
    return std::make_unique<device::MpsGpus>(backend, options);
  }
  // `others`: offers devices that are not shares; null unless OnlyShares(). REQUIRES: MakeShares
  // was called if OnlyShares().
  virtual std::unique_ptr<kubelet::DevicePlugin> Open(const PluginContext& context,
                                                      kubelet::DevicePlugin* others) = 0;
  // Rules of an open plugin that names its devices itself; null: it offers any device.
  virtual const DeviceRules* rules() const { return nullptr; }
  // Condition kDeviceHandover; no value: the plugin hands devices over in its own way. Called by
  // the agent's thread.
  virtual std::optional<reconcile::WantedCondition> Handover() const { return std::nullopt; }
  virtual void Measure(Metrics& /*metrics*/) const {}
};

class DevicePlugins {
 public:
  DevicePlugins();  // all plugins

  // Describes group devicePlugin.
  void Describe(ConfigFields& fields);
  // Describes keys of a mode with shares: `name` of its plugin, and the plugins' own.
  void DescribeForShares(ConfigFields& fields, std::string& name);
  // The plugin that the agent uses, as the configuration says.
  DevicePluginStrategy& Choose(const SharingModes& modes);
  // Opens the chosen plugins. The last one is that of the agent.
  std::vector<std::unique_ptr<kubelet::DevicePlugin>> Open(const PluginContext& context);
  // The condition of the first chosen plugin which has one. REQUIRES: they are open.
  std::optional<reconcile::WantedCondition> Handover() const;
  void Measure(Metrics& metrics) const;

 private:
  std::vector<std::string> Names(bool only_shares) const;
  DevicePluginStrategy& Named(std::string_view name) const;

  std::vector<std::unique_ptr<DevicePluginStrategy>> all_;
  std::string name_;                           // of the node's plugin
  std::vector<DevicePluginStrategy*> chosen_;  // the node's, then one that only offers shares
};

}  // namespace nos::agent
