#include <algorithm>

#include "agent/device_plugin.h"
#include "agent/device_plugin/strategies.h"

namespace nos::agent {

// The first one is the default.
DevicePlugins::DevicePlugins() {
  all_.push_back(MakeBuiltinStrategy());
  all_.push_back(MakeNvidiaStrategy());
  all_.push_back(MakeNebulyStrategy());
  name_ = all_.front()->name();
}

std::vector<std::string> DevicePlugins::Names(bool only_shares) const {
  std::vector<std::string> names;
  for (const auto& plugin : all_) {
    const bool fits = plugin->OnlyShares() == only_shares || plugin == all_.front();
    if (fits) names.emplace_back(plugin->name());
  }
  return names;
}

DevicePluginStrategy& DevicePlugins::Named(std::string_view name) const {
  return **std::ranges::find(all_, name, [](const auto& plugin) { return plugin->name(); });
}

void DevicePlugins::Describe(ConfigFields& fields) {
  fields.Group("devicePlugin", [&] {
    fields.Word("mode", name_, Names(/*only_shares=*/false),
                "Device plugin that offers MIG devices to the kubelet: builtin (nos), or nvidia, "
                "which is restarted when devices change.");
    for (const auto& plugin : all_) {
      if (!plugin->OnlyShares()) plugin->Describe(fields);
    }
  });
}

void DevicePlugins::DescribeForShares(ConfigFields& fields, std::string& name) {
  fields.Word("plugin", name, Names(/*only_shares=*/true),
              "Device plugin that offers shares and runs the MPS daemon: builtin (nos), or nebuly, "
              "which is configured by a ConfigMap. With nebuly only overheadMiB and clientsPerGpu "
              "have effect.");
  for (const auto& plugin : all_) {
    if (plugin->OnlyShares()) plugin->Describe(fields);
  }
}

DevicePluginStrategy& DevicePlugins::Choose(const SharingModes& modes) {
  chosen_ = {&Named(name_)};
  for (const auto& mode : modes) {
    if (mode->plugin().empty()) continue;
    if (Named(mode->plugin()).OnlyShares()) chosen_.push_back(&Named(mode->plugin()));
  }
  return *chosen_.back();
}

std::vector<std::unique_ptr<kubelet::DevicePlugin>> DevicePlugins::Open(
    const PluginContext& context) {
  std::vector<std::unique_ptr<kubelet::DevicePlugin>> open;
  open.reserve(chosen_.size());
  for (DevicePluginStrategy* plugin : chosen_) {
    open.push_back(plugin->Open(context, open.empty() ? nullptr : open.back().get()));
  }
  return open;
}

std::optional<reconcile::WantedCondition> DevicePlugins::Handover() const {
  for (const DevicePluginStrategy* plugin : chosen_) {
    if (auto wanted = plugin->Handover()) return wanted;
  }
  return std::nullopt;
}

void DevicePlugins::Measure(Metrics& metrics) const {
  for (const DevicePluginStrategy* plugin : chosen_) plugin->Measure(metrics);
}

}  // namespace nos::agent
