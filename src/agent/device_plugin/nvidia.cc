#include "agent/device_plugin/strategies.h"
#include "agent/nvidia_plugin.h"

namespace nos::agent {
namespace {

class NvidiaStrategy final : public DevicePluginStrategy {
 public:
  std::string_view name() const override { return "nvidia"; }
  PluginTraits traits() const override { return {}; }

  void Describe(ConfigFields& fields) override {
    fields.Text("selector", options_.selector,
                "Label selector of the pods of NVIDIA's plugin (nvidia).");
    fields.Text("namespace", options_.ns,
                "Namespace of the pods of NVIDIA's plugin (nvidia). Empty: any.");
  }

  std::unique_ptr<kubelet::DevicePlugin> Open(const PluginContext& context,
                                              kubelet::DevicePlugin*) override {
    options_.node = context.node;
    return std::make_unique<NvidiaPlugin>(
        options_, context.transport,
        [&kubelet = context.pod_resources] { return kubelet.Allocatable(); }, context.clock);
  }

 private:
  NvidiaPluginOptions options_;
};

}  // namespace

std::unique_ptr<DevicePluginStrategy> MakeNvidiaStrategy() {
  return std::make_unique<NvidiaStrategy>();
}

}  // namespace nos::agent
