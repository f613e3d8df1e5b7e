// What NVIDIA's device plugin reads of its node when it starts.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "kubelet/device_plugin.h"

namespace nos::doubles {

// All MIG devices that the driver's library tells of now. Error: kUnavailable: it cannot be asked.
Result<std::vector<kubelet::OfferedDevice>> ReadMigDevices(const std::string& nvml_library);

}  // namespace nos::doubles
