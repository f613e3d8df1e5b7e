#include "doubles/node/mig_devices.h"

#include "device/nvml_backend.h"

namespace nos::doubles {

Result<std::vector<kubelet::OfferedDevice>> ReadMigDevices(const std::string& nvml_library) {
  NOS_ASSIGN(const auto library, device::NvmlLibrary::Open(nvml_library));
  const gpu::Catalogue& catalogue = gpu::Catalogue::Builtin();
  device::NvmlBackend backend(*library, catalogue);
  NOS_ASSIGN(const std::vector<device::GpuInfo> gpus, backend.ListGpus());
  std::vector<kubelet::OfferedDevice> devices;
  for (const device::GpuInfo& info : gpus) {
    const gpu::Model* model = device::ModelOf(info, catalogue);
    if (model == nullptr || !info.mig_enabled) continue;
    NOS_ASSIGN(const std::vector<device::GpuInstance> instances, backend.ListInstances(info.index));
    for (const device::GpuInstance& instance : instances) {
      const auto profile = model->FindProfile(instance.profile);
      if (!profile || !instance.complete) continue;
      devices.push_back({model->profile(*profile).resource_name, instance.uuid});
    }
  }
  return devices;
}

}  // namespace nos::doubles
