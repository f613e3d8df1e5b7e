// Base of decorators: passes every call on to another backend.
//
//   class Quiet final : public ForwardingBackend {
//    public:
//     using ForwardingBackend::ForwardingBackend;
//     Status ResetGpu(int) override { return Status::Ok(); }  // all other calls reach `backend`
//   };
//
// It has the thread safety of the backend that it forwards to.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "device/backend.h"

namespace nos::device {

class ForwardingBackend : public Backend {
 public:
  // `backend` must outlive this.
  explicit ForwardingBackend(Backend& backend) : backend_(backend) {}

  Result<std::vector<GpuInfo>> ListGpus() override { return backend_.ListGpus(); }
  Result<std::vector<GpuInstance>> ListInstances(int gpu) override {
    return backend_.ListInstances(gpu);
  }
  Result<GpuInstance> Create(int gpu, const std::string& profile, uint8_t start) override {
    return backend_.Create(gpu, profile, start);
  }
  Status Destroy(int gpu, uint32_t instance_id) override {
    return backend_.Destroy(gpu, instance_id);
  }
  Status EnableMig(int gpu) override { return backend_.EnableMig(gpu); }
  Status DisableMig(int gpu) override { return backend_.DisableMig(gpu); }
  Status ResetGpu(int gpu) override { return backend_.ResetGpu(gpu); }
  Status SetComputeMode(int gpu, ComputeMode mode) override {
    return backend_.SetComputeMode(gpu, mode);
  }
  Status EnableMps(int gpu) override { return backend_.EnableMps(gpu); }
  Status DisableMps(int gpu) override { return backend_.DisableMps(gpu); }
  void GiveWhole(bool give) override { backend_.GiveWhole(give); }
  std::vector<std::string> Adopt(std::span<const std::string> device_ids) override {
    return backend_.Adopt(device_ids);
  }
  Readings MeasureGpu(int gpu) override { return backend_.MeasureGpu(gpu); }
  Readings MeasureInstance(const GpuInstance& instance) override {
    return backend_.MeasureInstance(instance);
  }

 protected:
  Backend& backend() const { return backend_; }

 private:
  Backend& backend_;
};

}  // namespace nos::device
