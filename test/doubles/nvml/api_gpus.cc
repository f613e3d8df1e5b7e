// The exported GPU functions. Signatures and answers: device/nvml_abi.h and its sources.
#include "driver.h"
#include "export.h"

namespace nos::nvml_double {
namespace {

// A GPU or one of its MIG devices.
Name NameOf(nvml::Device device) {
  const Name gpu = FromHandle(Handle::kGpu, device);
  return gpu.gpu >= 0 ? gpu : FromHandle(Handle::kMigDevice, device);
}

nvml::Return OnGpu(std::string_view call, nvml::Device device,
                   const std::function<nvml::Return(const Context&, Gpu&)>& body) {
  const Name name = NameOf(device);
  if (name.gpu < 0) return nvml::kInvalidArgument;
  return Run(call, name.gpu,
             [&](const Context& context) { return body(context, context.gpu(name.gpu)); });
}

bool IsGpu(nvml::Device device) { return FromHandle(Handle::kGpu, device).gpu >= 0; }

// Ampere needs a reset for the change; later architectures only need to be idle (nvml.h, MIG User
// Guide).
nvml::Return Activate(Gpu& gpu) {
  if (gpu.mig == gpu.mig_pending) return nvml::kSuccess;
  if (gpu.in_use || (gpu.mig && !gpu.instances.empty())) return nvml::kInUse;
  if (gpu.model->architecture() == "Ampere") return nvml::kResetRequired;
  gpu.mig = gpu.mig_pending;
  gpu.instances.clear();
  return nvml::kSuccess;
}

}  // namespace

EXPORTED nvml::Return nvmlInit_v2() { return Initialise(+1); }
EXPORTED nvml::Return nvmlShutdown() { return Initialise(-1); }

EXPORTED nvml::Return nvmlDeviceGetCount_v2(unsigned* count) {
  return Run("nvmlDeviceGetCount_v2", -1, [&](const Context& context) {
    *count = PutCount(context, context.state.gpus.size());
    return nvml::kSuccess;
  });
}

EXPORTED nvml::Return nvmlDeviceGetHandleByIndex_v2(unsigned index, nvml::Device* device) {
  if (index > 0xFF) return nvml::kInvalidArgument;
  const int gpu = static_cast<int>(index);
  return Run("nvmlDeviceGetHandleByIndex_v2", gpu, [&](const Context&) {
    *device = static_cast<nvml::Device>(ToHandle(Handle::kGpu, {gpu, 0, 0}));
    return nvml::kSuccess;
  });
}

EXPORTED nvml::Return nvmlDeviceGetUUID(nvml::Device device, char* uuid, unsigned size) {
  return OnGpu("nvmlDeviceGetUUID", device, [&](const Context& context, Gpu& gpu) {
    const Name name = NameOf(device);
    const bool whole = IsGpu(device);
    return PutString(context, whole ? gpu.uuid : MigUuid(gpu, name.instance, name.compute), uuid,
                     size);
  });
}

EXPORTED nvml::Return nvmlDeviceGetName(nvml::Device device, char* name, unsigned size) {
  return OnGpu("nvmlDeviceGetName", device, [&](const Context& context, Gpu& gpu) {
    return PutString(context, gpu.product, name, size);
  });
}

EXPORTED nvml::Return nvmlDeviceGetPciInfo_v3(nvml::Device device, nvml::PciInfo* pci) {
  return OnGpu("nvmlDeviceGetPciInfo_v3", device, [&](const Context& context, Gpu& gpu) {
    *pci = {};
    pci->bus = static_cast<unsigned>(NameOf(device).gpu) + 1;
    pci->device_id = gpu.pci_device_id;
    return PutString(context, "00000000:" + std::to_string(pci->bus) + ":00.0", pci->bus_id,
                     sizeof pci->bus_id);
  });
}

EXPORTED nvml::Return nvmlDeviceGetMemoryInfo(nvml::Device device, nvml::Memory* memory) {
  return OnGpu("nvmlDeviceGetMemoryInfo", device, [&](const Context&, Gpu& gpu) {
    const auto bytes = static_cast<unsigned long long>(gpu.memory_mib) << 20;
    const auto used = static_cast<unsigned long long>(ValueOf(gpu.readings, "memoryUsedMiB", 0) +
                                                      ValueOf(gpu.readings, "reservedMiB", 0))
                      << 20;
    *memory = {bytes, bytes - used, used};
    return nvml::kSuccess;
  });
}

EXPORTED nvml::Return nvmlDeviceGetMigMode(nvml::Device device, unsigned* current,
                                           unsigned* pending) {
  return OnGpu("nvmlDeviceGetMigMode", device, [&](const Context&, Gpu& gpu) {
    if (gpu.model == nullptr) return nvml::kNotSupported;
    *current = gpu.mig ? 1 : 0;
    *pending = gpu.mig_pending ? 1 : 0;
    return nvml::kSuccess;
  });
}

EXPORTED nvml::Return nvmlDeviceSetMigMode(nvml::Device device, unsigned mode,
                                           nvml::Return* activation) {
  return OnGpu("nvmlDeviceSetMigMode", device, [&](const Context& context, Gpu& gpu) {
    if (gpu.model == nullptr) return nvml::kNotSupported;
    if (mode > 1 || !IsGpu(device)) return nvml::kInvalidArgument;
    if (!context.state.root) return nvml::kNoPermission;
    gpu.mig_pending = mode == 1;
    *activation = Activate(gpu);
    return nvml::kSuccess;
  });
}

EXPORTED nvml::Return nvmlDeviceGetComputeMode(nvml::Device device, unsigned* mode) {
  return OnGpu("nvmlDeviceGetComputeMode", device, [&](const Context&, Gpu& gpu) {
    if (!IsGpu(device)) return nvml::kInvalidArgument;
    *mode = gpu.compute_mode;
    return nvml::kSuccess;
  });
}

// Takes effect at once; running programs continue. EXCLUSIVE_THREAD (1) is no longer supported.
EXPORTED nvml::Return nvmlDeviceSetComputeMode(nvml::Device device, unsigned mode) {
  return OnGpu("nvmlDeviceSetComputeMode", device, [&](const Context& context, Gpu& gpu) {
    if (mode > 3 || !IsGpu(device)) return nvml::kInvalidArgument;
    if (mode == 1) return nvml::kNotSupported;
    if (!context.state.root) return nvml::kNoPermission;
    gpu.compute_mode = mode;
    return nvml::kSuccess;
  });
}

EXPORTED nvml::Return nvmlDeviceGetMaxMigDeviceCount(nvml::Device device, unsigned* count) {
  return OnGpu("nvmlDeviceGetMaxMigDeviceCount", device, [&](const Context& context, Gpu& gpu) {
    *count = gpu.mig && gpu.model != nullptr ? PutCount(context, 64) : 0;
    return nvml::kSuccess;
  });
}

// Indices have holes: one index per possible GPU instance id.
EXPORTED nvml::Return nvmlDeviceGetMigDeviceHandleByIndex(nvml::Device device, unsigned index,
                                                          nvml::Device* mig_device) {
  return OnGpu("nvmlDeviceGetMigDeviceHandleByIndex", device, [&](const Context&, Gpu& gpu) {
    for (const Instance& instance : gpu.instances) {
      if (instance.id != index || instance.compute.empty()) continue;
      *mig_device = static_cast<nvml::Device>(ToHandle(
          Handle::kMigDevice, {NameOf(device).gpu, instance.id, instance.compute.front().id}));
      return nvml::kSuccess;
    }
    return nvml::kNotFound;
  });
}

EXPORTED nvml::Return nvmlDeviceGetGpuInstanceId(nvml::Device mig_device, unsigned* id) {
  return OnGpu("nvmlDeviceGetGpuInstanceId", mig_device, [&](const Context&, Gpu&) {
    if (IsGpu(mig_device)) return nvml::kInvalidArgument;
    *id = NameOf(mig_device).instance;
    return nvml::kSuccess;
  });
}

EXPORTED nvml::Return nvmlDeviceGetComputeInstanceId(nvml::Device mig_device, unsigned* id) {
  return OnGpu("nvmlDeviceGetComputeInstanceId", mig_device, [&](const Context&, Gpu&) {
    if (IsGpu(mig_device)) return nvml::kInvalidArgument;
    *id = NameOf(mig_device).compute;
    return nvml::kSuccess;
  });
}

}  // namespace nos::nvml_double
