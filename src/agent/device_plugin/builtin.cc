// The device plugin of nos.
#include <atomic>
#include <map>
#include <utility>

#include "agent/conditions.h"
#include "agent/device_plugin/handover.h"
#include "agent/device_plugin/host_devices.h"
#include "agent/device_plugin/strategies.h"
#include "agent/metrics.h"
#include "base/log.h"
#include "base/text.h"
#include "device/driver_files.h"
#include "kubelet/device_plugin_server.h"
#include "kubelet/pod_cgroups.h"

namespace nos::agent {
namespace {

constexpr size_t kMaxMessage = 1000;  // bytes

std::string NameOf(kubelet::Handover handover) {
  switch (handover) {
    case kubelet::Handover::kCdi:
      return "cdi";
    case kubelet::Handover::kNodes:
      return "devices";
    case kubelet::Handover::kEnvironment:
      break;
  }
  return "environment";
}

// The reason of condition kDeviceHandover.
std::string ReasonOf(kubelet::Handover handover) {
  switch (handover) {
    case kubelet::Handover::kCdi:
      return "ContainerDeviceInterface";
    case kubelet::Handover::kNodes:
      return "DeviceNodes";
    case kubelet::Handover::kEnvironment:
      break;
  }
  return "EnvironmentVariable";
}

std::string RemedyFor(kubelet::Handover handover) {
  std::string remedy = "; no new pod gets the device until then";
  if (handover == kubelet::Handover::kCdi) {
    remedy += " (devicePlugin.handover: devices needs no CDI specification)";
  }
  return remedy;
}

// Opens the plugin with the first offer, when the agent has seen its node. An error is that of the
// offer, which the agent repeats.
class LatePlugin final : public kubelet::DevicePlugin {
 public:
  using Open = std::function<Result<std::unique_ptr<kubelet::DevicePlugin>>()>;
  explicit LatePlugin(Open open) : open_(std::move(open)) {}

  Status Offer(const std::vector<kubelet::OfferedDevice>& devices) override {
    if (plugin_ == nullptr) {
      NOS_ASSIGN(plugin_, open_());
    }
    return plugin_->Offer(devices);
  }
  bool IsStale() const override { return plugin_ != nullptr && plugin_->IsStale(); }
  bool RefuseAllocation(const std::string& device_id) override {
    return plugin_ == nullptr || plugin_->RefuseAllocation(device_id);
  }
  void Avoid(const std::map<std::string, std::string>& users) override {
    if (plugin_ != nullptr) plugin_->Avoid(users);
  }
  bool Shows(const std::string& device_id) const override {
    return plugin_ == nullptr || plugin_->Shows(device_id);
  }

 private:
  Open open_;
  std::unique_ptr<kubelet::DevicePlugin> plugin_;
};

// Prepares the hand-over of devices before the kubelet hears of them, and ends it after.
class PreparedPlugin final : public kubelet::DevicePlugin {
 public:
  PreparedPlugin(std::unique_ptr<kubelet::DevicePlugin> plugin, HostDevices& files)
      : plugin_(std::move(plugin)), files_(files) {}

  Status Offer(const std::vector<kubelet::OfferedDevice>& devices) override {
    std::vector<kubelet::OfferedDevice> offer = devices;
    if (Status prepared = files_.Update(offer, /*keep=*/true); !prepared.ok()) {
      // No pod may get a device that its container would not have.
      for (kubelet::OfferedDevice& device : offer) device.healthy = false;
      (void)plugin_->Offer(offer);
      return prepared;
    }
    NOS_RETURN_IF_ERROR(plugin_->Offer(offer));
    return files_.Update(offer, /*keep=*/false);
  }
  bool IsStale() const override { return files_.IsStale(); }
  bool RefuseAllocation(const std::string& device_id) override {
    return plugin_->RefuseAllocation(device_id);
  }
  void Avoid(const std::map<std::string, std::string>& users) override { plugin_->Avoid(users); }
  bool Shows(const std::string& device_id) const override { return plugin_->Shows(device_id); }

 private:
  std::unique_ptr<kubelet::DevicePlugin> plugin_;
  HostDevices& files_;
};

class BuiltinStrategy final : public DevicePluginStrategy {
 public:
  std::string_view name() const override { return "builtin"; }
  PluginTraits traits() const override { return {.shares = true, .whole = true}; }

  void Describe(ConfigFields& fields) override {
    fields.Text("folder", options_.folder,
                "The kubelet's folder of device plugin sockets (builtin).");
    fields.Word("handover", handover_, {"auto", "cdi", "devices", "environment"},
                "How devices are passed to containers (builtin): CDI names, device nodes and files "
                "by the kubelet, or NVIDIA_VISIBLE_DEVICES for NVIDIA's container runtime. auto "
                "chooses by what the node has; the node's condition "
                "nos.nebuly.com/DeviceHandover says which and why.");
    fields.Text("cdiFolder", cdi_folder_, "Folder of CDI specifications.");
    fields.Text("runtimeSocket", runtime_socket_,
                "Socket of the node's containerd, by which the agent reads whether CDI is enabled. "
                "Empty: the distributions' sockets, if driverRootOnHost is the host's root.");
    fields.Text("cdiKind", options_.cdi_kind,
                "Vendor and class of CDI device names. With another value than nos.nebuly.com/gpu "
                "another program has to write the specification.");
  }

  std::unique_ptr<kubelet::DevicePlugin> Open(const PluginContext& context,
                                              kubelet::DevicePlugin*) override {
    return std::make_unique<LatePlugin>([this, context] { return OpenChosen(context); });
  }

  std::optional<reconcile::WantedCondition> Handover() const override {
    const std::string type(kDeviceHandover);
    if (!unread_.empty()) {
      return reconcile::WantedCondition{type, "False", "SpecificationNotRead",
                                        Shortened(unread_, kMaxMessage)};
    }
    if (!choice_) return std::nullopt;
    const auto problem = files_ == nullptr ? std::nullopt : files_->problem();
    if (!problem) {
      return reconcile::WantedCondition{type, "True", ReasonOf(choice_->handover), choice_->why};
    }
    return reconcile::WantedCondition{
        type, "False", problem->reason,
        Shortened(problem->message + RemedyFor(choice_->handover), kMaxMessage)};
  }

  void Measure(Metrics& metrics) const override {
    const kubelet::DevicePluginServer* server = server_;
    if (server == nullptr) return;
    for (const auto& [resource, counts] : server->Counts()) {
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
  Result<std::unique_ptr<kubelet::DevicePlugin>> OpenChosen(const PluginContext& context) {
    NOS_ASSIGN(choice_, Choose(context));
    Log(LogLevel::kInfo, "chose how containers get their devices",
        {{"handover", NameOf(choice_->handover)}, {"why", choice_->why}});
    options_.handover = choice_->handover;
    const bool own_kind = options_.cdi_kind == kCdiKind;
    const bool writes = choice_->handover == kubelet::Handover::kCdi && own_kind;
    if (writes || choice_->handover == kubelet::Handover::kNodes) {
      files_ =
          std::make_unique<HostDevices>(context.backend, context.host, writes ? cdi_folder_ : "");
      options_.files = [files = files_.get()](const std::vector<std::string>& visible) {
        return files->FilesOf(visible);
      };
    }
    options_.cgroups = &cgroups_;
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
    std::vector<std::function<std::vector<std::string>(const kubelet::Choice&)>> prefers;
    for (const auto& mode : context.modes) {
      if (auto prefer = mode->Prefer()) prefers.push_back(std::move(prefer));
    }
    options_.prefer = [prefers = std::move(prefers)](const kubelet::Choice& choice) {
      for (const auto& prefer : prefers) {
        if (auto preferred = prefer(choice); !preferred.empty()) return preferred;
      }
      return std::vector<std::string>();
    };
    auto server = std::make_unique<kubelet::DevicePluginServer>(options_);
    server_ = server.get();
    if (files_ == nullptr) return std::unique_ptr<kubelet::DevicePlugin>(std::move(server));
    return std::unique_ptr<kubelet::DevicePlugin>(
        std::make_unique<PreparedPlugin>(std::move(server), *files_));
  }

  Result<HandoverChoice> Choose(const PluginContext& context) {
    constexpr const char* kConfigured = "the configuration says so";
    if (handover_ == "devices") return HandoverChoice{kubelet::Handover::kNodes, kConfigured};
    if (handover_ == "environment") {
      return HandoverChoice{kubelet::Handover::kEnvironment, kConfigured};
    }
    kube::Client client(context.transport);
    NOS_ASSIGN(const Json node, client.Get(kube::kNodes, "", context.node));
    HandoverFacts facts;
    facts.runtime = FindString(node, "status", "nodeInfo", "containerRuntimeVersion");
    facts.kubelet = FindString(node, "status", "nodeInfo", "kubeletVersion");
    facts.reads_cdi = ReadsCdi(facts.runtime, SocketsOfContainerd(runtime_socket_, context.host));
    if (handover_ == "cdi") {
      NOS_RETURN_IF_ERROR(CheckCdi(facts));
      return HandoverChoice{kubelet::Handover::kCdi, kConfigured};
    }
    // While a given folder has no driver, the agent offers no device: its container may not be up
    // yet, and NVIDIA's container runtime need not be the default one.
    facts.host_files = context.host.driver != "/" || device::FindDriverFiles(context.host).ok();
    return ChooseHandover(facts);
  }

  // Without a reader of specifications a container starts without its device. Error: kUnavailable.
  Status CheckCdi(const HandoverFacts& facts) {
    unread_ = WhyNoCdi(facts);
    if (unread_.empty()) return Status::Ok();
    unread_ += "; no new pod gets a device until that changes, or devicePlugin.handover is auto";
    return {Code::kUnavailable, unread_};
  }

  kubelet::DevicePluginOptions options_ = [] {
    kubelet::DevicePluginOptions options;
    options.cdi_kind = kCdiKind;
    return options;
  }();
  std::string handover_ = "auto", cdi_folder_ = "/var/run/cdi", runtime_socket_;
  kubelet::CgroupFolder cgroups_;
  std::optional<HandoverChoice> choice_;  // none before the first offer
  std::string unread_;  // why devices cannot be handed over by CDI, as configured; "": they can
  std::unique_ptr<HostDevices> files_;
  // Null before the first offer. Read by the thread that serves metrics, too.
  std::atomic<const kubelet::DevicePluginServer*> server_ = nullptr;
};

}  // namespace

std::unique_ptr<DevicePluginStrategy> MakeBuiltinStrategy() {
  return std::make_unique<BuiltinStrategy>();
}

}  // namespace nos::agent
