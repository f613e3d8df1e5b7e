// The exported functions for readings of GPUs and MIG devices. Signatures and answers:
// device/nvml_abi.h and its sources.
#include <memory>

#include "driver.h"
#include "export.h"

namespace nos::nvml_double {
namespace {

// Counters of a GPU or an instance at one time. For one owner thread.
struct Sample {
  bool taken = false;
  Name of;
  Values values;
};

Sample& SampleOf(nvml::GpmSample sample) { return *reinterpret_cast<Sample*>(sample); }

bool HasGpm(const Gpu& gpu) {
  return gpu.model != nullptr && gpu.model->architecture() != "Ampere";
}

nvml::Return OnDevice(std::string_view call, nvml::Device device,
                      const std::function<nvml::Return(const Context&, Gpu&)>& body) {
  Name name = FromHandle(Handle::kGpu, device);
  if (name.gpu < 0) return nvml::kInvalidArgument;
  return Run(call, name.gpu,
             [&](const Context& context) { return body(context, context.gpu(name.gpu)); });
}

template <typename Number>
nvml::Return Report(std::string_view call, nvml::Device device, const char* name, int64_t otherwise,
                    Number* answer) {
  return OnDevice(call, device, [&](const Context& context, Gpu& gpu) {
    const int64_t value = ValueOf(gpu.readings, name, otherwise);
    const bool hostile = context.fault != nullptr && context.fault->count;
    *answer = static_cast<Number>(hostile ? *context.fault->count : static_cast<uint64_t>(value));
    return nvml::kSuccess;
  });
}

nvml::Return PutMemory(int64_t total_mib, const Values& readings, nvml::MemoryV2* memory) {
  if (memory->version != nvml::StructVersion<nvml::MemoryV2>(2)) {
    return nvml::kArgumentVersionMismatch;
  }
  const auto bytes = [](int64_t mib) { return static_cast<unsigned long long>(mib) << 20; };
  memory->total = bytes(total_mib);
  memory->reserved = bytes(ValueOf(readings, "reservedMiB", 0));
  memory->used = bytes(ValueOf(readings, "memoryUsedMiB", 0));
  memory->free = memory->total - memory->reserved - memory->used;
  return nvml::kSuccess;
}

bool Answers(const Values& values, unsigned metric, double& value) {
  const auto take = [&](const char* name) {
    value = static_cast<double>(ValueOf(values, name, 0));
    return true;
  };
  if (metric == nvml::kGpmGraphicsUtil) return take("utilization");
  if (metric == nvml::kGpmDramUtil) return take("memoryUtilization");
  if (metric == nvml::kGpmPcieTx) return take("pcieTxMiB");
  return metric == nvml::kGpmPcieRx && take("pcieRxMiB");
}

}  // namespace

EXPORTED nvml::Return nvmlDeviceGetHandleByUUID(const char* uuid, nvml::Device* device) {
  const std::string wanted = uuid;
  return Run("nvmlDeviceGetHandleByUUID", -1, [&](const Context& context) {
    for (int index = 0; index < static_cast<int>(context.state.gpus.size()); ++index) {
      const Gpu& gpu = context.gpu(index);
      if (gpu.uuid == wanted) {
        *device = static_cast<nvml::Device>(ToHandle(Handle::kGpu, {index, 0, 0}));
        return nvml::kSuccess;
      }
      for (const Instance& instance : gpu.instances) {
        for (const ComputeInstance& compute : instance.compute) {
          if (MigUuid(gpu, instance.id, compute.id) != wanted) continue;
          *device = static_cast<nvml::Device>(
              ToHandle(Handle::kMigDevice, {index, instance.id, compute.id}));
          return nvml::kSuccess;
        }
      }
    }
    return nvml::kNotFound;
  });
}

EXPORTED nvml::Return nvmlDeviceGetUtilizationRates(nvml::Device device,
                                                    nvml::Utilization* utilization) {
  return OnDevice("nvmlDeviceGetUtilizationRates", device, [&](const Context& context, Gpu& gpu) {
    if (gpu.mig && gpu.model != nullptr) return nvml::kNotSupported;
    utilization->gpu = static_cast<unsigned>(ValueOf(gpu.readings, "utilization", 0));
    utilization->memory = static_cast<unsigned>(ValueOf(gpu.readings, "memoryUtilization", 0));
    if (context.fault != nullptr && context.fault->count) {
      utilization->gpu = static_cast<unsigned>(*context.fault->count);
    }
    return nvml::kSuccess;
  });
}

EXPORTED nvml::Return nvmlDeviceGetMemoryInfo_v2(nvml::Device device, nvml::MemoryV2* memory) {
  constexpr const char* kCall = "nvmlDeviceGetMemoryInfo_v2";
  const Name mig = FromHandle(Handle::kMigDevice, device);
  if (mig.gpu < 0) {
    return OnDevice(kCall, device, [&](const Context&, Gpu& gpu) {
      return PutMemory(gpu.memory_mib, gpu.readings, memory);
    });
  }
  return RunOnInstance(kCall, mig, [&](const Context&, Gpu& gpu, Instance& instance) {
    const int64_t total = gpu.model->profile(instance.placement.profile).memory_mib;
    return PutMemory(total, instance.readings, memory);
  });
}

EXPORTED nvml::Return nvmlDeviceGetPowerUsage(nvml::Device device, unsigned* milliwatts) {
  return Report("nvmlDeviceGetPowerUsage", device, "powerMilliwatts", 60'000, milliwatts);
}

EXPORTED nvml::Return nvmlDeviceGetEnforcedPowerLimit(nvml::Device device, unsigned* milliwatts) {
  return Report("nvmlDeviceGetEnforcedPowerLimit", device, "powerLimitMilliwatts", 400'000,
                milliwatts);
}

EXPORTED nvml::Return nvmlDeviceGetTemperature(nvml::Device device, unsigned sensor,
                                               unsigned* celsius) {
  if (sensor != nvml::kTemperatureGpu) return nvml::kInvalidArgument;
  return Report("nvmlDeviceGetTemperature", device, "temperature", 30, celsius);
}

EXPORTED nvml::Return nvmlDeviceGetClockInfo(nvml::Device device, unsigned clock,
                                             unsigned* megahertz) {
  if (clock != nvml::kClockSm && clock != nvml::kClockMemory) return nvml::kInvalidArgument;
  const bool sm = clock == nvml::kClockSm;
  return Report("nvmlDeviceGetClockInfo", device, sm ? "smClock" : "memoryClock", sm ? 345 : 1593,
                megahertz);
}

EXPORTED nvml::Return nvmlDeviceGetTotalEccErrors(nvml::Device device, unsigned error,
                                                  unsigned counter, unsigned long long* errors) {
  if (error > 1 || counter > 1) return nvml::kInvalidArgument;
  return Report("nvmlDeviceGetTotalEccErrors", device,
                error == nvml::kEccCorrected ? "eccCorrected" : "eccUncorrected", 0, errors);
}

EXPORTED nvml::Return nvmlDeviceGetComputeRunningProcesses_v3(nvml::Device device, unsigned* count,
                                                              nvml::ProcessInfo* processes) {
  return OnDevice(
      "nvmlDeviceGetComputeRunningProcesses_v3", device, [&](const Context& context, Gpu& gpu) {
        const unsigned room = *count;
        *count = PutCount(context, gpu.processes.size());
        if (room < gpu.processes.size()) return nvml::kInsufficientSize;
        for (const Process& process : gpu.processes) {
          const auto memory = process.memory_mib
                                  ? static_cast<unsigned long long>(*process.memory_mib) << 20
                                  : nvml::kNoMemory;
          *processes++ = {process.pid, memory, process.instance, nvml::kNoInstance};
        }
        return nvml::kSuccess;
      });
}

EXPORTED nvml::Return nvmlSystemGetProcessName(unsigned pid, char* name, unsigned size) {
  return Run("nvmlSystemGetProcessName", -1, [&](const Context& context) {
    for (const Gpu& gpu : context.state.gpus) {
      for (const Process& process : gpu.processes) {
        if (process.pid == pid) return PutString(context, process.name, name, size);
      }
    }
    return nvml::kNotFound;
  });
}

EXPORTED nvml::Return nvmlGpmQueryDeviceSupport(nvml::Device device, nvml::GpmSupport* support) {
  if (support->version != nvml::kGpmVersion) return nvml::kArgumentVersionMismatch;
  return OnDevice("nvmlGpmQueryDeviceSupport", device, [&](const Context&, Gpu& gpu) {
    support->supported = HasGpm(gpu) ? 1 : 0;
    return nvml::kSuccess;
  });
}

EXPORTED nvml::Return nvmlGpmSampleAlloc(nvml::GpmSample* sample) {
  *sample = reinterpret_cast<nvml::GpmSample>(std::make_unique<Sample>().release());
  return nvml::kSuccess;
}

EXPORTED nvml::Return nvmlGpmSampleFree(nvml::GpmSample sample) {
  const std::unique_ptr<Sample> owned(&SampleOf(sample));
  return nvml::kSuccess;
}

EXPORTED nvml::Return nvmlGpmSampleGet(nvml::Device device, nvml::GpmSample sample) {
  return OnDevice("nvmlGpmSampleGet", device, [&](const Context&, Gpu& gpu) {
    if (!HasGpm(gpu)) return nvml::kNotSupported;
    SampleOf(sample) = {true, FromHandle(Handle::kGpu, device), gpu.readings};
    return nvml::kSuccess;
  });
}

EXPORTED nvml::Return nvmlGpmMigSampleGet(nvml::Device device, unsigned instance,
                                          nvml::GpmSample sample) {
  return OnDevice("nvmlGpmMigSampleGet", device, [&](const Context&, Gpu& gpu) {
    if (!HasGpm(gpu) || !gpu.mig) return nvml::kNotSupported;
    for (const Instance& candidate : gpu.instances) {
      if (candidate.id != instance) continue;
      Name name = FromHandle(Handle::kGpu, device);
      name.instance = instance;
      SampleOf(sample) = {true, name, candidate.readings};
      return nvml::kSuccess;
    }
    return nvml::kInvalidArgument;
  });
}

EXPORTED nvml::Return nvmlGpmMetricsGet(nvml::GpmMetricsGet* get) {
  return Run("nvmlGpmMetricsGet", -1, [&](const Context&) {
    if (get->version != nvml::kGpmVersion) return nvml::kArgumentVersionMismatch;
    const Sample& first = SampleOf(get->first);
    const Sample& second = SampleOf(get->second);
    const bool comparable = first.taken && second.taken && &first != &second &&
                            first.of.gpu == second.of.gpu &&
                            first.of.instance == second.of.instance;
    if (!comparable || get->count > std::size(get->metrics)) return nvml::kInvalidArgument;
    for (unsigned i = 0; i < get->count; ++i) {
      nvml::GpmMetric& metric = get->metrics[i];
      const bool known = Answers(second.values, metric.id, metric.value);
      metric.code = known ? nvml::kSuccess : nvml::kNotSupported;
    }
    return nvml::kSuccess;
  });
}

}  // namespace nos::nvml_double
