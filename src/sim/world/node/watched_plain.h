// The agent's view of a virtual node's whole GPUs and time slices, with the fault injection and
// checks that SimGpus' hooks provide for instances.
#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "device/mps_share.h"
#include "device/plain_gpus.h"
#include "device/sim_gpus.h"
#include "gpu/modes.h"

namespace nos::sim {

class WatchedPlain final : public device::PlainGpus {
 public:
  // `gpus` must outlive the object.
  WatchedPlain(device::Backend& gpus, device::SimHooks hooks)
      : PlainGpus(gpus), hooks_(std::move(hooks)) {}

  Result<device::GpuInstance> Create(int gpu, const std::string& profile, uint8_t start) override {
    if (IsPlain(profile)) {
      NOS_RETURN_IF_ERROR(Try({device::SimAttempt::Kind::kCreate, gpu, profile, start}));
    }
    return PlainGpus::Create(gpu, profile, start);
  }
  Status Destroy(int gpu, uint32_t instance_id) override {
    const auto instances = ListInstances(gpu);
    if (!instances.ok()) return instances.status();
    const auto there = std::ranges::find(*instances, instance_id, &device::GpuInstance::id);
    if (there != instances->end() && IsPlain(there->profile)) {
      NOS_RETURN_IF_ERROR(
          Try({device::SimAttempt::Kind::kDestroy, gpu, there->profile, there->start}));
      hooks_.on_destroy(*there);
    }
    return PlainGpus::Destroy(gpu, instance_id);
  }

 private:
  static bool IsPlain(const std::string& profile) {
    return !device::IsMigProfile(profile) && !device::ParseMpsProfile(profile) &&
           !gpu::ParsePartName(profile);
  }
  Status Try(const device::SimAttempt& attempt) const {
    if (hooks_.fault(attempt) == device::SimFault::kNone) return Status::Ok();
    return {Code::kUnavailable, "the GPU is not reached (injected)"};
  }

  device::SimHooks hooks_;
};

}  // namespace nos::sim
