// Shares of GPUs in MPS mode, as instances of a Backend. The decorated backend handles the GPUs in
// other modes.
//
//   MpsGpus gpus(nvml);
//   gpus.EnableMps(0);
//   gpus.Adopt(ids_that_pods_hold);
//   gpus.Create(0, "10gb", 0);  // uuid "GPU-...::10::0"
//
// The driver does not know shares: a share is a memory limit for its clients (device/mps_share.h;
// set by the answer to Allocate). Shares are therefore a list in memory. After a restart, Adopt()
// restores the shares held by pods from the ids that the kubelet reports; free ones are created
// again from the spec.
//
// All shares of a GPU together take at most the whole GiB of (reported memory -
// Options::overhead_mib), and are at most as many as a server's clients. Thread-safe if the
// decorated backend is.
#pragma once

#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "device/forwarding_backend.h"
#include "device/mps_share.h"
#include "gpu/shares.h"

namespace nos::device {

struct MpsGpusOptions {
  // Memory reported by the driver that clients cannot use. nvidia-cuda-mps-server takes 27 to 30
  // MiB on a V100 (nebuly-ai/nos issue 39), about a hundred with several GPUs; NVML's total
  // includes the driver's own reserve (nvml.h, nvmlMemory_v2_t.reserved).
  int64_t overhead_mib = gpu::kShareOverheadMib;
  // Each client process needs its own connection, so a share beyond the limit could not be used.
  // Clients of one server per device: 48 up to CUDA 13.0, 60 from 13.1 on; fewer if
  // CUDA_DEVICE_MAX_CONNECTIONS is raised (docs.nvidia.com/deploy/mps, Client-Server Connection
  // Limits).
  int max_shares = gpu::kMaxShares;
};

// The model of a GPU in MPS mode with these shares. If pods already hold more than the present
// limits allow, the model has exactly these shares and no capacity for others.
const gpu::Model& SharesModel(const GpuInfo& info, std::span<const GpuInstance> there);

class MpsGpus : public ForwardingBackend {
 public:
  using Options = MpsGpusOptions;
  // `backend` must outlive this.
  explicit MpsGpus(Backend& backend, Options options = {})
      : ForwardingBackend(backend), options_(options) {}

  // Switches MPS mode on: the GPU has shares instead of instances, and only one program, the MPS
  // server, may use it. Call it repeatedly, because the driver may lose the mode
  // (Backend::SetComputeMode); no effect if the mode is set.
  // Errors: kNotFound; kInvalid (MIG mode is on, or no GiB is left for shares); those of
  // SetComputeMode.
  Status EnableMps(int gpu) override;
  // Call this after the GPU's MPS daemon has ended. Errors: kUnavailable while it has shares; those
  // of SetComputeMode.
  Status DisableMps(int gpu) override;

  // Restores shares held by pods: call it with all device ids that the kubelet reports, before
  // listing instances. Skips ids that are not shares, or belong to GPUs outside MPS mode. Returns a
  // sentence for each other id that cannot be restored.
  //
  // A share held by a pod is restored even if all shares together exceed the limits, or if a share
  // of another size got its number meanwhile.
  std::vector<std::string> Adopt(std::span<const std::string> device_ids) override;

  // Sorted by number, also if the GPU does not answer; empty: not in MPS mode.
  std::vector<GpuInstance> SharesOn(int gpu);
  // Sets GpuInfo::share_gib.
  Result<std::vector<GpuInfo>> ListGpus() override;
  Result<std::vector<GpuInstance>> ListInstances(int gpu) override;
  // kExhausted also if the memory or the number of clients does not suffice.
  Result<GpuInstance> Create(int gpu, const std::string& profile, uint8_t start) override;
  Status Destroy(int gpu, uint32_t instance_id) override;
  // kUnavailable also while the GPU is in MPS mode.
  Status EnableMig(int gpu) override;
  // kUnavailable also while the GPU is in MPS mode.
  Status ResetGpu(int gpu) override;
  // kUnavailable also while the GPU is in MPS mode, except for kExclusiveProcess.
  Status SetComputeMode(int gpu, ComputeMode mode) override;
  // A share cannot be measured: NVML reports processes, but not their shares.
  Readings MeasureInstance(const GpuInstance& instance) override;

 private:
  using Shares = std::map<uint32_t, MpsShare>;  // by instance id
  struct Known {
    GpuInfo info;
    Shares* shares = nullptr;  // null: not in MPS mode
  };

  Result<Known> Find(int gpu);
  bool IsShared(int gpu);
  int CapacityOf(const GpuInfo& info) const;
  Status CheckRoom(const Known& gpu, int gib, int start) const;
  std::string AdoptOne(const std::string& id);

  const Options options_;
  std::mutex mutex_;                      // guards all members below
  std::map<int, GpuInfo> infos_;          // from the last ListGpus
  std::map<std::string, Shares> shares_;  // by UUID of GPUs in MPS mode
  uint32_t next_id_ = 1;                  // instance id; never reused
};

}  // namespace nos::device
