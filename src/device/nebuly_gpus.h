// MPS shares offered by Nebuly's device plugin (nebuly-ai/k8s-device-plugin). For each size on a
// GPU, the plugin offers a count of shares, numbered from 0: "<GPU-UUID>::<GiB>::<number>". This
// class names shares in the same way, whatever their starts: a new share gets the lowest free
// number of its size, and a share held by a pod also keeps all lower numbers of its size, as far as
// they fit. A GPU that enters MPS mode gets the shares that the kubelet offers for it, as far as
// they fit. Shares that no pod has held yet are removed when a held share needs their capacity.
// Source: internal/rm/device_map.go and devices.go there (NewMPSAnnotatedID).
//
// Thread-safe if the decorated backend is; EnableMps asks the kubelet.
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
  // Returns the ids of all healthy devices that the kubelet offers.
  using Offered = std::function<Result<std::vector<std::string>>()>;

  NebulyGpus(Backend& backend, Options options, Offered offered)
      : MpsGpus(backend, options), offered_(std::move(offered)) {}

  // Also returns errors of `offered`: the GPU's shares, and which of them pods hold, are then
  // unknown.
  Status EnableMps(int gpu) override;
  Status DisableMps(int gpu) override;
  // True if any GPU is in MPS mode.
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
  std::mutex mutex_;                          // guards all members below
  std::set<std::string> shared_;              // UUIDs of GPUs in MPS mode; indexes may change
  std::map<std::string, std::string> names_;  // id of MpsGpus -> the plugin's id
  std::set<std::string> unused_;              // the plugin's ids of shares that no pod has held yet
};

}  // namespace nos::device
