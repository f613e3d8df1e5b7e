// GPUs that use neither MIG nor MPS, as instances of a Backend: one whole GPU, or time slices. The
// decorated backend handles the other GPUs.
//
//   PlainGpus gpus(mps_gpus);
//   gpus.GiveWhole(true);
//   gpus.Adopt(ids_that_pods_hold);
//   gpus.Create(0, "gpu", 0);     // uuid "GPU-...": the GPU itself
//   gpus.Create(1, "shared", 2);  // uuid "GPU-...::time::2"
//
// The driver knows neither: programs on such a GPU take turns, without memory isolation. Instances
// are therefore a list in memory. After a restart, Adopt() restores those held by pods from the ids
// that the kubelet reports. Thread-safe if the decorated backend is.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/forwarding_backend.h"

namespace nos::device {

// One time slice of a GPU.
struct TimeSlice {
  std::string gpu_uuid;  // "GPU-..."
  int start = 0;
  friend auto operator<=>(const TimeSlice&, const TimeSlice&) = default;
};
// "GPU-...::time::2".
std::string TimeSliceId(const TimeSlice& slice);
// Empty if it is not a slice's id; only one spelling is accepted.
std::optional<TimeSlice> ParseTimeSliceId(std::string_view id);

// True if the driver creates such instances, i.e. it is not a profile of MPS shares (of GPUs or
// instances), of a whole GPU or of a time slice. True for "".
bool IsMigProfile(std::string_view profile);

class PlainGpus : public ForwardingBackend {
 public:
  // `backend` must outlive this.
  explicit PlainGpus(Backend& backend) : ForwardingBackend(backend) {}

  void GiveWhole(bool give) override;
  // An instance held by a pod is restored beside all existing ones.
  std::vector<std::string> Adopt(std::span<const std::string> device_ids) override;
  // Instances of the GPU with this UUID, also if it does not answer.
  std::vector<GpuInstance> InstancesOn(const std::string& uuid);
  Result<std::vector<GpuInfo>> ListGpus() override;
  Result<std::vector<GpuInstance>> ListInstances(int gpu) override;
  // kExhausted also if an existing instance excludes it.
  Result<GpuInstance> Create(int gpu, const std::string& profile, uint8_t start) override;
  Status Destroy(int gpu, uint32_t instance_id) override;
  // kUnavailable also while it has such instances.
  Status EnableMig(int gpu) override;
  Status ResetGpu(int gpu) override;
  Status EnableMps(int gpu) override;
  Status SetComputeMode(int gpu, ComputeMode mode) override;
  // A whole GPU has the readings of its GPU; a time slice cannot be measured.
  Readings MeasureInstance(const GpuInstance& instance) override;

 private:
  // Key among the instances of one GPU: -1 for the whole GPU, else the time slice's start.
  using Instances = std::map<uint32_t, int>;  // by instance id

  const GpuInfo* Plain(int gpu) const;
  Status CheckEmpty(int gpu);
  GpuInstance ToInstance(const GpuInfo& info, uint32_t id, int place) const;
  void AdoptOne(const std::string& id);

  std::mutex mutex_;  // guards all members below
  bool gives_ = false;
  std::map<int, GpuInfo> infos_;                // from the last ListGpus
  std::map<std::string, Instances> instances_;  // by UUID of GPUs
  uint32_t next_id_ = 1;                        // instance id; never reused
};

}  // namespace nos::device
