#include "device/nvml_events.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "device/nvml/profiles.h"
#include "device/nvml_status.h"

namespace nos::device {
namespace {

using Clock = std::chrono::steady_clock;
constexpr unsigned kMaxGpus = 64;

// "" if the driver does not report it.
std::string UuidOf(const nvml::Functions& call, nvml::Device device) {
  char uuid[nvml::kUuidSize + 1] = {};
  const bool reported = call.nvmlDeviceGetUUID(device, uuid, nvml::kUuidSize) == nvml::kSuccess;
  return reported ? DriverString(uuid, nvml::kUuidSize) : "";
}

}  // namespace

std::optional<HealthCondition> ToCondition(const nvml::EventData& event, int gpu,
                                           const std::set<uint64_t>& harmless_xids) {
  HealthCondition condition;
  condition.gpu = gpu;
  if (event.gpu_instance != nvml::kNoInstance) condition.instance = event.gpu_instance;
  const std::string where = condition.instance
                                ? fmt::format("instance {} of GPU {}", *condition.instance, gpu)
                                : fmt::format("GPU {}", gpu);
  if (event.type == nvml::kEventXidCritical) {
    if (harmless_xids.contains(event.data)) return std::nullopt;
    condition.kind = HealthCondition::Kind::kXid;
    condition.xid = event.data;
    condition.message = fmt::format(
        "the driver reported Xid {} on {}: look it up at docs.nvidia.com/deploy/xid-errors, reset "
        "the GPU if it says so, then restart the agent",
        event.data, where);
    return condition;
  }
  if (event.type != nvml::kEventDoubleBitEcc) return std::nullopt;
  condition.kind = HealthCondition::Kind::kMemoryError;
  condition.message = fmt::format(
      "uncorrectable memory error on {}: drain it and reset the GPU, then restart the agent",
      where);
  return condition;
}

NvmlEvents::NvmlEvents(const NvmlLibrary& library, GpuHealth& board, Options options)
    : library_(library), board_(board), options_(std::move(options)), session_(library) {}

NvmlEvents::~NvmlEvents() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Status NvmlEvents::Start() {
  if (!library_.Has(nvml::Feature::kHealthEvents)) {
    return {Code::kUnimplemented, "this driver's NVML has no events: errors of GPUs go unnoticed"};
  }
  thread_ = std::thread([this] { Run(); });
  return Status::Ok();
}

NvmlEvents::Suspended::Suspended(NvmlEvents* events) : events_(events) {
  if (events_ == nullptr) return;
  std::unique_lock lock(events_->mutex_);
  events_->suspended_ += 1;
  events_->changed_.notify_all();
  events_->changed_.wait(lock, [this] { return !events_->holding_; });
}

NvmlEvents::Suspended::~Suspended() {
  if (events_ == nullptr) return;
  {
    const std::lock_guard lock(events_->mutex_);
    events_->suspended_ -= 1;
  }
  events_->changed_.notify_all();
}

void NvmlEvents::Run() {
  while (MayWork()) {
    if (set_ == nullptr && !Arm().ok()) {
      Release();
      Pause(options_.probe);  // the driver is not loaded (yet)
      continue;
    }
    WaitOnce();
    if (Clock::now() >= next_probe_) Probe();
  }
  Release();
}

// Blocks while suspended. False: the thread must end.
bool NvmlEvents::MayWork() {
  std::unique_lock lock(mutex_);
  if (suspended_ > 0 && !stop_) {
    lock.unlock();
    Release();
    lock.lock();
    holding_ = false;
    changed_.notify_all();
    changed_.wait(lock, [this] { return stop_ || suspended_ == 0; });
  }
  holding_ = !stop_;
  if (stop_) changed_.notify_all();
  return !stop_;
}

void NvmlEvents::Pause(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, time, [this] { return stop_ || suspended_ > 0; });
}

void NvmlEvents::Release() {
  if (set_ != nullptr) library_.call().nvmlEventSetFree(set_);
  set_ = nullptr;
  watched_.clear();
  session_.Close();
}

// Registers all GPUs that answer. Error: the event set cannot be created.
Status NvmlEvents::Arm() {
  NOS_RETURN_IF_ERROR(session_.Open());
  NOS_RETURN_IF_ERROR(ToStatus(library_.call().nvmlEventSetCreate(&set_), "nvmlEventSetCreate"));
  unsigned count = 0;
  if (!options_.only) {
    NOS_RETURN_IF_ERROR(
        ToStatus(library_.call().nvmlDeviceGetCount_v2(&count), "nvmlDeviceGetCount_v2"));
  }
  lost_.clear();
  if (options_.only) WatchGpu(*options_.only);
  for (unsigned gpu = 0; gpu < std::min(count, kMaxGpus); ++gpu) WatchGpu(static_cast<int>(gpu));
  next_probe_ = Clock::now() + options_.probe;
  return Status::Ok();
}

void NvmlEvents::WatchGpu(int gpu) {
  constexpr unsigned long long kWanted = nvml::kEventXidCritical | nvml::kEventDoubleBitEcc;
  const nvml::Functions& call = library_.call();
  nvml::Device device = nullptr;
  unsigned long long supported = 0;
  nvml::Return code = call.nvmlDeviceGetHandleByIndex_v2(static_cast<unsigned>(gpu), &device);
  if (code == nvml::kInvalidArgument) return;  // there is no such GPU any more
  if (code == nvml::kSuccess) code = call.nvmlDeviceGetSupportedEventTypes(device, &supported);
  if (code == nvml::kSuccess && (supported & kWanted) != 0) {
    code = call.nvmlDeviceRegisterEvents(device, supported & kWanted, set_);
  } else if (code == nvml::kSuccess) {
    code = nvml::kNotSupported;
  }
  if (code == nvml::kGpuIsLost) return MarkLost(gpu, ToStatus(code, "nvmlDeviceRegisterEvents"));
  board_.Clear(gpu, HealthCondition::Kind::kLost);
  if (code == nvml::kSuccess) {
    watched_.push_back({gpu, device, UuidOf(call, device)});
    return board_.Clear(gpu, HealthCondition::Kind::kUnwatched);
  }
  board_.Add({HealthCondition::Kind::kUnwatched,
              gpu,
              {},
              0,
              fmt::format("errors of GPU {} are not noticed: {}", gpu,
                          ToStatus(code, "nvmlDeviceRegisterEvents").message())});
}

void NvmlEvents::WaitOnce() {
  nvml::EventData event{};
  const nvml::Return code = library_.call().nvmlEventSetWait_v2(
      set_, &event, static_cast<unsigned>(options_.wait.count()));
  if (code == nvml::kSuccess) return Deliver(event);
  if (code == nvml::kTimeout) return;
  // A GPU is lost or the driver is unloaded. Find out which, then pause to avoid a tight loop.
  Probe();
  Release();
  Pause(options_.wait);
}

// A lost GPU returns NVML_ERROR_GPU_IS_LOST to calls that access the board, such as reading memory.
// A lost one that is back needs a new registration.
void NvmlEvents::Probe() {
  next_probe_ = Clock::now() + options_.probe;
  for (const Watched& watched : std::vector<Watched>(watched_)) {
    nvml::Memory memory{};
    const nvml::Return code = library_.call().nvmlDeviceGetMemoryInfo(watched.device, &memory);
    if (code == nvml::kGpuIsLost) MarkLost(watched.gpu, ToStatus(code, "nvmlDeviceGetMemoryInfo"));
  }
  if (!lost_.empty()) Release();
}

void NvmlEvents::Deliver(const nvml::EventData& event) {
  const std::string uuid = UuidOf(library_.call(), event.device);
  const auto from = std::find_if(watched_.begin(), watched_.end(), [&](const Watched& watched) {
    return watched.device == event.device || (!uuid.empty() && watched.uuid == uuid);
  });
  if (from == watched_.end()) return;
  auto condition = ToCondition(event, from->gpu, options_.harmless_xids);
  if (options_.on_xid && event.type == nvml::kEventXidCritical) {
    options_.on_xid(
        from->gpu, event.data,
        condition ? condition->message
                  : fmt::format("a program's fault, Xid {} on GPU {}", event.data, from->gpu));
  }
  if (condition) board_.Add(*std::move(condition));
}

void NvmlEvents::MarkLost(int gpu, const Status& why) {
  lost_.insert(gpu);
  board_.Add({HealthCondition::Kind::kLost,
              gpu,
              {},
              0,
              fmt::format("GPU {} does not answer: {}", gpu, why.message())});
}

}  // namespace nos::device
