// The device plugin of nos.
#include "agent/device_plugin/strategies.h"
#include "kubelet/device_plugin_server.h"

namespace nos::agent {
namespace {

constexpr MetricFamily kRegistrations{MetricFamily::Kind::kCounter,
                                      "nos_agent_device_plugin_registrations_total",
                                      "Number of registrations with the kubelet since the start, "
                                      "by resource and result (ok or error)."};
constexpr MetricFamily kAllocations{
    MetricFamily::Kind::kCounter, "nos_agent_device_plugin_allocations_total",
    "Number of Allocate calls since the start, by resource and result (ok or refused)."};
constexpr MetricFamily kConnected{MetricFamily::Kind::kGauge, "nos_agent_device_plugin_connected",
                                  "1 while the kubelet watches the device list, by resource."};

class BuiltinStrategy final : public DevicePluginStrategy {
 public:
  std::string_view name() const override { return "builtin"; }
  PluginTraits traits() const override { return {.shares = true, .whole = true}; }

  void Describe(ConfigFields& fields) override {
    fields.Text("folder", options_.folder,
                "The kubelet's folder of device plugin sockets (builtin).");
    fields.Word(
        "handover", handover_, {"environment", "cdi"},
        "How devices are passed to containers (builtin): NVIDIA_VISIBLE_DEVICES, or CDI names.");
    fields.Text("cdiKind", options_.cdi_kind, "Vendor and class of CDI device names.");
  }

  std::unique_ptr<kubelet::DevicePlugin> Open(const PluginContext& context,
                                              kubelet::DevicePlugin*) override {
    const bool cdi = handover_ == "cdi";
    options_.handover = cdi ? kubelet::Handover::kCdi : kubelet::Handover::kEnvironment;
    options_.on_allocate = [look = context.look](const kubelet::Allocation&) { look(); };
    options_.grant = [modes = context.modes,
                      &backend = context.backend](const kubelet::Allocation& allocation)
        -> Result<std::optional<kubelet::ContainerGrant>> {
      for (const auto& mode : modes) {
        NOS_ASSIGN(auto grant, mode->Grant(allocation, backend));
        if (grant) return grant;
      }
      return std::optional<kubelet::ContainerGrant>();
    };
    for (const auto& mode : context.modes) {
      if (auto prefer = mode->Prefer()) options_.prefer = std::move(prefer);
    }
    auto server = std::make_unique<kubelet::DevicePluginServer>(options_);
    server_ = server.get();
    return server;
  }

  void Measure(Metrics& metrics) const override {
    for (const auto& [resource, counts] : server_->Counts()) {
      const auto count = [&](const MetricFamily& family, const char* result, uint64_t total) {
        metrics.CountTo(family, {{"resource", resource}, {"result", result}},
                        static_cast<double>(total));
      };
      count(kRegistrations, "ok", counts.registrations);
      count(kRegistrations, "error", counts.failed_registrations);
      count(kAllocations, "ok", counts.allocations);
      count(kAllocations, "refused", counts.refusals);
      metrics.Set(kConnected, {{"resource", resource}}, counts.connected ? 1 : 0);
    }
  }

 private:
  kubelet::DevicePluginOptions options_;
  std::string handover_ = "environment";
  const kubelet::DevicePluginServer* server_ = nullptr;
};

}  // namespace

std::unique_ptr<DevicePluginStrategy> MakeBuiltinStrategy() {
  return std::make_unique<BuiltinStrategy>();
}

}  // namespace nos::agent
