// MPS shares that Nebuly's device plugin offers (nebuly-ai/k8s-device-plugin): of each size that a
// GPU has shares of it offers so many, numbered from 0, "<GPU-UUID>::<GiB>::<number>". So shares
// here are named, whatever their starts are: a new one has the lowest number of its size that is
// free, and whoever holds one keeps those of lower numbers there with it, as far as they fit. A GPU
// that gets into MPS mode has what the kubelet offers of it, as far as that fits. What no pod has
// held yet makes room for what a pod holds.
// Source: internal/rm/device_map.go and devices.go there (NewMPSAnnotatedID).
//
// Thread-safe when the decorated backend is, but that EnableMps asks the kubelet.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "device/mps_gpus.h"

namespace nos::device {

class NebulyGpus final : public MpsGpus {
 public:
  // The ids of all healthy devices that the kubelet offers.
  using Offered = std::function<Result<std::vector<std::string>>()>;

  NebulyGpus(Backend& backend, Options options, Offered offered)
      : MpsGpus(backend, options), offered_(std::move(offered)) {}

  // Also those of `offered`: nothing is known of the GPU's shares then, nor which of them pods
  // hold.
  Status EnableMps(int gpu) override;
  Status DisableMps(int gpu) override;
  // Whether any GPU is in MPS mode.
  bool AnyShared();
  std::vector<std::string> Adopt(std::span<const std::string> device_ids) override;
  Result<std::vector<GpuInstance>> ListInstances(int gpu) override;
  Result<GpuInstance> Create(int gpu, const std::string& profile, uint8_t start) override;
  Status Destroy(int gpu, uint32_t instance_id) override;

 private:
  Result<std::string> UuidOf(int gpu);
  bool IsNamed(const std::string& name) const;
  std::vector<MpsShare> NotListed(const std::set<MpsShare>& held) const;
  void AdoptOffered(const std::string& uuid, const std::vector<std::string>& ids);
  void MakeRoom(const GpuInfo& gpu);
  Status Remove(int gpu, uint32_t instance_id);
  std::string AdoptOne(const MpsShare& share, const GpuInfo& gpu, bool held);
  void Rename(GpuInstance& instance) const;

  const Offered offered_;
  std::mutex mutex_;                          // guards the rest
  std::set<std::string> shared_;              // UUIDs of GPUs in MPS mode: indexes change
  std::map<std::string, std::string> names_;  // the plugin's id, by that of MpsGpus
  std::set<std::string> unused_;              // the plugin's ids of what no pod has held yet
};

}  // namespace nos::device
