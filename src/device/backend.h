// The GPUs of one node, as the agent sees and cuts them. Implemented by NVML on real nodes and by
// the simulated GPU (device/sim_gpus.h) elsewhere; callers never know which.
//
// An instance here is a GPU instance with its full-size compute instance (MIG), an MPS share, a
// time slice or a whole GPU. Not thread-safe: one owner thread makes all calls.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "device/backend/readings.h"

namespace nos::device {

// Who may use a GPU that is not in MIG mode.
enum class ComputeMode {
  kDefault,           // any number of programs
  kExclusiveProcess,  // one at a time: with MPS its server, hence no program without MPS
  kOther,             // nobody, or a mode that nos does not know
};

struct GpuInfo {
  int index = 0;
  std::string uuid;     // "GPU-..."
  std::string product;  // as nvmlDeviceGetName: "NVIDIA A100-SXM4-40GB"
  uint32_t pci_device_id = 0;
  int64_t memory_mib = 0;  // 0: the driver does not tell
  bool mig_capable = false, mig_enabled = false;
  // What the next reset of the GPU makes of mig_enabled.
  bool mig_pending = false;
  // Why this GPU cannot be used now ("" when it can); the rest is what was last known of it.
  std::string problem{};
  // GiB that MPS shares may take of it together; 0: it is not in MPS mode (device/mps_gpus.h).
  int share_gib = 0;
  int could_share_gib = 0;                    // that it would have in this mode; 0: it cannot be
  std::optional<ComputeMode> compute_mode{};  // empty: the driver does not tell
  int most_shares = 0;       // at a time, where it is shared; 0: there is no MPS here
  bool gives_whole = false;  // it may be given whole and in time slices, too (Backend::GiveWhole)
};

struct GpuInstance {
  int gpu = 0;                  // GpuInfo::index
  uint32_t id = 0;              // GI id: not a function of the start
  std::string uuid;             // "MIG-..." of its compute instance; empty when it has none
  std::string profile;          // "1g.5gb"
  int profile_id = -1;          // nvmlGpuInstanceProfileInfo_t.id
  uint8_t start = 0, size = 0;  // placement slots; of an MPS share its number, and GiB
  // False after a crash between the two NVML calls: there is no compute instance, hence no device.
  bool complete = true;
  // Of an MPS share in a MIG instance: the UUID of that instance (device/mig_parts.h).
  std::string part_of{};
};

class Backend {
 public:
  virtual ~Backend() = default;
  // Errors: kUnavailable (driver not there).
  virtual Result<std::vector<GpuInfo>> ListGpus() = 0;
  // Errors: kUnavailable (GPU lost), kUnimplemented (MIG is off).
  virtual Result<std::vector<GpuInstance>> ListInstances(int gpu) = 0;
  // Creates GPU instance and compute instance at exactly this start; on failure nothing is left.
  // Errors: kExhausted (the placement is taken: NVML_ERROR_INSUFFICIENT_RESOURCES), kInvalid (no
  // such profile or start), kUnavailable (busy, transient), kDeadline.
  virtual Result<GpuInstance> Create(int gpu, const std::string& profile, uint8_t start) = 0;
  // Errors: kNotFound; kUnavailable (NVML_ERROR_IN_USE: something holds it; try again later).
  virtual Status Destroy(int gpu, uint32_t instance_id) = 0;
  // Switches MIG mode on, and has the next reset leave it on. Errors: kUnavailable (other clients
  // hold the GPU), kPermission (this architecture needs a GPU reset first), kUnimplemented (no
  // MIG). After the first two the mode may be noted for the next reset (GpuInfo::mig_pending).
  // Source: nvml.h nvmlDeviceSetMigMode; Ampere keeps the mode over reboots, Hopper and later lose
  // it and need no reset.
  virtual Status EnableMig(int gpu) = 0;
  // Switches MIG mode off. Errors: as EnableMig; kUnavailable also while the GPU has instances.
  virtual Status DisableMig(int gpu) = 0;
  // Resets the GPU, so that a MIG mode that waits for it is taken (GpuInfo::mig_pending); some
  // seconds. REQUIRES: nobody uses anything of it. Errors:
  // kUnavailable (something holds it), kUnimplemented (it cannot be reset alone, or not from here),
  // kPermission.
  virtual Status ResetGpu(int /*gpu*/) {
    return {Code::kUnimplemented, "GPUs cannot be reset from here"};
  }
  // Until the next reboot or reset, or until the driver is unloaded: then it is kDefault again.
  // Programs that run go on. Errors: kInvalid (kOther), kPermission (the agent is not root),
  // kUnimplemented, kUnavailable.
  // Source: nvml.h nvmlDeviceSetComputeMode.
  virtual Status SetComputeMode(int gpu, ComputeMode mode) = 0;
  // From now on the GPU is shared by MPS, has shares instead of instances, and GpuInfo::share_gib;
  // and back. device/mps_gpus.h says more. Errors also: kUnimplemented: no MPS here.
  virtual Status EnableMps(int /*gpu*/) { return NoMps(); }
  virtual Status DisableMps(int /*gpu*/) { return NoMps(); }
  // Whether GPUs that are neither cut by MIG nor shared by MPS have instances, too: "gpu", the
  // whole of it, or "shared", a time slice (device/plain_gpus.h). Without: what there was is
  // forgotten.
  virtual void GiveWhole(bool /*give*/) {}
  // Takes for instances what pods hold of those that exist nowhere but here (device/mps_gpus.h): to
  // be called with all device ids that the kubelet tells, before they are listed. Returns a
  // sentence for each that cannot be.
  virtual std::vector<std::string> Adopt(std::span<const std::string> /*device_ids*/) { return {}; }
  // What is measured of the whole GPU, and of one instance. Never an error: what cannot be read
  // says why, and spoils nothing else. Some rates compare with the last reading of the same GPU or
  // instance, hence the first has none. They mean something 100 ms after the last (nvml.h, GPM).
  virtual Readings MeasureGpu(int gpu) = 0;
  virtual Readings MeasureInstance(const GpuInstance& instance) = 0;

 private:
  static Status NoMps() { return {Code::kUnimplemented, "this agent does not share GPUs by MPS"}; }
};

}  // namespace nos::device
