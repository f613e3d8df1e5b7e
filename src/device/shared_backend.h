// Serializes calls of several threads to one backend. The state may change between a listing and an
// action on it, which callers of a Backend must handle anyway.
#pragma once

#include <mutex>

#include "device/backend.h"

namespace nos::device {

// Thread-safe.
class SharedBackend final : public Backend {
 public:
  // `backend` must outlive this, and be called only through this.
  explicit SharedBackend(Backend& backend) : backend_(backend) {}

  Result<std::vector<GpuInfo>> ListGpus() override {
    const std::scoped_lock lock(mutex_);
    return backend_.ListGpus();
  }
  Result<std::vector<GpuInstance>> ListInstances(int gpu) override {
    const std::scoped_lock lock(mutex_);
    return backend_.ListInstances(gpu);
  }
  Result<GpuInstance> Create(int gpu, const std::string& profile, uint8_t start) override {
    const std::scoped_lock lock(mutex_);
    return backend_.Create(gpu, profile, start);
  }
  Status Destroy(int gpu, uint32_t instance_id) override {
    const std::scoped_lock lock(mutex_);
    return backend_.Destroy(gpu, instance_id);
  }
  Status EnableMig(int gpu) override {
    const std::scoped_lock lock(mutex_);
    return backend_.EnableMig(gpu);
  }
  Status DisableMig(int gpu) override {
    const std::scoped_lock lock(mutex_);
    return backend_.DisableMig(gpu);
  }
  Status ResetGpu(int gpu) override {
    const std::scoped_lock lock(mutex_);
    return backend_.ResetGpu(gpu);
  }
  Status SetComputeMode(int gpu, ComputeMode mode) override {
    const std::scoped_lock lock(mutex_);
    return backend_.SetComputeMode(gpu, mode);
  }
  Status EnableMps(int gpu) override {
    const std::scoped_lock lock(mutex_);
    return backend_.EnableMps(gpu);
  }
  Status DisableMps(int gpu) override {
    const std::scoped_lock lock(mutex_);
    return backend_.DisableMps(gpu);
  }
  void GiveWhole(bool give) override {
    const std::scoped_lock lock(mutex_);
    backend_.GiveWhole(give);
  }
  std::vector<std::string> Adopt(std::span<const std::string> device_ids) override {
    const std::scoped_lock lock(mutex_);
    return backend_.Adopt(device_ids);
  }
  Readings MeasureGpu(int gpu) override {
    const std::scoped_lock lock(mutex_);
    return backend_.MeasureGpu(gpu);
  }
  Readings MeasureInstance(const GpuInstance& instance) override {
    const std::scoped_lock lock(mutex_);
    return backend_.MeasureInstance(instance);
  }

 private:
  std::mutex mutex_;
  Backend& backend_;
};

}  // namespace nos::device
