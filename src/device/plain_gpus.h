// GPUs that are neither cut by MIG nor shared by MPS, as instances of a Backend: the whole of one,
// or time slices. The decorated backend keeps the others.
//
//   PlainGpus gpus(mps_gpus);
//   gpus.GiveWhole(true);
//   gpus.Adopt(ids_that_pods_hold);
//   gpus.Create(0, "gpu", 0);     // uuid "GPU-...": the GPU itself
//   gpus.Create(1, "shared", 2);  // uuid "GPU-...::time::2"
//
// The driver knows nothing of either: programs that have such a GPU at the same time take turns on
// it, and nothing keeps one from the memory of another. So instances are a list in memory. After a
// restart those that pods hold are known again from the ids that the kubelet tells. Thread-safe
// when the decorated backend is.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/backend.h"

namespace nos::device {

// One of the turns on a GPU.
struct TimeSlice {
  std::string gpu_uuid;  // "GPU-..."
  int start = 0;
  friend auto operator<=>(const TimeSlice&, const TimeSlice&) = default;
};
// "GPU-...::time::2".
std::string TimeSliceId(const TimeSlice& slice);
// Nothing when it is none's id, however close: one has one spelling.
std::optional<TimeSlice> ParseTimeSliceId(std::string_view id);

// Whether the driver makes such instances: neither shares, of GPUs or instances, nor these here.
// True for "".
bool IsMigProfile(std::string_view profile);

class PlainGpus : public Backend {
 public:
  // `backend` must outlive this.
  explicit PlainGpus(Backend& backend) : backend_(backend) {}

  void GiveWhole(bool give) override;
  // What a pod holds is the truth: it is taken beside whatever is there.
  std::vector<std::string> Adopt(std::span<const std::string> device_ids) override;
  // Of the GPU with this UUID, whether it answers or not.
  std::vector<GpuInstance> InstancesOn(const std::string& uuid);
  Result<std::vector<GpuInfo>> ListGpus() override;
  Result<std::vector<GpuInstance>> ListInstances(int gpu) override;
  // kExhausted also beside what excludes it.
  Result<GpuInstance> Create(int gpu, const std::string& profile, uint8_t start) override;
  Status Destroy(int gpu, uint32_t instance_id) override;
  // kUnavailable also while it has such instances.
  Status EnableMig(int gpu) override;
  Status DisableMig(int gpu) override { return backend_.DisableMig(gpu); }
  Status ResetGpu(int gpu) override;
  Status EnableMps(int gpu) override;
  Status DisableMps(int gpu) override { return backend_.DisableMps(gpu); }
  Status SetComputeMode(int gpu, ComputeMode mode) override;
  Readings MeasureGpu(int gpu) override { return backend_.MeasureGpu(gpu); }
  // Of the whole GPU what is measured of it; of a time slice nothing.
  Readings MeasureInstance(const GpuInstance& instance) override;

 private:
  // Its place among the instances of one GPU: -1 for the whole, else a time slice's start.
  using Instances = std::map<uint32_t, int>;  // by instance id

  const GpuInfo* Plain(int gpu) const;
  Status CheckEmpty(int gpu);
  GpuInstance ToInstance(const GpuInfo& info, uint32_t id, int place) const;
  void AdoptOne(const std::string& id);

  Backend& backend_;
  std::mutex mutex_;  // guards the rest
  bool gives_ = false;
  std::map<int, GpuInfo> infos_;                // as last listed
  std::map<std::string, Instances> instances_;  // by UUID of GPUs
  uint32_t next_id_ = 1;                        // of instances; never used twice
};

}  // namespace nos::device
