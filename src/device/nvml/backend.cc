#include "device/nvml_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "device/nvml/instances.h"
#include "device/nvml_status.h"

namespace nos::device {
namespace {

constexpr unsigned kMaxGpus = 64;

Status MigIsOff(int gpu) {
  return {Code::kUnimplemented, fmt::format("MIG mode is off on GPU {}", gpu)};
}

// Looks up the exact placement that this GPU's driver reports; the profile's name is not
// interpreted.
Result<DriverPlacement> PlacementAt(const DriverProfile& profile, uint8_t start) {
  NOS_RETURN_IF_ERROR(profile.placements_status);
  for (const DriverPlacement& placement : profile.placements) {
    if (placement.start == start) return placement;
  }
  return Invalid(fmt::format("the driver does not place {} at {}, only at {}", profile.name, start,
                             StartsText(profile)));
}

Result<const DriverProfile*> FindProfile(const std::vector<DriverProfile>& profiles,
                                         const std::string& name) {
  for (const bool by_driver : {false, true}) {
    for (const DriverProfile& profile : profiles) {
      if ((by_driver ? profile.name : profile.canonical) == name) return &profile;
    }
  }
  std::vector<std::string> names;
  names.reserve(profiles.size());
  for (const DriverProfile& profile : profiles) names.push_back(profile.canonical);
  return Invalid(
      fmt::format("the driver has no profile {} for this GPU, only {}", name, Join(names, ", ")));
}

}  // namespace

const gpu::Model* ModelOf(const GpuInfo& info, const gpu::Catalogue& catalogue) {
  const gpu::Model* model = catalogue.FindByProduct(info.product);
  return model != nullptr ? model : catalogue.FindByPciId(info.pci_device_id);
}

// After these errors nothing of the session can be trusted. It ends before the next access to a
// GPU, not at once, because a half-done change may still have to be undone.
Status NvmlBackend::Check(nvml::Return code, std::string_view name) {
  if (code == nvml::kUninitialized || code == nvml::kDriverNotLoaded ||
      code == nvml::kLibRmVersionMismatch) {
    session_ended_ = true;
  }
  NoteVersion(code);
  return ToStatus(code, name);
}

Status NvmlBackend::OpenSession() {
  if (std::exchange(session_ended_, false)) {
    meter_.Forget();
    session_.Close();
    profiles_.clear();
  }
  nvml::Return code{};
  Status opened = session_.Open(&code);
  NoteVersion(code);
  return opened;
}

void NvmlBackend::NoteVersion(nvml::Return code) {
  if (code != nvml::kLibRmVersionMismatch) return;
  outdated_ = true;
  if (scope_.outdated != nullptr) *scope_.outdated = true;
}

void NvmlBackend::EndSession() {
  meter_.Forget();
  session_.Close();
  session_ended_ = true;  // everything read before may be stale
}

Result<nvml::Device> NvmlBackend::Reach(int gpu) {
  NOS_RETURN_IF_ERROR(OpenSession());
  nvml::Device device = nullptr;
  const nvml::Return code =
      call().nvmlDeviceGetHandleByIndex_v2(static_cast<unsigned>(gpu), &device);
  if (code == nvml::kInvalidArgument) return NotFound(fmt::format("there is no GPU {}", gpu));
  NOS_RETURN_IF_ERROR(Check(code, "nvmlDeviceGetHandleByIndex_v2"));
  return device;
}

Result<std::vector<GpuInfo>> NvmlBackend::ListGpus() {
  if (std::exchange(some_failed_, false)) session_.Close();  // a new session sees repaired GPUs
  NOS_RETURN_IF_ERROR(OpenSession());
  std::map<int, Result<GpuInfo>> read;
  if (scope_.only) {
    read.emplace(*scope_.only, ReadGpu(*scope_.only));
  } else {
    unsigned count = 0;
    NOS_RETURN_IF_ERROR(Check(call().nvmlDeviceGetCount_v2(&count), "nvmlDeviceGetCount_v2"));
    if (count > kMaxGpus) return Internal(fmt::format("the driver says there are {} GPUs", count));
    for (int gpu = 0; gpu < static_cast<int>(count); ++gpu) read.emplace(gpu, ReadGpu(gpu));
  }
  some_failed_ = std::ranges::any_of(read, [](const auto& one) { return !one.second.ok(); });
  return known_.Complete(read);
}

Result<GpuInfo> NvmlBackend::ReadGpu(int gpu) {
  NOS_ASSIGN(nvml::Device device, Reach(gpu));
  GpuInfo info;
  info.index = gpu;
  char text[nvml::kNameSize + 1] = {};
  NOS_RETURN_IF_ERROR(
      Check(call().nvmlDeviceGetUUID(device, text, nvml::kUuidSize), "nvmlDeviceGetUUID"));
  info.uuid = DriverString(text, nvml::kUuidSize);
  NOS_RETURN_IF_ERROR(
      Check(call().nvmlDeviceGetName(device, text, nvml::kNameSize), "nvmlDeviceGetName"));
  info.product = DriverString(text, nvml::kNameSize);
  nvml::PciInfo pci{};
  NOS_RETURN_IF_ERROR(
      Check(call().nvmlDeviceGetPciInfo_v3(device, &pci), "nvmlDeviceGetPciInfo_v3"));
  info.pci_device_id = pci.device_id;
  nvml::Memory memory{};
  const nvml::Return code = call().nvmlDeviceGetMemoryInfo(device, &memory);
  // The call may need a privilege in MIG mode, and GPUs that share the host's memory report none.
  if (code != nvml::kNoPermission && code != nvml::kNotSupported) {
    NOS_RETURN_IF_ERROR(Check(code, "nvmlDeviceGetMemoryInfo"));
  }
  info.memory_mib = static_cast<int64_t>(memory.total >> 20);
  NOS_RETURN_IF_ERROR(ReadMigMode(device, info));
  info.compute_mode = ReadComputeMode(device);
  return info;
}

Status NvmlBackend::ReadMigMode(nvml::Device device, GpuInfo& info) {
  if (!library_.Has(nvml::Feature::kMig)) return Status::Ok();
  unsigned current = 0, pending = 0;
  const nvml::Return code = call().nvmlDeviceGetMigMode(device, &current, &pending);
  if (code == nvml::kNotSupported) return Status::Ok();
  NOS_RETURN_IF_ERROR(Check(code, "nvmlDeviceGetMigMode"));
  info.mig_capable = true;
  info.mig_enabled = current == nvml::kMigEnable;
  info.mig_pending = pending == nvml::kMigEnable;
  return Status::Ok();
}

Result<GpuInfo> NvmlBackend::NeedMig(int gpu) {
  NOS_ASSIGN(GpuInfo info, ReadGpu(gpu));
  if (!info.mig_enabled) return MigIsOff(gpu);
  return info;
}

Result<const std::vector<DriverProfile>*> NvmlBackend::Profiles(nvml::Device device,
                                                                const GpuInfo& info) {
  KnownProfiles& known = profiles_[info.index];
  const bool same = known.gpu_uuid == info.uuid && known.mig_enabled == info.mig_enabled;
  if (!same || known.profiles.empty()) {
    known = {};
    NOS_ASSIGN(known.profiles,
               ReadProfiles(call(), device, info.memory_mib, ModelOf(info, catalogue_)));
    known.gpu_uuid = info.uuid;
    known.mig_enabled = info.mig_enabled;
  }
  return &known.profiles;
}

Result<std::vector<DriverProfile>> NvmlBackend::ListProfiles(int gpu) {
  NOS_ASSIGN(const GpuInfo info, ReadGpu(gpu));
  if (!info.mig_capable) return std::vector<DriverProfile>{};
  NOS_ASSIGN(nvml::Device device, Reach(gpu));
  NOS_ASSIGN(const auto* profiles, Profiles(device, info));
  return *profiles;
}

std::string NvmlBackend::DriverVersion() {
  char version[nvml::kVersionSize + 1] = {};
  if (!OpenSession().ok() || call().nvmlSystemGetDriverVersion == nullptr) return "";
  if (call().nvmlSystemGetDriverVersion(version, nvml::kVersionSize) != nvml::kSuccess) return "";
  return DriverString(version, nvml::kVersionSize);
}

std::string NvmlBackend::CudaVersion() {
  int version = 0;  // 1000 * major + 10 * minor (nvml.h)
  if (!OpenSession().ok() || call().nvmlSystemGetCudaDriverVersion_v2 == nullptr) return "";
  const nvml::Return asked = call().nvmlSystemGetCudaDriverVersion_v2(&version);
  if (asked != nvml::kSuccess || version <= 0) return "";
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

Result<std::vector<GpuInstance>> NvmlBackend::ListInstances(int gpu) {
  NOS_ASSIGN(const GpuInfo info, NeedMig(gpu));
  NOS_ASSIGN(nvml::Device device, Reach(gpu));
  NOS_ASSIGN(const auto* profiles, Profiles(device, info));
  return ReadInstances(library_, device, gpu, *profiles);
}

Result<GpuInstance> NvmlBackend::Create(int gpu, const std::string& name, uint8_t start) {
  NOS_ASSIGN(const GpuInfo info, NeedMig(gpu));
  NOS_ASSIGN(nvml::Device device, Reach(gpu));
  NOS_ASSIGN(const auto* profiles, Profiles(device, info));
  NOS_ASSIGN(const DriverProfile* profile, FindProfile(*profiles, name));
  NOS_ASSIGN(const DriverPlacement placement, PlacementAt(*profile, start));
  const nvml::PlacementSlots slots{placement.start, placement.size};
  nvml::GpuInstanceRef instance = nullptr;
  NOS_RETURN_IF_ERROR(
      Check(call().nvmlDeviceCreateGpuInstanceWithPlacement(device, profile->id, &slots, &instance),
            "nvmlDeviceCreateGpuInstanceWithPlacement"));
  if (const Status made = CreateComputeInstance(instance, *profile); !made.ok()) {
    const Status undone = DestroyParts(instance);
    if (undone.ok()) return made;
    return made.Within(fmt::format("the incomplete GPU instance remains ({})", undone.message()));
  }
  return VerifyMade(gpu, profile->canonical, start);
}

Status NvmlBackend::CreateComputeInstance(nvml::GpuInstanceRef instance,
                                          const DriverProfile& profile) {
  NOS_ASSIGN(const std::vector<DriverComputeProfile> candidates,
             ReadComputeProfiles(call(), instance));
  const DriverComputeProfile* full = FullSize(candidates, profile);
  if (full == nullptr) {
    return Internal(fmt::format("the driver offers no compute instance of all {} slices of {}",
                                profile.slices, profile.name));
  }
  nvml::ComputeInstanceRef made = nullptr;
  return Check(call().nvmlGpuInstanceCreateComputeInstance(instance, full->id, &made),
               "nvmlGpuInstanceCreateComputeInstance");
}

Result<GpuInstance> NvmlBackend::VerifyMade(int gpu, std::string profile, uint8_t start) {
  NOS_ASSIGN(const std::vector<GpuInstance> instances, ListInstances(gpu));
  for (const GpuInstance& instance : instances) {
    const bool same = instance.start == start && instance.profile == profile;
    if (same && instance.complete) return instance;
  }
  return Status(Code::kUnavailable,
                fmt::format("the driver said it made {}@{} on GPU {}, but does not list it",
                            profile, start, gpu));
}

Status NvmlBackend::Destroy(int gpu, uint32_t instance_id) {
  NOS_RETURN_IF_ERROR(NeedMig(gpu).status());
  NOS_ASSIGN(nvml::Device device, Reach(gpu));
  nvml::GpuInstanceRef instance = nullptr;
  NOS_RETURN_IF_ERROR(Check(call().nvmlDeviceGetGpuInstanceById(device, instance_id, &instance),
                            "nvmlDeviceGetGpuInstanceById")
                          .Within(fmt::format("GPU {} instance {}", gpu, instance_id)));
  meter_.ForgetInstance(gpu, instance_id);
  NOS_RETURN_IF_ERROR(DestroyParts(instance));
  NOS_ASSIGN(const std::vector<GpuInstance> left, ListInstances(gpu));
  const bool remains = std::any_of(left.begin(), left.end(), [&](const GpuInstance& candidate) {
    return candidate.id == instance_id;
  });
  if (!remains) {
    if (events_ != nullptr) events_->board().ClearInstance(gpu, instance_id);
    return Status::Ok();
  }
  return {Code::kUnavailable,
          fmt::format("the driver said it destroyed instance {} of GPU {}, but still lists it",
                      instance_id, gpu)};
}

// Destroys compute instances first: a GPU instance is in use while it has one.
Status NvmlBackend::DestroyParts(nvml::GpuInstanceRef instance) {
  NOS_ASSIGN(const std::vector<ComputeSlice> slices, ReadComputeSlices(call(), instance));
  if (slices.size() > 1) {
    return Invalid(
        fmt::format("it holds {} compute instances, so it is not ours to destroy", slices.size()));
  }
  for (const ComputeSlice& slice : slices) {
    NOS_RETURN_IF_ERROR(
        Check(call().nvmlComputeInstanceDestroy(slice.ref), "nvmlComputeInstanceDestroy"));
  }
  return Check(call().nvmlGpuInstanceDestroy(instance), "nvmlGpuInstanceDestroy");
}

Status NvmlBackend::EnableMig(int gpu) {
  NOS_ASSIGN(const GpuInfo info, ReadGpu(gpu));
  if (!info.mig_capable) {
    return {Code::kUnimplemented, fmt::format("GPU {} ({}) has no MIG", gpu, info.product)};
  }
  if (!info.mig_enabled) return SwitchMig(gpu, true);
  return info.mig_pending ? Status::Ok() : TakeBackMig(gpu, true);
}

Status NvmlBackend::DisableMig(int gpu) {
  NOS_ASSIGN(const GpuInfo info, ReadGpu(gpu));
  if (!info.mig_enabled) return info.mig_pending ? TakeBackMig(gpu, false) : Status::Ok();
  NOS_ASSIGN(const std::vector<GpuInstance> instances, ListInstances(gpu));
  if (!instances.empty()) {
    return {Code::kUnavailable,
            fmt::format("GPU {} still has {} MIG instances, {}@{} among them: it stays in MIG mode",
                        gpu, instances.size(), instances[0].profile, instances[0].start)};
  }
  return SwitchMig(gpu, false);
}

Status NvmlBackend::SwitchMig(int gpu, bool enable) {
  const NvmlEvents::Suspended quiet(events_);
  const Status set = SetMigMode(gpu, enable);
  // A reset may have activated the mode, so everything read before is stale.
  session_ended_ = true;
  NOS_RETURN_IF_ERROR(set);
  NOS_ASSIGN(const GpuInfo now, ReadGpu(gpu));
  if (now.mig_enabled == enable) return Status::Ok();
  return {Code::kPermission,
          fmt::format("GPU {} {} MIG mode only after a reset: drain the node, then nvidia-smi "
                      "--gpu-reset -i {} or a reboot",
                      gpu, enable ? "takes" : "leaves", gpu)};
}

// Keeps the present MIG mode over the next reset: cancels a pending change.
Status NvmlBackend::TakeBackMig(int gpu, bool enabled) {
  const NvmlEvents::Suspended quiet(events_);
  const Status set = SetMigMode(gpu, enabled);
  session_ended_ = true;
  NOS_ASSIGN(const GpuInfo now, ReadGpu(gpu));
  if (now.mig_enabled == enabled && now.mig_pending == enabled) return Status::Ok();
  NOS_RETURN_IF_ERROR(set);
  return {Code::kUnavailable,
          fmt::format("the driver accepted that GPU {} keeps its MIG mode, but still reports "
                      "another mode after the next reset",
                      gpu)};
}

Status NvmlBackend::ResetGpu(int gpu) {
  NOS_ASSIGN(const GpuInfo info, ReadGpu(gpu));
  const NvmlEvents::Suspended quiet(events_);
  EndSession();
  NOS_RETURN_IF_ERROR(device::ResetGpu(reset_, info.uuid).Within(fmt::format("GPU {}", gpu)));
  if (events_ != nullptr) events_->board().ClearGpu(gpu);
  NOS_ASSIGN(const GpuInfo now, ReadGpu(gpu));
  if (now.mig_enabled == info.mig_pending) return Status::Ok();
  return {Code::kUnavailable, fmt::format("{} said it reset GPU {}, but its MIG mode is still {}",
                                          reset_.program, gpu, now.mig_enabled ? "on" : "off")};
}

Status NvmlBackend::SetMigMode(int gpu, bool enable) {
  NOS_ASSIGN(nvml::Device device, Reach(gpu));
  nvml::Return activation = nvml::kSuccess;
  NOS_RETURN_IF_ERROR(Check(call().nvmlDeviceSetMigMode(
                                device, enable ? nvml::kMigEnable : nvml::kMigDisable, &activation),
                            "nvmlDeviceSetMigMode"));
  return ToStatus(activation, "nvmlDeviceSetMigMode (activation)")
      .Within(fmt::format("GPU {}", gpu));
}

// Empty if it cannot be read: only MPS depends on it.
std::optional<ComputeMode> NvmlBackend::ReadComputeMode(nvml::Device device) {
  unsigned mode = 0;
  if (!library_.Has(nvml::Feature::kComputeMode)) return std::nullopt;
  const Status read =
      Check(call().nvmlDeviceGetComputeMode(device, &mode), "nvmlDeviceGetComputeMode");
  if (!read.ok()) return std::nullopt;
  if (mode == nvml::kComputeDefault) return ComputeMode::kDefault;
  return mode == nvml::kComputeExclusiveProcess ? ComputeMode::kExclusiveProcess
                                                : ComputeMode::kOther;
}

Status NvmlBackend::SetComputeMode(int gpu, ComputeMode mode) {
  if (mode == ComputeMode::kOther) return Invalid("this compute mode is not set by nos");
  NOS_ASSIGN(nvml::Device device, Reach(gpu));
  if (!library_.Has(nvml::Feature::kComputeMode)) {
    return {Code::kUnimplemented, fmt::format("{} has no compute modes", library_.path())};
  }
  if (ReadComputeMode(device) == mode) return Status::Ok();
  const bool exclusive = mode == ComputeMode::kExclusiveProcess;
  NOS_RETURN_IF_ERROR(
      Check(call().nvmlDeviceSetComputeMode(
                device, exclusive ? nvml::kComputeExclusiveProcess : nvml::kComputeDefault),
            "nvmlDeviceSetComputeMode")
          .Within(fmt::format("GPU {}", gpu)));
  if (ReadComputeMode(device) == mode) return Status::Ok();
  return {Code::kUnavailable,
          fmt::format("the driver accepted the compute mode of GPU {}, but reports another", gpu)};
}

Readings NvmlBackend::MeasureGpu(int gpu) {
  const Result<GpuInfo> info = ReadGpu(gpu);
  const Result<nvml::Device> device = info.ok() ? Reach(gpu) : info.status();
  if (!device.ok()) return NothingMeasured(device.status().message());
  return meter_.OfGpu(*device, *info);
}

Readings NvmlBackend::MeasureInstance(const GpuInstance& instance) {
  const Result<nvml::Device> device = Reach(instance.gpu);
  if (!device.ok()) return NothingMeasured(device.status().message());
  return meter_.OfInstance(*device, instance);
}

}  // namespace nos::device
