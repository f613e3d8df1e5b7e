#include "cmd/daemons/agent_driver.h"

#include <cstdlib>
#include <utility>

#include "base/log.h"
#include "base/text.h"

namespace nos::cmd {

void StopNotice::Use(device::BoundedGpus* gpus) {
  const std::lock_guard lock(mutex_);
  gpus_ = gpus;
  if (gpus_ != nullptr && given_) gpus_->Hurry();
}

void StopNotice::Give() {
  const std::lock_guard lock(mutex_);
  given_ = true;
  if (gpus_ != nullptr) gpus_->Hurry();
}

AgentDriver::AgentDriver(std::shared_ptr<device::GpuDriver> driver, device::GpuHealth& health,
                         device::BoundedCallOptions options) {
  options.left_behind = [this] { left_behind_ = true; };
  gpus_ = std::make_unique<device::BoundedGpus>(std::move(driver), health, std::move(options));
}

AgentDriver::~AgentDriver() {
  gpus_.reset();
  if (!left_behind_) return;
  Log(LogLevel::kWarn, "ending the process while a call to the driver has not returned");
  std::_Exit(code_);
}

Status AgentDriver::Answers() const {
  if (!gpus_->AllHang()) return Status::Ok();
  return {Code::kUnavailable, Join(gpus_->Hanging(), "; ")};
}

}  // namespace nos::cmd
