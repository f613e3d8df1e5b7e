// All plugins, in execution order. To add a plugin, add a line in registry.cc, and a function for
// its arguments in arguments.h.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "scheduling/framework/config_value.h"
#include "scheduling/plugin.h"

namespace nos::scheduling {

// Properties of the profile that a plugin needs to know.
struct ProfileTraits {
  bool packs_gpus = false;  // GpuPacking scores: other scorers leave nodes with GPUs to it
  // GpuPartitioning filters: other filters leave MIG instances of managed nodes to it.
  bool partitions_gpus = false;
};

// The order of members is the one of the table.
struct RegisteredPlugin {  // NOLINT(clang-analyzer-optin.performance.Padding)
  std::string_view name;
  int weight;  // weight of its score in kube-scheduler's default profile; 0: does not score
  // `args`: the plugin's pluginConfig args, or an absent value. Problems are reported through
  // `args`; the returned plugin must then not be used.
  std::unique_ptr<const Plugin> (*make)(const ConfigValue& args, const ProfileTraits& traits);
  bool takes_args = false;
  bool ours = false;  // not part of kube-scheduler: "*" in a profile does not include it
  // Only for schedulers that partition GPUs themselves, not for simulations of other schedulers.
  bool partitions = false;
  // Its former name, which configurations may use for one more minor version.
  std::string_view deprecated_name = {};
};

std::span<const RegisteredPlugin> RegisteredPlugins();

}  // namespace nos::scheduling
