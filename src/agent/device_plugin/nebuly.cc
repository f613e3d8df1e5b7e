#include "agent/device_plugin/strategies.h"
#include "agent/nebuly_plugin.h"

namespace nos::agent {
namespace {

class NebulyStrategy final : public DevicePluginStrategy {
 public:
  std::string_view name() const override { return "nebuly"; }
  PluginTraits traits() const override { return {.shares = true, .serves_mps = true}; }
  bool OnlyShares() const override { return true; }

  void Describe(ConfigFields& fields) override {
    fields.Group("nebuly", [&] {
      fields.Text("configMapName", options_.config_map.name, "ConfigMap of Nebuly's plugin.");
      fields.Text("configMapNamespace", options_.config_map.ns,
                  "Namespace of the ConfigMap and of the plugin's pods.");
      fields.Text("selector", options_.selector, "Label selector of the plugin's pods.");
      fields.Text("podsFolder", options_.pods_folder,
                  "The kubelet's folder of pod volumes. The node's label changes once the plugin's "
                  "pod has its new file, or two minutes after the ConfigMap if this folder is not "
                  "readable.");
    });
  }

  std::unique_ptr<device::MpsGpus> MakeShares(device::Backend& backend,
                                              const device::MpsGpusOptions& options,
                                              kubelet::PodResources& pod_resources) override {
    const auto offered = [&pod_resources]() -> Result<std::vector<std::string>> {
      NOS_ASSIGN(const auto devices, pod_resources.Allocatable());
      std::vector<std::string> ids;
      ids.reserve(devices.size());
      for (const kubelet::OfferedDevice& device : devices) ids.push_back(device.device_id);
      return ids;
    };
    auto shares = std::make_unique<device::NebulyGpus>(backend, options, offered);
    shares_ = shares.get();
    return shares;
  }

  std::unique_ptr<kubelet::DevicePlugin> Open(const PluginContext& context,
                                              kubelet::DevicePlugin* others) override {
    options_.config_map.node = context.node;
    auto plugin = std::make_unique<NebulyPlugin>(
        options_, *others, context.transport, context.pod_resources, *shares_,
        [&backend = context.backend] { return backend.ListGpus(); }, context.clock);
    rules_ = plugin.get();
    return plugin;
  }

  const DeviceRules* rules() const override { return rules_; }

 private:
  NebulyPluginOptions options_;
  device::NebulyGpus* shares_ = nullptr;
  const DeviceRules* rules_ = nullptr;
};

}  // namespace

std::unique_ptr<DevicePluginStrategy> MakeNebulyStrategy() {
  return std::make_unique<NebulyStrategy>();
}

}  // namespace nos::agent
