// device::Backend on real GPUs, through NVML.
//
// Handles are asked for afresh in every call and every change is verified by listing, because
// drivers have been seen to keep deleted MIG devices in long sessions and to report success with
// remnants left (NVIDIA/libcudacxx issue 224, NVIDIA/go-nvml issue 146). A session that the driver
// ended is opened again by the next call.
//
// One owner thread, as every Backend. NVML calls block; a driver that hangs hangs the caller.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "device/backend.h"
#include "device/backend/gpu_reset.h"
#include "device/health.h"
#include "device/nvml_events.h"
#include "device/nvml/library.h"
#include "device/nvml/meter.h"
#include "device/nvml/profiles.h"
#include "gpu/catalogue.h"

namespace nos::device {

class NvmlBackend final : public Backend {
 public:
  // `events` may be null; it is suspended while a GPU changes its mode (it would hold the GPU), and
  // told of destroyed instances. All must outlive this.
  NvmlBackend(const NvmlLibrary& library, const gpu::Catalogue& catalogue,
              NvmlEvents* events = nullptr, GpuResetOptions reset = {})
      : library_(library),
        catalogue_(catalogue),
        events_(events),
        reset_(std::move(reset)),
        session_(library),
        meter_(library) {}

  // GPUs that do not answer are listed with GpuInfo::problem.
  Result<std::vector<GpuInfo>> ListGpus() override;
  // Incomplete instances are those that a crash left without a compute instance.
  Result<std::vector<GpuInstance>> ListInstances(int gpu) override;
  // `profile`: the catalogue's or the driver's name.
  Result<GpuInstance> Create(int gpu, const std::string& profile, uint8_t start) override;
  // Further errors: kInvalid when it holds several compute instances: somebody else's.
  Status Destroy(int gpu, uint32_t instance_id) override;
  Status EnableMig(int gpu) override;
  Status DisableMig(int gpu) override;
  // Nothing of this process has any GPU open meanwhile. Further errors: kDeadline.
  Status ResetGpu(int gpu) override;
  Status SetComputeMode(int gpu, ComputeMode mode) override;
  Readings MeasureGpu(int gpu) override;
  Readings MeasureInstance(const GpuInstance& instance) override;

  // What the driver says the GPU can be cut into. With MIG off too, where the driver tells it
  // (Hopper and later); else empty.
  Result<std::vector<DriverProfile>> ListProfiles(int gpu);
  // "" when the driver does not tell.
  std::string DriverVersion();
  const NvmlLibrary& library() const { return library_; }

 private:
  struct KnownProfiles {
    std::string gpu_uuid;
    bool mig_enabled = false;
    std::vector<DriverProfile> profiles;
  };
  const nvml::Functions& call() const { return library_.call(); }
  Status Check(nvml::Return code, std::string_view call);
  Status OpenSession();
  void ForgetMoved(std::vector<GpuInfo>& infos);
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
  NvmlSession session_;
  NvmlMeter meter_;                        // after the session, which it needs
  bool session_ended_ = false;             // the driver ended it, or it is to be opened anew
  bool some_failed_ = false;               // some GPU did not answer the last ListGpus
  std::map<int, GpuInfo> known_;           // by index: what was last known
  std::map<int, KnownProfiles> profiles_;  // constant while a MIG mode lasts (nvml.h)
};

// The catalogue's model of a GPU, by product name, else PCI id. Null when it is not known.
const gpu::Model* ModelOf(const GpuInfo& info, const gpu::Catalogue& catalogue);

}  // namespace nos::device
