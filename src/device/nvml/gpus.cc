#include "device/nvml_gpus.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "device/nvml_status.h"

namespace nos::device {
namespace {

constexpr unsigned kMoreThanAny = 10'000;  // a count that no node has

NvmlEventOptions EventsOf(NvmlEventOptions options, int gpu) {
  options.only = gpu;
  return options;
}

class NvmlGpu final : public GpuAccess {
 public:
  NvmlGpu(const NvmlLibrary& library, const gpu::Catalogue& catalogue, GpuHealth& health,
          NvmlEventOptions events, GpuResetOptions reset, NvmlScope scope)
      : events_(library, health, std::move(events)),
        backend_(library, catalogue, &events_, std::move(reset), scope) {
    (void)events_.Start();  // a driver without events is reported once, not for each GPU
  }

  Backend& backend() override { return backend_; }
  void Rest(bool rest) override {
    if (rest == resting_.has_value()) return;
    resting_.reset();
    if (!rest) return;
    resting_.emplace(&events_);
    backend_.EndSession();
  }

 private:
  NvmlEvents events_;
  NvmlBackend backend_;
  std::optional<NvmlEvents::Suspended> resting_;  // last: the watcher must exist
};

}  // namespace

NvmlGpus::NvmlGpus(const NvmlLibrary& library, const gpu::Catalogue& catalogue, GpuHealth& health,
                   NvmlEventOptions events, GpuResetOptions reset)
    : library_(library),
      catalogue_(catalogue),
      health_(health),
      events_(std::move(events)),
      reset_(std::move(reset)) {}

Result<int> NvmlGpus::Count() {
  NvmlSession session(library_);
  nvml::Return code{};
  const Status opened = session.Open(&code);
  unsigned count = 0;
  if (opened.ok()) code = library_.call().nvmlDeviceGetCount_v2(&count);
  if (code == nvml::kLibRmVersionMismatch) outdated_ = true;
  NOS_RETURN_IF_ERROR(opened);
  NOS_RETURN_IF_ERROR(ToStatus(code, "nvmlDeviceGetCount_v2"));
  return static_cast<int>(std::min(count, kMoreThanAny));
}

std::unique_ptr<GpuAccess> NvmlGpus::Open(int gpu) {
  return std::make_unique<NvmlGpu>(library_, catalogue_, health_, EventsOf(events_, gpu), reset_,
                                   NvmlScope{gpu, &outdated_});
}

}  // namespace nos::device
