#include "cmd/cli/nvml_library.h"

#include <utility>

namespace nos::cmd {

Result<std::unique_ptr<device::NvmlLibrary>> OpenNvml(const std::string& path,
                                                      const device::HostFolders& host) {
  auto library = device::NvmlLibrary::Open(path);
  if (library.ok() || !path.empty()) return library;
  const auto driver = device::FindDriverFiles(host);
  if (!driver.ok()) return library;
  const std::string file = device::PathOf("libnvidia-ml.so.1", *driver, host);
  return file.empty() ? std::move(library) : device::NvmlLibrary::Open(file);
}

}  // namespace nos::cmd
