// Serializes calls of several threads to one backend. The state may change between a listing and an
// action on it, which callers of a Backend must handle anyway.
#pragma once

#include <mutex>
#include <utility>

#include "device/backend.h"

namespace nos::device {

// Thread-safe.
class SharedBackend final : public Backend {
 public:
  // `backend` must outlive this, and be called only through this.
  explicit SharedBackend(Backend& backend) : backend_(backend) {}

  Result<std::vector<GpuInfo>> ListGpus() override { return Locked(&Backend::ListGpus); }
  Result<std::vector<GpuInstance>> ListInstances(int gpu) override {
    return Locked(&Backend::ListInstances, gpu);
  }
  Result<GpuInstance> Create(int gpu, const std::string& profile, uint8_t start) override {
    return Locked(&Backend::Create, gpu, profile, start);
  }
  Status Destroy(int gpu, uint32_t instance_id) override {
    return Locked(&Backend::Destroy, gpu, instance_id);
  }
  Status EnableMig(int gpu) override { return Locked(&Backend::EnableMig, gpu); }
  Status DisableMig(int gpu) override { return Locked(&Backend::DisableMig, gpu); }
  Status ResetGpu(int gpu) override { return Locked(&Backend::ResetGpu, gpu); }
  Status SetComputeMode(int gpu, ComputeMode mode) override {
    return Locked(&Backend::SetComputeMode, gpu, mode);
  }
  Status EnableMps(int gpu) override { return Locked(&Backend::EnableMps, gpu); }
  Status DisableMps(int gpu) override { return Locked(&Backend::DisableMps, gpu); }
  void GiveWhole(bool give) override { Locked(&Backend::GiveWhole, give); }
  std::vector<std::string> Adopt(std::span<const std::string> device_ids) override {
    return Locked(&Backend::Adopt, device_ids);
  }
  Readings MeasureGpu(int gpu) override { return Locked(&Backend::MeasureGpu, gpu); }
  Readings MeasureInstance(const GpuInstance& instance) override {
    return Locked(&Backend::MeasureInstance, instance);
  }

 private:
  template <typename R, typename... P, typename... A>
  R Locked(R (Backend::*call)(P...), A&&... arguments) {
    const std::scoped_lock lock(mutex_);
    return (backend_.*call)(std::forward<A>(arguments)...);
  }

  std::mutex mutex_;
  Backend& backend_;
};

}  // namespace nos::device
