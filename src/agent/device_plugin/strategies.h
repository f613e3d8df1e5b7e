// The device plugins that an agent can use. Each is defined in a file of its own.
#pragma once

#include <memory>

#include "agent/device_plugin.h"

namespace nos::agent {

std::unique_ptr<DevicePluginStrategy> MakeBuiltinStrategy();
std::unique_ptr<DevicePluginStrategy> MakeNvidiaStrategy();
std::unique_ptr<DevicePluginStrategy> MakeNebulyStrategy();

}  // namespace nos::agent
