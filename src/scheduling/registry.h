// Every plugin there is, in the order in which they run. A new one gets its line in registry.cc,
// and what it can be told its function in arguments.h.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "scheduling/framework/config_value.h"
#include "scheduling/plugin.h"

namespace nos::scheduling {

// What else a plugin must know of the profile that it is in.
struct ProfileTraits {
  bool packs_gpus = false;  // GpuPacking scores: others leave nodes with GPUs to it
  bool cuts_gpus = false;   // GpuCutting filters: others leave MIG instances of managed nodes to it
};

struct RegisteredPlugin {
  std::string_view name;
  int weight;  // of its score, in kube-scheduler's default profile; 0: it does not score
  // With the `args` of a pluginConfig, or an absent value. What is wrong with them is told through
  // `args`; the plugin is of no use then.
  std::unique_ptr<const Plugin> (*make)(const ConfigValue& args, const ProfileTraits& traits);
  bool takes_args = false;
  bool ours = false;  // not one of kube-scheduler's: "*" in a profile does not mean it
  // Only where the scheduler has GPUs cut itself, not where another one is simulated.
  bool cuts = false;
};

std::span<const RegisteredPlugin> RegisteredPlugins();

}  // namespace nos::scheduling
