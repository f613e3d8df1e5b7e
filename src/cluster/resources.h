// Resources as dense integers, for arithmetic in the hot path: cpu in thousandths of a core, all
// other resources in whole units (bytes, devices), like kube-scheduler.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cluster/objects.h"
#include "gpu/modes.h"

namespace nos::cluster {

using ResourceId = uint16_t;

inline constexpr ResourceId kCpu = 0;
inline constexpr ResourceId kMemory = 1;
inline constexpr ResourceId kEphemeralStorage = 2;
inline constexpr ResourceId kPods = 3;
// Stands for names without an id (resource_names.h): no node offers it.
inline constexpr ResourceId kUnknownResource = 0xffff;

inline constexpr std::string_view kMigResourcePrefix = "nvidia.com/mig-";
// Whole GPUs as offered by the NVIDIA device plugin.
inline constexpr std::string_view kWholeGpuResource = gpu::kWholeGpu;

// Names and ids, process-wide and append-only. Thread-safe. Ids depend on the order of first use,
// so never order user-visible output by them.
ResourceId InternResource(std::string_view name);
const std::string& ResourceName(ResourceId id);
// True if the resource is a slice, a part of a GPU that nos creates: a MIG instance
// ("nvidia.com/mig-1g.5gb"), a share of GPU memory ("nvidia.com/gpu-10gb") or a time slice
// ("nvidia.com/gpu.shared"). The lookup by id costs one memory read.
bool IsSliceResource(ResourceId id);
bool IsSliceResource(std::string_view name);

// Sorted by id; absent means 0, and 0 is never stored. Sums saturate at the limits of int64_t.
class ResourceVector {
 public:
  static ResourceVector From(const ResourceList& list);
  int64_t Get(ResourceId id) const;
  void Set(ResourceId id, int64_t amount);
  void Add(const ResourceVector& other);
  void Subtract(const ResourceVector& other);
  const std::vector<std::pair<ResourceId, int64_t>>& entries() const { return entries_; }
  // True if a sum is saturated: amounts added to it can no longer be subtracted.
  bool HasStopped() const;
  friend bool operator==(const ResourceVector&, const ResourceVector&) = default;

 private:
  std::vector<std::pair<ResourceId, int64_t>> entries_;
};

// For scores only: a container that requests no cpu or no memory counts as 100m and 200 MiB.
// Source: k8s.io/kubernetes pkg/scheduler/util, DefaultMilliCPURequest, DefaultMemoryRequest.
struct ScoredRequests {
  int64_t cpu = 0, memory = 0;  // thousandths of a core, bytes
  void Add(const ScoredRequests& other, int sign = 1);
  bool HasStopped() const;
  friend bool operator==(const ScoredRequests&, const ScoredRequests&) = default;
};
ScoredRequests ScoredRequestsOf(const Pod& pod);

// The pod's usage of a node: PodRequests, plus one of "pods".
ResourceVector RequestsOf(const Pod& pod);

}  // namespace nos::cluster
