// Conditions that the agent writes into the status of its node.
#pragma once

#include <string_view>

namespace nos::agent {

// True if a reboot would change the MIG mode of a GPU.
inline constexpr std::string_view kRebootRequired = "nos.nebuly.com/RebootRequired";
// True if the node's GPUs are healthy; False with the problems otherwise.
inline constexpr std::string_view kGpusHealthy = "nos.nebuly.com/GpusHealthy";

// True if containers can be given the node's devices, with the way as reason; False with the
// problem otherwise.
inline constexpr std::string_view kDeviceHandover = "nos.nebuly.com/DeviceHandover";

}  // namespace nos::agent
