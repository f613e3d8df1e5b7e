// Every plugin there is, in the order in which they run. A new one gets its line in registry.cc.
#pragma once

#include <memory>
#include <span>

#include "scheduling/plugin.h"

namespace nos::scheduling {

struct RegisteredPlugin {
  std::unique_ptr<const Plugin> (*make)();
  int weight;  // of its score
};

std::span<const RegisteredPlugin> RegisteredPlugins();

}  // namespace nos::scheduling
