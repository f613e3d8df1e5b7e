// The GPUs of one node, as the agent observes and partitions them. Implemented with NVML on real
// nodes and by the simulated GPU (device/sim_gpus.h) elsewhere; callers cannot see the difference.
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

// The programs that may use a GPU that is not in MIG mode (NVML compute mode).
enum class ComputeMode {
  kDefault,           // any number of programs
  kExclusiveProcess,  // one at a time: the MPS server, so programs need MPS
  kOther,             // no program, or a mode that nos does not know
};

struct GpuInfo {
  int index = 0;
  std::string uuid;     // "GPU-..."
  std::string product;  // as nvmlDeviceGetName: "NVIDIA A100-SXM4-40GB"
  uint32_t pci_device_id = 0;
  int64_t memory_mib = 0;  // 0: the driver does not report it
  bool mig_capable = false, mig_enabled = false;
  // The value of mig_enabled after the next reset of the GPU.
  bool mig_pending = false;
  // The reason why this GPU cannot be used now, "" if it can; the other fields then hold the last
  // known values.
  std::string problem{};
  // GiB available to all MPS shares together; 0: not in MPS mode (device/mps_gpus.h).
  int share_gib = 0;
  int could_share_gib = 0;                    // share_gib in MPS mode; 0: cannot be shared
  std::optional<ComputeMode> compute_mode{};  // empty: the driver does not report it
  int max_shares = 0;                         // limit of concurrent shares; 0: MPS is not available
  bool gives_whole = false;  // may also be used whole and in time slices (Backend::GiveWhole)
};

struct GpuInstance {
  int gpu = 0;                  // GpuInfo::index
  uint32_t id = 0;              // GPU instance id: not a function of the start
  std::string uuid;             // "MIG-..." of its compute instance; empty if it has none
  std::string profile;          // "1g.5gb"
  int profile_id = -1;          // nvmlGpuInstanceProfileInfo_t.id
  uint8_t start = 0, size = 0;  // placement slots; of an MPS share: number and GiB
  // False after a crash between the two NVML calls: it has no compute instance, hence no device.
  bool complete = true;
  // If it is an MPS share in a MIG instance: the UUID of that instance (device/mig_parts.h).
  std::string part_of{};
};

class Backend {
 public:
  virtual ~Backend() = default;
  // Error: kUnavailable (driver not loaded).
  virtual Result<std::vector<GpuInfo>> ListGpus() = 0;
  // Errors: kUnavailable (GPU lost), kUnimplemented (MIG is off).
  virtual Result<std::vector<GpuInstance>> ListInstances(int gpu) = 0;
  // Creates a GPU instance and a compute instance at exactly this start; on failure both are
  // removed.
  // Errors: kExhausted (the placement is taken: NVML_ERROR_INSUFFICIENT_RESOURCES), kInvalid
  // (unknown profile or start), kUnavailable (busy, transient), kDeadline.
  virtual Result<GpuInstance> Create(int gpu, const std::string& profile, uint8_t start) = 0;
  // Errors: kNotFound; kUnavailable (NVML_ERROR_IN_USE: a process uses it; try again later).
  virtual Status Destroy(int gpu, uint32_t instance_id) = 0;
  // Switches MIG mode on, and keeps it on after the next reset. Errors: kUnavailable (other clients
  // hold the GPU), kPermission (this architecture needs a GPU reset first), kUnimplemented (no
  // MIG). After the first two the mode may be pending until the next reset (GpuInfo::mig_pending).
  // Source: nvml.h nvmlDeviceSetMigMode; Ampere keeps the mode over reboots, Hopper and later lose
  // it and need no reset.
  virtual Status EnableMig(int gpu) = 0;
  // Switches MIG mode off. Errors: as EnableMig; kUnavailable also while the GPU has instances.
  virtual Status DisableMig(int gpu) = 0;
  // Resets the GPU, which activates a pending MIG mode (GpuInfo::mig_pending); takes some seconds.
  // REQUIRES: no process uses the GPU. Errors: kUnavailable (a process holds it), kUnimplemented
  // (it cannot be reset alone, or not from this process), kPermission.
  virtual Status ResetGpu(int /*gpu*/) {
    return {Code::kUnimplemented, "GPUs cannot be reset from here"};
  }
  // The mode lasts until the next reboot or reset, or until the driver is unloaded; then it is
  // kDefault again. Running programs continue. Errors: kInvalid (kOther), kPermission (the agent is
  // not root), kUnimplemented, kUnavailable.
  // Source: nvml.h nvmlDeviceSetComputeMode.
  virtual Status SetComputeMode(int gpu, ComputeMode mode) = 0;
  // Switches MPS mode on and off. In this mode the GPU has MPS shares instead of instances, and
  // GpuInfo::share_gib is set; see device/mps_gpus.h. Further error: kUnimplemented: MPS is not
  // available.
  virtual Status EnableMps(int /*gpu*/) { return NoMps(); }
  virtual Status DisableMps(int /*gpu*/) { return NoMps(); }
  // If true, GPUs that use neither MIG nor MPS have instances too: "gpu", the whole GPU, or
  // "shared", a time slice (device/plain_gpus.h). If false, such instances are forgotten.
  virtual void GiveWhole(bool /*give*/) {}
  // Restores instances that exist only in memory (device/mps_gpus.h) from the device ids that pods
  // hold: call it with all ids that the kubelet reports, before listing instances. Returns a
  // sentence for each id that cannot be restored.
  virtual std::vector<std::string> Adopt(std::span<const std::string> /*device_ids*/) { return {}; }
  // Readings of the whole GPU, and of one instance. Never an error: a metric that cannot be read
  // has a reason instead, and does not affect the others. Some rates compare with the last reading
  // of the same GPU or instance, so the first reading has none. They are meaningful 100 ms after
  // the last (nvml.h, GPM).
  virtual Readings MeasureGpu(int gpu) = 0;
  virtual Readings MeasureInstance(const GpuInstance& instance) = 0;

 private:
  static Status NoMps() { return {Code::kUnimplemented, "this agent does not share GPUs by MPS"}; }
};

}  // namespace nos::device
