// The agent's view of a virtual node's MPS shares, with the fault injection and checks that
// SimGpus' hooks provide for instances.
#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "device/mps_gpus.h"
#include "device/sim_gpus.h"

namespace nos::sim {

class WatchedShares final : public device::MpsGpus {
 public:
  // `gpus` must outlive the object.
  WatchedShares(device::Backend& gpus, device::MpsGpusOptions options, device::SimHooks hooks)
      : MpsGpus(gpus, options), hooks_(std::move(hooks)) {}

  Result<device::GpuInstance> Create(int gpu, const std::string& profile, uint8_t start) override {
    if (device::ParseMpsProfile(profile)) {
      NOS_RETURN_IF_ERROR(Try({device::SimAttempt::Kind::kCreate, gpu, profile, start}));
    }
    return MpsGpus::Create(gpu, profile, start);
  }
  Status Destroy(int gpu, uint32_t instance_id) override {
    const std::vector<device::GpuInstance> shares = SharesOn(gpu);
    const auto share = std::ranges::find(shares, instance_id, &device::GpuInstance::id);
    if (share != shares.end()) {
      NOS_RETURN_IF_ERROR(
          Try({device::SimAttempt::Kind::kDestroy, gpu, share->profile, share->start}));
      hooks_.on_destroy(*share);
    }
    return MpsGpus::Destroy(gpu, instance_id);
  }

 private:
  Status Try(const device::SimAttempt& attempt) const {
    if (hooks_.fault(attempt) == device::SimFault::kNone) return Status::Ok();
    return {Code::kUnavailable, "the share is not reached (injected)"};
  }

  device::SimHooks hooks_;
};

}  // namespace nos::sim
