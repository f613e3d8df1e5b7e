// Shares of GPUs in MPS mode, as instances of a Backend: the decorated one keeps the GPUs that are
// not in this mode.
//
//   MpsGpus gpus(nvml);
//   gpus.EnableMps(0);
//   gpus.Adopt(ids_that_pods_hold);
//   gpus.Create(0, "10gb", 0);  // uuid "GPU-...::10::0"
//
// The driver knows nothing of a share: it is a limit that its clients are told (device/mps_share.h,
// and whoever answers Allocate). So shares are a list in memory. After a restart those that pods
// hold are known again from the ids that the kubelet tells; free ones are made anew as the spec
// asks.
//
// A GPU's shares together take whole GiB of what the driver tells less Options::overhead_mib,
// rounded down, and are not more than a server takes clients. Thread-safe when the decorated
// backend is.
#pragma once

#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "device/backend.h"
#include "device/mps_share.h"
#include "gpu/shares.h"

namespace nos::device {

struct MpsGpusOptions {
  // What clients cannot have of the memory that the driver tells. nvidia-cuda-mps-server takes 27
  // to 30 MiB on a V100 (nebuly-ai/nos issue 39), some hundred with several GPUs; the total that
  // NVML tells includes what the driver keeps for itself (nvml.h, nvmlMemory_v2_t.reserved).
  int64_t overhead_mib = gpu::kShareOverheadMib;
  // Each client process needs a connection of its own, so a share without one could not be used.
  // Clients of one server on a device: 48 up to CUDA 13.0, 60 from 13.1 on; fewer where
  // CUDA_DEVICE_MAX_CONNECTIONS is raised (docs.nvidia.com/deploy/mps, Client-Server Connection
  // Limits).
  int most_shares = gpu::kMostShares;
};

// The model of a GPU in MPS mode with these shares. They may be more than it may have by now, since
// pods have held them from before: then it has just those, and there is no room for others.
const gpu::Model& SharesModel(const GpuInfo& info, std::span<const GpuInstance> there);

class MpsGpus : public Backend {
 public:
  using Options = MpsGpusOptions;
  // `backend` must outlive this.
  explicit MpsGpus(Backend& backend, Options options = {}) : backend_(backend), options_(options) {}

  // From now on the GPU has shares instead of instances, and one program at a time may use it: the
  // MPS server. To be called now and then while it shall be so, since the driver forgets
  // (Backend::SetComputeMode); does nothing when it is.
  // Errors: kNotFound; kInvalid (MIG mode is on, or it has no GiB for shares); those of
  // SetComputeMode.
  Status EnableMps(int gpu) override;
  // To be called when its MPS daemon has ended. Errors: kUnavailable while it has shares; those of
  // SetComputeMode.
  Status DisableMps(int gpu) override;

  // Takes into the lists what pods hold: to be called with all device ids that the kubelet tells,
  // before instances are listed. Ids that are no shares, or of GPUs that are not in MPS mode, are
  // passed over. Returns a sentence for each of the others that cannot be: nothing is made of it.
  //
  // What a pod holds is the truth: it is taken although together they may be more than can be made,
  // and beside a share of another size that has got its number meanwhile.
  std::vector<std::string> Adopt(std::span<const std::string> device_ids) override;

  void GiveWhole(bool give) override { backend_.GiveWhole(give); }
  // In order of their numbers, whether the GPU answers or not; none: it is not in MPS mode.
  std::vector<GpuInstance> SharesOn(int gpu);
  // With GpuInfo::share_gib.
  Result<std::vector<GpuInfo>> ListGpus() override;
  Result<std::vector<GpuInstance>> ListInstances(int gpu) override;
  // kExhausted also when the memory or the number of clients does not suffice.
  Result<GpuInstance> Create(int gpu, const std::string& profile, uint8_t start) override;
  Status Destroy(int gpu, uint32_t instance_id) override;
  // kUnavailable also while the GPU is in MPS mode.
  Status EnableMig(int gpu) override;
  Status DisableMig(int gpu) override;
  // kUnavailable also while the GPU is in MPS mode.
  Status ResetGpu(int gpu) override;
  // kUnavailable also while the GPU is in MPS mode, but for kExclusiveProcess.
  Status SetComputeMode(int gpu, ComputeMode mode) override;
  Readings MeasureGpu(int gpu) override;
  // Nothing is measured of a share: NVML tells of processes, not of whose they are.
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

  Backend& backend_;
  const Options options_;
  std::mutex mutex_;                      // guards the rest
  std::map<int, GpuInfo> infos_;          // as last listed
  std::map<std::string, Shares> shares_;  // by UUID of GPUs in MPS mode
  uint32_t next_id_ = 1;                  // of instances; never used twice
};

}  // namespace nos::device
