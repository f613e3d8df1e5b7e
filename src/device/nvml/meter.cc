#include "device/nvml/meter.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/text.h"
#include "device/nvml/profiles.h"
#include "device/nvml_status.h"

namespace nos::device {
namespace {

constexpr unsigned kMaxProcesses = 1024;  // limit for one GPU
constexpr unsigned kProcessNameSize = 256;
constexpr double kMiB = 1 << 20;

constexpr const char* kFirstReading = "the first reading has nothing to compare with";

// Calls a function that the library may lack.
template <typename Function, typename... Arguments>
Status Ask(const char* name, Function function, Arguments... arguments) {
  return ToStatus(function == nullptr ? nvml::kFunctionNotFound : function(arguments...), name);
}

#define NOS_ASK(function, ...) Ask(#function, call().function, __VA_ARGS__)

template <typename Number>
Result<double> Value(const Status& status, Number number, double divisor) {
  if (!status.ok()) return status;
  return static_cast<double>(number) / divisor;
}

}  // namespace

void NvmlMeter::Forget() {
  for (const auto& [key, sample] : last_) call().nvmlGpmSampleFree(sample);
  last_.clear();
}

void NvmlMeter::ForgetInstance(int gpu, unsigned instance) {
  const auto node = last_.extract({gpu, instance});
  if (!node.empty()) call().nvmlGpmSampleFree(node.mapped());
}

Readings NvmlMeter::OfGpu(nvml::Device device, const GpuInfo& gpu) {
  static constexpr Wanted kPcie[] = {{nvml::kGpmPcieTx, metric::kPcieTx, 1.0 / 1024},
                                     {nvml::kGpmPcieRx, metric::kPcieRx, 1.0 / 1024}};
  static constexpr Wanted kAll[] = {{nvml::kGpmGraphicsUtil, metric::kUtilization, 100},
                                    {nvml::kGpmDramUtil, metric::kMemoryUtilization, 100},
                                    kPcie[0],
                                    kPcie[1]};
  Readings readings;
  ReadMemory(device, readings);
  ReadBoard(device, readings);
  ReadProcesses(device, readings);
  nvml::Utilization rates{};
  const Status rated = NOS_ASK(nvmlDeviceGetUtilizationRates, device, &rates);
  readings.Take(metric::kUtilization, Value(rated, rates.gpu, 100));
  readings.Take(metric::kMemoryUtilization, Value(rated, rates.memory, 100));
  const std::span<const Wanted> wanted = rated.ok() ? std::span<const Wanted>(kPcie) : kAll;
  const Status by_gpm = ReadGpm(device, {gpu.index, nvml::kNoInstance}, wanted, readings);
  if (!by_gpm.ok()) TakeNone(wanted, by_gpm, readings);
  return readings;
}

Readings NvmlMeter::OfInstance(nvml::Device gpu, const GpuInstance& instance) {
  static constexpr Wanted kWanted[] = {{nvml::kGpmGraphicsUtil, metric::kUtilization, 100},
                                       {nvml::kGpmDramUtil, metric::kMemoryUtilization, 100}};
  Readings readings;
  nvml::Device device = nullptr;
  const Status found = NOS_ASK(nvmlDeviceGetHandleByUUID, instance.uuid.c_str(), &device);
  if (found.ok()) {
    ReadMemory(device, readings);
  } else {
    readings.Take(metric::kMemoryUsed, found);
    readings.Take(metric::kMemoryTotal, found);
  }
  const Status by_gpm = ReadGpm(gpu, {instance.gpu, instance.id}, kWanted, readings);
  if (!by_gpm.ok()) TakeNone(kWanted, by_gpm, readings);
  return readings;
}

void NvmlMeter::TakeNone(std::span<const Wanted> wanted, const Status& why, Readings& readings) {
  const bool elsewhere = why.code() == Code::kUnimplemented;
  for (const Wanted& each : wanted) {
    const bool reported = elsewhere && each.metric == metric::kUtilization;
    readings.Take(
        each.metric,
        reported ? Status(why.code(), why.message() + "; a DCGM exporter may report it") : why);
  }
}

// Like nvidia-smi: memory reserved by the driver does not count as used, if the driver reports it.
void NvmlMeter::ReadMemory(nvml::Device device, Readings& readings) const {
  nvml::MemoryV2 memory{};
  memory.version = nvml::StructVersion<nvml::MemoryV2>(2);
  Status read = NOS_ASK(nvmlDeviceGetMemoryInfo_v2, device, &memory);
  if (read.code() == Code::kUnimplemented) {
    nvml::Memory plain{};
    read = NOS_ASK(nvmlDeviceGetMemoryInfo, device, &plain);
    memory.used = plain.used;
    memory.total = plain.total;
  }
  readings.Take(metric::kMemoryUsed, Value(read, memory.used, kMiB));
  readings.Take(metric::kMemoryTotal, Value(read, memory.total, kMiB));
}

void NvmlMeter::ReadBoard(nvml::Device device, Readings& readings) const {
  unsigned number = 0;
  unsigned long long errors = 0;
  Status read = NOS_ASK(nvmlDeviceGetPowerUsage, device, &number);
  readings.Take(metric::kPower, Value(read, number, 1000));
  read = NOS_ASK(nvmlDeviceGetEnforcedPowerLimit, device, &number);
  readings.Take(metric::kPowerLimit, Value(read, number, 1000));
  read = NOS_ASK(nvmlDeviceGetTemperature, device, nvml::kTemperatureGpu, &number);
  readings.Take(metric::kTemperature, Value(read, number, 1));
  read = NOS_ASK(nvmlDeviceGetClockInfo, device, nvml::kClockSm, &number);
  readings.Take(metric::kSmClock, Value(read, number, 1));
  read = NOS_ASK(nvmlDeviceGetClockInfo, device, nvml::kClockMemory, &number);
  readings.Take(metric::kMemoryClock, Value(read, number, 1));
  read = NOS_ASK(nvmlDeviceGetTotalEccErrors, device, nvml::kEccCorrected, nvml::kEccVolatile,
                 &errors);
  readings.Take(metric::kEccCorrected, Value(read, errors, 1));
  read = NOS_ASK(nvmlDeviceGetTotalEccErrors, device, nvml::kEccUncorrected, nvml::kEccVolatile,
                 &errors);
  readings.Take(metric::kEccUncorrected, Value(read, errors, 1));
}

void NvmlMeter::ReadProcesses(nvml::Device device, Readings& readings) const {
  std::vector<nvml::ProcessInfo> found(kMaxProcesses);
  auto count = static_cast<unsigned>(found.size());
  Status read = NOS_ASK(nvmlDeviceGetComputeRunningProcesses_v3, device, &count, found.data());
  if (read.code() == Code::kUnimplemented) {
    count = static_cast<unsigned>(found.size());
    read = NOS_ASK(nvmlDeviceGetComputeRunningProcesses_v2, device, &count, found.data());
  }
  if (read.ok() && count > found.size()) {
    read = Internal(fmt::format("the driver says there are {} processes", count));
  }
  if (!read.ok()) {
    readings.unmeasured[std::string(metric::kProcesses)] = read.message();
    return;
  }
  found.resize(count);
  for (const nvml::ProcessInfo& info : found) {
    GpuProcess process{info.pid, ProcessName(info.pid), {}, {}};
    if (info.memory != nvml::kNoMemory)
      process.memory_mib = static_cast<int64_t>(info.memory >> 20);
    if (info.gpu_instance != nvml::kNoInstance) process.instance = info.gpu_instance;
    readings.processes.push_back(std::move(process));
  }
  std::ranges::sort(readings.processes, {}, &GpuProcess::pid);
}

std::string NvmlMeter::ProcessName(unsigned pid) const {
  char text[kProcessNameSize + 1] = {};
  if (!NOS_ASK(nvmlSystemGetProcessName, pid, text, kProcessNameSize).ok()) return "";
  const std::string whole = DriverString(text, kProcessNameSize);
  return whole.substr(whole.rfind('/') + 1);
}

Result<nvml::GpmSample> NvmlMeter::Sample(nvml::Device device, unsigned instance) const {
  if (!library_.Has(nvml::Feature::kGpm)) {
    return Status(
        Code::kUnimplemented,
        "not measurable here: the driver is too old for GPM; a DCGM exporter may report it");
  }
  nvml::GpmSupport support{nvml::kGpmVersion, 0};
  const nvml::Return asked = call().nvmlGpmQueryDeviceSupport(device, &support);
  if (asked == nvml::kNotSupported || (asked == nvml::kSuccess && support.supported == 0)) {
    return Status(Code::kUnimplemented,
                  "not measurable here: this GPU has no GPM, which begins with Hopper");
  }
  NOS_RETURN_IF_ERROR(ToStatus(asked, "nvmlGpmQueryDeviceSupport"));
  nvml::GpmSample sample = nullptr;
  NOS_RETURN_IF_ERROR(NOS_ASK(nvmlGpmSampleAlloc, &sample));
  const Status taken = instance == nvml::kNoInstance
                           ? NOS_ASK(nvmlGpmSampleGet, device, sample)
                           : NOS_ASK(nvmlGpmMigSampleGet, device, instance, sample);
  if (taken.ok()) return sample;
  call().nvmlGpmSampleFree(sample);
  return taken;
}

Status NvmlMeter::ReadGpm(nvml::Device device, Key key, std::span<const Wanted> wanted,
                          Readings& readings) {
  Result<nvml::GpmSample> sample = Sample(device, key.second);
  if (!sample.ok()) {
    ForgetInstance(key.first, key.second);
    return sample.status();
  }
  nvml::GpmSample& last = last_[key];
  const nvml::GpmSample before = std::exchange(last, *sample);
  if (before == nullptr) return {Code::kUnavailable, kFirstReading};
  const auto get = std::make_unique<nvml::GpmMetricsGet>();
  get->version = nvml::kGpmVersion;
  get->count = static_cast<unsigned>(wanted.size());
  get->first = before;
  get->second = last;
  for (size_t i = 0; i < wanted.size(); ++i) get->metrics[i].id = wanted[i].id;
  const Status read = NOS_ASK(nvmlGpmMetricsGet, get.get());
  call().nvmlGpmSampleFree(before);
  NOS_RETURN_IF_ERROR(read);
  for (size_t i = 0; i < wanted.size(); ++i) {
    const nvml::GpmMetric& got = get->metrics[i];
    readings.Take(wanted[i].metric,
                  Value(ToStatus(got.code, "nvmlGpmMetricsGet"), got.value, wanted[i].divisor));
  }
  return Status::Ok();
}

#undef NOS_ASK

}  // namespace nos::device
