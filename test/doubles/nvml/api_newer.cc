// Exported functions that old drivers lack. Signatures and answers: device/nvml_abi.h and its
// sources.
#include "driver.h"
#include "export.h"

namespace nos::nvml_double {

EXPORTED nvml::Return nvmlSystemGetDriverVersion(char* version, unsigned size) {
  return Run("nvmlSystemGetDriverVersion", -1, [&](const Context& context) {
    return PutString(context, context.state.driver, version, size);
  });
}

EXPORTED nvml::Return nvmlSystemGetCudaDriverVersion_v2(int* version) {
  return Run("nvmlSystemGetCudaDriverVersion_v2", -1, [&](const Context&) {
    *version = 13000;
    return nvml::kSuccess;
  });
}

EXPORTED nvml::Return nvmlDeviceGetGpuInstanceProfileInfoV(nvml::Device device, unsigned profile,
                                                           nvml::GpuInstanceProfileInfoV2* info) {
  if (info->version != nvml::StructVersion<nvml::GpuInstanceProfileInfoV2>(2)) {
    return nvml::kInvalidArgument;
  }
  return OnModel(
      "nvmlDeviceGetGpuInstanceProfileInfoV", device, [&](const Context& context, Gpu& gpu) {
        ProfileRow row;
        const nvml::Return code = FindRow(gpu, profile, row);
        if (code != nvml::kSuccess) return code;
        const nvml::GpuInstanceProfileInfo plain = GpuProfileInfo(*gpu.model, row);
        info->id = plain.id;
        info->p2p_supported = plain.p2p_supported;
        info->slice_count = plain.slice_count;
        info->instance_count = PutCount(context, plain.instance_count);
        info->multiprocessors = plain.multiprocessors;
        info->copy_engines = plain.copy_engines;
        info->decoders = plain.decoders;
        info->encoders = plain.encoders;
        info->jpegs = plain.jpegs;
        info->ofas = plain.ofas;
        info->memory_mib = plain.memory_mib;
        const std::string& name = gpu.model->profile(row.profile).name;
        const auto renamed = gpu.renames.find(name);
        return PutString(context, "MIG " + (renamed == gpu.renames.end() ? name : renamed->second),
                         info->name, sizeof info->name);
      });
}

}  // namespace nos::nvml_double
