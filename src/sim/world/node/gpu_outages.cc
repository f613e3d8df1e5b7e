#include "sim/world/node/gpu_outages.h"

#include <fmt/format.h>

namespace nos::sim {

using device::HealthCondition;

void GpuOutages::Note(const std::string& what) {
  last_ = env_.clock.Now();
  env_.log.Note(node_, what);
}

void GpuOutages::Lose(int gpu) {
  Note(fmt::format("loses GPU {}", gpu));
  gpus_->Lose(gpu);
  since_.emplace(gpu, env_.clock.Now());
}

void GpuOutages::Restore(int gpu) {
  Note(fmt::format("has GPU {} again", gpu));
  gpus_->Restore(gpu);
  if (!gpus_->Hangs(gpu)) since_.erase(gpu);
}

void GpuOutages::Hang(int gpu) {
  Note(fmt::format("gets no answer from GPU {}", gpu));
  gpus_->Hang(gpu);
  since_.emplace(gpu, env_.clock.Now());
}

void GpuOutages::Release(int gpu) {
  faults_.HangNoMore(gpu);
  if (!gpus_->Hangs(gpu)) return;
  Note(fmt::format("gets answers from GPU {} again", gpu));
  gpus_->Release(gpu);
  if (!gpus_->IsLost(gpu)) since_.erase(gpu);
}

// The agent does nothing else while it waits, so the disturbance ends only with that.
void GpuOutages::OnHang(int gpu, Duration waited) {
  last_ = env_.clock.Now() + waited;
  if (waited == Duration::zero()) return health_.Clear(gpu, HealthCondition::Kind::kHangs);
  ++hangs_;
  env_.log.Note(node_, fmt::format("waits in vain for GPU {}", gpu));
  since_.emplace(gpu, env_.clock.Now());
  health_.Add({HealthCondition::Kind::kHangs, gpu, std::nullopt, 0, "a call has not returned"});
}

}  // namespace nos::sim
