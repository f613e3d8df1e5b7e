// Opens the driver's NVML library, for the agent and for commands on a machine with GPUs.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "device/driver_files.h"
#include "device/nvml_backend.h"

namespace nos::cmd {

// `path`: empty for $NOS_NVML_LIBRARY, the linker's search path, and then the driver's files on the
// host: without NVIDIA's container runtime the library is not among a container's own files.
// Errors: as NvmlLibrary::Open.
Result<std::unique_ptr<device::NvmlLibrary>> OpenNvml(const std::string& path,
                                                      const device::HostFolders& host);

}  // namespace nos::cmd
