// device::Backend on real GPUs, through NVML.
//
// Every call fetches handles again and verifies every change by listing, because drivers have been
// seen to keep deleted MIG devices in long sessions and to report success with remnants left
// (NVIDIA/libcudacxx issue 224, NVIDIA/go-nvml issue 146). If the driver has ended a session, the
// next call opens a new one.
//
// For one owner thread, like every Backend. NVML calls block; if a driver hangs, the caller hangs:
// device/nvml_gpus.h limits that.
#pragma once

#include <atomic>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "device/backend.h"
#include "device/backend/gpu_reset.h"
#include "device/backend/last_known.h"
#include "device/health.h"
#include "device/nvml/library.h"
#include "device/nvml/meter.h"
#include "device/nvml/profiles.h"
#include "device/nvml_events.h"
#include "gpu/catalogue.h"

namespace nos::device {

// The part of the driver that a backend is for.
struct NvmlScope {
  std::optional<int> only{};              // the only GPU that it lists; empty: all
  std::atomic<bool>* outdated = nullptr;  // set as NvmlBackend::outdated; may be null
};

class NvmlBackend final : public Backend {
 public:
  // `events` may be null. It is suspended while a GPU changes its mode (it would hold the GPU), and
  // notified of destroyed instances. All must outlive this.
  NvmlBackend(const NvmlLibrary& library, const gpu::Catalogue& catalogue,
              NvmlEvents* events = nullptr, GpuResetOptions reset = {}, NvmlScope scope = {})
      : library_(library),
        catalogue_(catalogue),
        events_(events),
        reset_(std::move(reset)),
        scope_(scope),
        session_(library),
        meter_(library) {}

  // GPUs that do not answer are listed with GpuInfo::problem.
  Result<std::vector<GpuInfo>> ListGpus() override;
  // Incomplete instances are those left without a compute instance by a crash.
  Result<std::vector<GpuInstance>> ListInstances(int gpu) override;
  // `profile`: the catalogue's or the driver's name.
  Result<GpuInstance> Create(int gpu, const std::string& profile, uint8_t start) override;
  // Further error: kInvalid if it holds several compute instances, which another tool created.
  Status Destroy(int gpu, uint32_t instance_id) override;
  Status EnableMig(int gpu) override;
  Status DisableMig(int gpu) override;
  // This process keeps no GPU open during the reset. Further error: kDeadline.
  Status ResetGpu(int gpu) override;
  Status SetComputeMode(int gpu, ComputeMode mode) override;
  Readings MeasureGpu(int gpu) override;
  Readings MeasureInstance(const GpuInstance& instance) override;

  // The driver's profiles of the GPU. With MIG off only if the driver reports them then (Hopper and
  // later); else empty.
  Result<std::vector<DriverProfile>> ListProfiles(int gpu);
  // "" if the driver does not report it.
  std::string DriverVersion();
  // The latest CUDA version that the driver supports: "13.0"; "" if it does not report it.
  std::string CudaVersion();
  // Keeps no GPU open until the next call.
  void EndSession();
  const NvmlLibrary& library() const { return library_; }
  // True once the kernel module is of another version than the library: the driver was replaced,
  // and only a process that loads the new library can use it. From any thread.
  bool outdated() const { return outdated_; }

 private:
  struct KnownProfiles {
    std::string gpu_uuid;
    bool mig_enabled = false;
    std::vector<DriverProfile> profiles;
  };
  const nvml::Functions& call() const { return library_.call(); }
  Status Check(nvml::Return code, std::string_view call);
  Status OpenSession();
  void NoteVersion(nvml::Return code);
  Result<nvml::Device> Reach(int gpu);
  Result<GpuInfo> ReadGpu(int gpu);
  Status ReadMigMode(nvml::Device device, GpuInfo& info);
  std::optional<ComputeMode> ReadComputeMode(nvml::Device device);
  Result<GpuInfo> NeedMig(int gpu);
  Result<const std::vector<DriverProfile>*> Profiles(nvml::Device device, const GpuInfo& info);
  Status CreateComputeInstance(nvml::GpuInstanceRef instance, const DriverProfile& profile);
  Result<GpuInstance> VerifyMade(int gpu, std::string profile, uint8_t start);
  Status DestroyParts(nvml::GpuInstanceRef instance);
  Status SwitchMig(int gpu, bool enable);
  Status TakeBackMig(int gpu, bool enabled);
  Status SetMigMode(int gpu, bool enable);

  const NvmlLibrary& library_;
  const gpu::Catalogue& catalogue_;
  NvmlEvents* events_;
  GpuResetOptions reset_;
  NvmlScope scope_;
  NvmlSession session_;
  NvmlMeter meter_;  // after the session, which it needs
  std::atomic<bool> outdated_ = false;
  bool session_ended_ = false;  // the driver ended it, or it must be reopened
  bool some_failed_ = false;    // a GPU did not answer the last ListGpus
  LastKnownGpus known_;
  std::map<int, KnownProfiles> profiles_;  // constant while a MIG mode lasts (nvml.h)
};

// The catalogue's model of a GPU, by product name, else PCI id. Null if unknown.
const gpu::Model* ModelOf(const GpuInfo& info, const gpu::Catalogue& catalogue);

}  // namespace nos::device
