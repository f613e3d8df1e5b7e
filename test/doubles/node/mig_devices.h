// The devices that NVIDIA's device plugin finds on its node when it starts.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "kubelet/device_plugin.h"

namespace nos::doubles {

// All MIG devices that the driver's library reports now. Error: kUnavailable: it does not answer.
Result<std::vector<kubelet::OfferedDevice>> ReadMigDevices(const std::string& nvml_library);

}  // namespace nos::doubles
