#include <algorithm>
#include <iterator>

#include "agent/sharing/mps/service.h"
#include "agent/sharing/strategies.h"
#include "agent/sharing_modes.h"
#include "cluster/annotations.h"

namespace nos::agent {

SharingModes AllSharingModes(const SharingOptions& options) {
  const auto mps = std::make_shared<MpsService>(options.mps, options.daemons);
  return {
      MakePartSharing(mps, options),
      MakeMpsSharing(mps, options),
      MakeMigModes(options),
      MakeHybridSharing(options),
  };
}

// Keys are in the order of use, top-down; a group stands where the lowest of its modes does.
void DescribeSharing(ConfigFields& fields, const SharingModes& modes, DevicePlugins& plugins) {
  for (auto mode = modes.rbegin(); mode != modes.rend(); ++mode) {
    const std::string_view section = (*mode)->section();
    const auto same = [&](const auto& other) { return other->section() == section; };
    if (std::any_of(std::next(mode), modes.rend(), same)) continue;
    fields.Group(section, [&] {
      for (auto one = modes.rbegin(); one != modes.rend(); ++one) {
        if (same(*one)) (*one)->Describe(fields, plugins);
      }
    });
  }
}

Status UsePlugin(const SharingModes& modes, const PluginTraits& plugin) {
  for (auto mode = modes.rbegin(); mode != modes.rend(); ++mode) {
    NOS_RETURN_IF_ERROR((*mode)->UsePlugin(plugin));
  }
  return Status::Ok();
}

SharingSettings SettingsOf(const SharingModes& modes, RequestedMode requested) {
  SharingSettings settings{.hybrid = requested.per_gpu};
  for (const auto& mode : modes) mode->AddSettings(settings);
  if (!requested.mps) {
    settings.shares = false;
    settings.time_slices = 0;
    settings.parts.clear();
  }
  return settings;
}

RequestedMode RequestedModeOf(const SharingModes& modes, const cluster::Node& node) {
  const auto label = cluster::RequestedSharingMode(node);
  for (const auto& mode : modes) {
    if (const auto found = mode->ModeOf(label)) return *found;
  }
  return {};
}

std::vector<std::unique_ptr<device::Backend>> StackBackends(const SharingModes& modes,
                                                            device::Backend& driver,
                                                            const ModeContext& context) {
  std::vector<std::unique_ptr<device::Backend>> stack;
  for (const auto& mode : modes) {
    device::Backend& top = stack.empty() ? driver : *stack.back();
    if (auto backend = mode->Decorate(top, context)) stack.push_back(std::move(backend));
  }
  return stack;
}

ShareDaemons* DaemonsOf(const SharingModes& modes) {
  for (const auto& mode : modes) {
    if (ShareDaemons* daemons = mode->Daemons()) return daemons;
  }
  return nullptr;
}

}  // namespace nos::agent
