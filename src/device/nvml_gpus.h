// Real GPUs for BoundedGpus: an NVML session, a backend and a watcher of errors for each GPU, so
// that a call that never returns stops nothing of another GPU.
//
//   auto driver = std::make_shared<NvmlGpus>(*library, catalogue, health);
//   BoundedGpus gpus(driver, health);
//
// NVML is thread-safe (NVML API reference: "simultaneous NVML calls from multiple threads are
// allowed") and counts sessions, so the driver stays open while any of them is.
#pragma once

#include <atomic>
#include <memory>

#include "device/bounded_gpus.h"
#include "device/nvml_backend.h"

namespace nos::device {

class NvmlGpus final : public GpuDriver {
 public:
  // Errors of GPUs are reported to `health`. All references must outlive this and all its GPUs.
  NvmlGpus(const NvmlLibrary& library, const gpu::Catalogue& catalogue, GpuHealth& health,
           NvmlEventOptions events = {}, GpuResetOptions reset = {});

  Result<int> Count() override;
  std::unique_ptr<GpuAccess> Open(int gpu) override;
  // As NvmlBackend::outdated, for any GPU.
  bool outdated() const { return outdated_; }

 private:
  const NvmlLibrary& library_;
  const gpu::Catalogue& catalogue_;
  GpuHealth& health_;
  const NvmlEventOptions events_;
  const GpuResetOptions reset_;
  std::atomic<bool> outdated_ = false;
};

}  // namespace nos::device
