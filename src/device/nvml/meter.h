// Reads metrics of GPUs and their instances through NVML.
//
// Utilization comes from nvmlDeviceGetUtilizationRates, which fails for a GPU in MIG mode. For
// those GPUs and for instances it comes from GPM (GPU performance monitoring; Hopper and later),
// whose counters are compared with those of the last reading. Slow calls are avoided:
// nvmlDeviceGetPcieThroughput samples the bus for 20 ms per direction, so PCIe comes from GPM only.
// Not thread-safe. All calls except the destructor need an open session.
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
  // `gpu`: the device that contains the instance.
  Readings OfInstance(nvml::Device gpu, const GpuInstance& instance);

  // Drops the stored counters of all, or of one instance: the next reading is a first one.
  void Forget();
  void ForgetInstance(int gpu, unsigned instance);

 private:
  using Key = std::pair<int, unsigned>;  // GPU and instance (or nvml::kNoInstance)
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
