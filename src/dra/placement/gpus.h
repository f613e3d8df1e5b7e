// The GPUs of the devices of a pool: which device is which part of which GPU.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "dra/placement/nvidia.h"

namespace nos::dra {

struct GpuPlace {
  static constexpr uint32_t kNoGpu = 0xffff'ffff;
  static constexpr gpu::PlacementId kWhole = 0xff, kUnknown = 0xfe;
  uint32_t gpu = kNoGpu;
  gpu::PlacementId placement = kUnknown;  // or kWhole
};

class GpuTable {
 public:
  explicit GpuTable(std::shared_ptr<GpuReader> reader) : reader_(std::move(reader)) {}

  // The next device.
  void Add(const ResourceSlice& slice, const Device& device);

  const std::shared_ptr<GpuReader>& reader() const { return reader_; }
  // By the order of Add.
  const GpuPlace& at(size_t device) const { return places_[device]; }
  // The rule of each GPU; the index is GpuPlace::gpu.
  const std::vector<const GpuRule*>& rules() const { return rules_; }

 private:
  std::shared_ptr<GpuReader> reader_;
  std::vector<GpuPlace> places_;
  std::vector<const GpuRule*> rules_;
  std::unordered_map<Name, uint32_t> gpus_;  // by UUID
};

}  // namespace nos::dra
