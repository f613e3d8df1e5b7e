// Reads what GPUs and their instances measure, through NVML.
//
// Utilization comes from nvmlDeviceGetUtilizationRates, which no GPU in MIG mode answers; there,
// and for instances, from GPM (GPU performance monitoring; Hopper and later), whose counters are
// compared with those of the last reading. What takes long is not asked:
// nvmlDeviceGetPcieThroughput watches the bus for 20 ms a direction, so PCIe comes from GPM only.
// Not thread-safe. Needs an open session for all but its end.
#pragma once

#include <array>
#include <map>
#include <span>
#include <utility>

#include "device/backend.h"
#include "device/nvml/library.h"

namespace nos::device {

class NvmlMeter {
 public:
  // `library` must outlive this.
  explicit NvmlMeter(const NvmlLibrary& library) : library_(library) {}
  ~NvmlMeter() { Forget(); }
  NvmlMeter(const NvmlMeter&) = delete;
  NvmlMeter& operator=(const NvmlMeter&) = delete;

  Readings OfGpu(nvml::Device device, const GpuInfo& gpu);
  // `gpu`: the device that the instance is part of.
  Readings OfInstance(nvml::Device gpu, const GpuInstance& instance);

  // The next readings are first ones: of all, of one instance.
  void Forget();
  void ForgetInstance(int gpu, unsigned instance);

 private:
  using Key = std::pair<int, unsigned>;  // GPU and instance, which may be nvml::kNoInstance
  struct Wanted {
    unsigned id;  // nvml::kGpm*
    std::string_view metric;
    double divisor;  // from GPM's unit to ours
  };

  const nvml::Functions& call() const { return library_.call(); }
  void ReadMemory(nvml::Device device, Readings& readings) const;
  void ReadBoard(nvml::Device device, Readings& readings) const;
  void ReadProcesses(nvml::Device device, Readings& readings) const;
  std::string ProcessName(unsigned pid) const;
  static void TakeNone(std::span<const Wanted> wanted, const Status& why, Readings& readings);
  Status ReadGpm(nvml::Device device, Key key, std::span<const Wanted> wanted, Readings& readings);
  Result<nvml::GpmSample> Sample(nvml::Device device, unsigned instance) const;

  const NvmlLibrary& library_;
  std::map<Key, nvml::GpmSample> last_;
};

}  // namespace nos::device
