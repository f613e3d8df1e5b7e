#include "device/sim_gpus.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/uuid.h"
#include "device/simulated/load.h"
#include "gpu/shares.h"

namespace nos::device {
namespace {

uint32_t LowestFreeId(const std::vector<GpuInstance>& instances) {
  uint32_t id = 1;
  const auto taken = [&] {
    return std::any_of(instances.begin(), instances.end(),
                       [&](const GpuInstance& instance) { return instance.id == id; });
  };
  while (taken()) ++id;
  return id;
}

gpu::LayoutId LayoutOf(const gpu::Model& model, const std::vector<GpuInstance>& instances) {
  std::vector<gpu::Placement> placements;
  placements.reserve(instances.size());
  for (const GpuInstance& instance : instances) {
    const auto profile = model.FindProfile(instance.profile);
    if (profile) placements.push_back({*profile, instance.start});
  }
  return model.layouts().FromPlacements(placements).value();
}

Status FaultStatus(SimFault fault) {
  switch (fault) {
    case SimFault::kBusy:
      return {Code::kUnavailable, "NVML_ERROR_IN_USE: another client holds the GPU"};
    case SimFault::kTimeout:
    case SimFault::kLateAnswer:
      return {Code::kDeadline, "no answer from the driver"};
    case SimFault::kFails:
      return {Code::kInternal, "NVML_ERROR_UNKNOWN"};
    case SimFault::kCrashBetween:
      return {Code::kUnavailable, "the agent has crashed"};
    case SimFault::kLost:
      return {Code::kUnavailable, "NVML_ERROR_GPU_IS_LOST"};
    case SimFault::kHangs:
      return {Code::kUnavailable, "the GPU does not answer: a call has not returned"};
    case SimFault::kNone:
      break;
  }
  return Status::Ok();
}

// True if the operation has no effect with this fault.
bool Prevents(SimFault fault) {
  return fault == SimFault::kBusy || fault == SimFault::kTimeout || fault == SimFault::kFails ||
         fault == SimFault::kLost || fault == SimFault::kHangs;
}

}  // namespace

SimGpus::SimGpus(const std::vector<SimGpuSpec>& gpus, const std::string& seed_name, SimHooks hooks,
                 SimLatency latency)
    : hooks_(std::move(hooks)), latency_(latency) {
  for (const SimGpuSpec& spec : gpus) {
    SimGpu gpu;
    gpu.model = spec.model;
    gpu.info.index = static_cast<int>(gpus_.size());
    gpu.info.uuid = "GPU-" + NameBasedUuid(fmt::format("{}/{}", seed_name, gpu.info.index));
    gpu.info.product = spec.product.empty() ? spec.model->name() : spec.product;
    if (!spec.model->pci_ids().empty()) gpu.info.pci_device_id = spec.model->pci_ids().front();
    gpu.info.memory_mib = int64_t{spec.model->memory_gib()} * 1024;
    gpu.info.mig_capable = !spec.model->counted();
    if (!gpu.info.mig_capable) gpu.info.memory_mib += gpu::kShareOverheadMib;
    gpu.info.mig_enabled = gpu.info.mig_pending = gpu.info.mig_capable && spec.mig_enabled;
    gpu.info.compute_mode = spec.compute_mode;
    gpus_.push_back(std::move(gpu));
  }
}

Result<SimGpus::SimGpu*> SimGpus::Reach(int gpu) {
  if (gpu < 0 || gpu >= static_cast<int>(gpus_.size())) {
    return NotFound(fmt::format("there is no GPU {}", gpu));
  }
  if (gpus_[gpu].hangs) {
    GiveUp(gpus_[gpu], latency_.read_limit);
    return FaultStatus(SimFault::kHangs);
  }
  if (gpus_[gpu].lost) return FaultStatus(SimFault::kLost);
  return &gpus_[gpu];
}

// The first caller waits until the limit.
void SimGpus::GiveUp(SimGpu& gpu, Duration limit) {
  if (std::exchange(gpu.overdue, true)) return;
  if (hooks_.spend) hooks_.spend(limit);
  if (hooks_.on_hang) hooks_.on_hang(gpu.info.index, limit);
}

void SimGpus::Hang(int gpu) { gpus_.at(gpu).hangs = true; }

void SimGpus::Release(int gpu) {
  SimGpu& found = gpus_.at(gpu);
  if (!std::exchange(found.hangs, false)) return;
  const bool noticed = std::exchange(found.overdue, false);
  if (const auto pending = std::exchange(found.pending, nullptr)) pending();
  if (noticed && hooks_.on_hang) hooks_.on_hang(gpu, Duration::zero());
}

void SimGpus::DestroyLate(int gpu, uint32_t instance_id) {
  std::vector<GpuInstance>& instances = gpus_.at(gpu).instances;
  const auto instance = std::ranges::find(instances, instance_id, &GpuInstance::id);
  if (instance == instances.end()) return;
  if (hooks_.held && !instance->uuid.empty() && hooks_.held(instance->uuid)) return;
  if (hooks_.on_late_destroy) hooks_.on_late_destroy(*instance);
  instances.erase(instance);
}

SimFault SimGpus::Begin(const SimAttempt& attempt, Duration cost) {
  const SimFault fault = hooks_.fault ? hooks_.fault(attempt) : SimFault::kNone;
  const bool waits = fault != SimFault::kBusy && fault != SimFault::kLost;
  if (fault == SimFault::kHangs) {
    Hang(attempt.gpu);
    GiveUp(gpus_[attempt.gpu], latency_.change_limit);
  } else if (hooks_.spend && waits) {
    hooks_.spend(cost);
  }
  if (fault == SimFault::kLost) gpus_[attempt.gpu].lost = true;
  return fault;
}

Result<std::vector<GpuInfo>> SimGpus::ListGpus() {
  std::vector<GpuInfo> infos;
  infos.reserve(gpus_.size());
  for (SimGpu& gpu : gpus_) {
    infos.push_back(gpu.info);
    if (gpu.hangs) {
      GiveUp(gpu, latency_.read_limit);
      infos.back().problem = FaultStatus(SimFault::kHangs).message();
    } else if (gpu.lost) {
      infos.back().problem = FaultStatus(SimFault::kLost).message();
    }
  }
  return infos;
}

Result<std::vector<GpuInstance>> SimGpus::ListInstances(int gpu) {
  NOS_ASSIGN(SimGpu * found, Reach(gpu));
  if (!found->info.mig_enabled) {
    return Status(Code::kUnimplemented, fmt::format("MIG mode is off on GPU {}", gpu));
  }
  return found->instances;
}

Result<GpuInstance> SimGpus::Add(SimGpu& gpu, const std::string& profile, uint8_t start,
                                 bool complete) {
  const std::optional<gpu::ProfileId> id = gpu.model->FindProfile(profile);
  const gpu::LayoutTable& table = gpu.model->layouts();
  const auto placement = id ? table.Find({*id, start}) : std::nullopt;
  if (!placement) {
    return Invalid(fmt::format("{} has no placement {}@{}", gpu.model->name(), profile, start));
  }
  if (table.Add(LayoutOf(*gpu.model, gpu.instances), *placement) == gpu::LayoutTable::kIllegal) {
    return Status(Code::kExhausted,
                  fmt::format("NVML_ERROR_INSUFFICIENT_RESOURCES: {}@{} on GPU {}", profile, start,
                              gpu.info.index));
  }
  const gpu::Profile& facts = gpu.model->profile(*id);
  GpuInstance instance;
  instance.gpu = gpu.info.index;
  instance.id = LowestFreeId(gpu.instances);
  instance.profile = facts.name;
  instance.profile_id = facts.nvml_id;
  instance.start = start;
  instance.size = static_cast<uint8_t>(facts.slots);
  instance.complete = complete;
  if (complete)
    instance.uuid = "MIG-" + NameBasedUuid(fmt::format("{}/{}/0", gpu.info.uuid, instance.id));
  gpu.instances.push_back(instance);
  return instance;
}

Result<GpuInstance> SimGpus::Place(int gpu, const std::string& profile, uint8_t start) {
  return Add(gpus_.at(gpu), profile, start, true);
}

Result<GpuInstance> SimGpus::Create(int gpu, const std::string& profile, uint8_t start) {
  NOS_ASSIGN(SimGpu * found, Reach(gpu));
  if (!found->info.mig_enabled) return Status(Code::kUnimplemented, "MIG mode is off");
  const SimFault fault = Begin({SimAttempt::Kind::kCreate, gpu, profile, start}, latency_.create);
  if (fault == SimFault::kHangs) {
    found->pending = [this, gpu, profile, start] { (void)Add(gpus_[gpu], profile, start, true); };
  }
  if (Prevents(fault)) return FaultStatus(fault);
  Result<GpuInstance> made = Add(*found, profile, start, fault != SimFault::kCrashBetween);
  if (made.ok() && fault != SimFault::kNone) return FaultStatus(fault);
  return made;
}

Status SimGpus::Destroy(int gpu, uint32_t instance_id) {
  NOS_ASSIGN(SimGpu * found, Reach(gpu));
  const auto instance =
      std::find_if(found->instances.begin(), found->instances.end(),
                   [&](const GpuInstance& candidate) { return candidate.id == instance_id; });
  if (instance == found->instances.end()) {
    return NotFound(fmt::format("GPU {} has no instance {}", gpu, instance_id));
  }
  const SimFault fault = Begin(
      {SimAttempt::Kind::kDestroy, gpu, instance->profile, instance->start}, latency_.destroy);
  if (fault == SimFault::kHangs) {
    found->pending = [this, gpu, instance_id] { DestroyLate(gpu, instance_id); };
  }
  if (Prevents(fault)) return FaultStatus(fault);
  if (hooks_.held && !instance->uuid.empty() && hooks_.held(instance->uuid)) {
    return {Code::kUnavailable,
            fmt::format("NVML_ERROR_IN_USE: a process runs on {}", instance->uuid)};
  }
  if (hooks_.on_destroy) hooks_.on_destroy(*instance);
  if (fault == SimFault::kCrashBetween) {
    instance->complete = false;
    instance->uuid.clear();
  } else {
    found->instances.erase(instance);
  }
  return FaultStatus(fault);
}

Status SimGpus::SwitchMig(int gpu, bool enable) {
  NOS_ASSIGN(SimGpu * found, Reach(gpu));
  if (!found->info.mig_capable) {
    return {Code::kUnimplemented, fmt::format("NVML_ERROR_NOT_SUPPORTED: GPU {} has no MIG", gpu)};
  }
  if (found->info.mig_enabled == enable) {
    if (found->info.mig_pending == enable) return Status::Ok();
    const SimFault fault = Begin({SimAttempt::Kind::kTakeBack, gpu, "", 0}, Duration::zero());
    if (!Prevents(fault)) found->info.mig_pending = enable;
    return FaultStatus(fault);
  }
  if (!found->instances.empty()) {
    return {Code::kUnavailable, fmt::format("NVML_ERROR_IN_USE: GPU {} has instances", gpu)};
  }
  found->info.mig_pending = enable;
  if (found->model->architecture() == "Ampere") {
    return {Code::kPermission, fmt::format("NVML_ERROR_RESET_REQUIRED: GPU {} needs a reset", gpu)};
  }
  const auto kind = enable ? SimAttempt::Kind::kEnableMig : SimAttempt::Kind::kDisableMig;
  const SimFault fault = Begin({kind, gpu, "", 0}, latency_.enable_mig);
  if (fault == SimFault::kHangs) {
    found->pending = [this, gpu, enable] { gpus_[gpu].info.mig_enabled = enable; };
  }
  if (Prevents(fault)) return FaultStatus(fault);
  found->info.mig_enabled = enable;
  return FaultStatus(fault);
}

Status SimGpus::EnableMig(int gpu) { return SwitchMig(gpu, true); }
Status SimGpus::DisableMig(int gpu) { return SwitchMig(gpu, false); }

Status SimGpus::ResetGpu(int gpu) {
  NOS_ASSIGN(SimGpu * found, Reach(gpu));
  if (!found->instances.empty() || (hooks_.held && hooks_.held(found->info.uuid))) {
    return {Code::kUnavailable, fmt::format("GPU {} is currently in use by another process", gpu)};
  }
  const SimFault fault = Begin({SimAttempt::Kind::kReset, gpu, "", 0}, latency_.reset);
  if (Prevents(fault)) return FaultStatus(fault);
  if (hooks_.on_reset) hooks_.on_reset(found->info.uuid);
  found->info.mig_enabled = found->info.mig_pending;
  found->info.compute_mode = ComputeMode::kDefault;
  return FaultStatus(fault);
}

Status SimGpus::SetComputeMode(int gpu, ComputeMode mode) {
  if (mode == ComputeMode::kOther) return Invalid("this compute mode is not set by nos");
  NOS_ASSIGN(SimGpu * found, Reach(gpu));
  const SimFault fault =
      Begin({SimAttempt::Kind::kSetComputeMode, gpu, "", 0}, std::chrono::milliseconds(1));
  if (Prevents(fault)) return FaultStatus(fault);
  found->info.compute_mode = mode;
  return FaultStatus(fault);
}

double SimGpus::LoadOf(const std::string& uuid) const {
  const auto& works = hooks_.busy ? hooks_.busy : hooks_.held;
  return works && !uuid.empty() && works(uuid) ? SimLoad(uuid, turn_) : 0;
}

// For a GPU in MIG mode: the load of its instances, weighted by their share of the GPU.
double SimGpus::LoadOf(const SimGpu& gpu) const {
  if (!gpu.info.mig_enabled) return LoadOf(gpu.info.uuid);
  double load = 0;
  for (const GpuInstance& instance : gpu.instances) {
    load += LoadOf(instance.uuid) * instance.size / gpu.model->slots();
  }
  return std::min(load, 1.0);
}

Readings SimGpus::MeasureGpu(int gpu) {
  const Result<SimGpu*> found = Reach(gpu);
  if (!found.ok()) return NothingMeasured(found.status().message());
  if (gpu == 0) ++turn_;
  const double load = LoadOf(**found);
  Readings readings = SimUse(load, (*found)->info.memory_mib);
  AddSimBoard(load, readings);
  return readings;
}

Readings SimGpus::MeasureInstance(const GpuInstance& instance) {
  const Result<SimGpu*> found = Reach(instance.gpu);
  if (!found.ok()) return NothingMeasured(found.status().message());
  const auto profile = (*found)->model->FindProfile(instance.profile);
  const int64_t memory = profile ? (*found)->model->profile(*profile).memory_mib : 0;
  return SimUse(LoadOf(instance.uuid), memory);
}

void SimGpus::Reboot() {
  for (SimGpu& gpu : gpus_) {
    gpu.instances.clear();
    gpu.lost = false;
    gpu.pending = nullptr;
    Release(gpu.info.index);
    gpu.info.compute_mode = ComputeMode::kDefault;
    if (gpu.model->architecture() != "Ampere") gpu.info.mig_pending = false;
    gpu.info.mig_enabled = gpu.info.mig_pending;
  }
}

void SimGpus::Lose(int gpu) { gpus_.at(gpu).lost = true; }
void SimGpus::Restore(int gpu) { gpus_.at(gpu).lost = false; }

}  // namespace nos::device
