// What a pod counts for in its namespace's quota: all that it requests, and
// nos.nebuly.com/gpu-memory, in GB, for what it has of GPUs:
//
//   nvidia.com/mig-1g.10gb: 2     20: the memory in the profile's name
//   nvidia.com/gpu-8gb: 1          8: an MPS share
//   nvidia.com/gpu: 1             80: the memory of the node's GPUs (label nvidia.com/gpu.memory)
//   nvidia.com/gpu.shared: 1      20: the same, by the number of pods that share one (label
//                                     nvidia.com/gpu.replicas; on hybrid nodes that of their time
//                                     slices), rounded up
//
// Pure functions of values.
#pragma once

#include <cstdint>
#include <string_view>

#include "quota/amounts.h"

namespace nos::quota {

inline constexpr std::string_view kGpuMemory = "nos.nebuly.com/gpu-memory";

struct ChargeRules {
  // GB of a whole GPU of which nobody tells what it is (nvidiaGpuResourceMemoryGB of the Go
  // system).
  int64_t gpu_memory_gb = 32;
  // GB of a time slice where no node is known yet; 0: as a whole GPU.
  int64_t time_slice_gb = 0;
};

// GB of what has no memory in its name.
struct GpuWorth {
  int64_t whole = 0;       // a GPU
  int64_t time_slice = 0;  // one of the turns on it
  friend auto operator<=>(const GpuWorth&, const GpuWorth&) = default;
};
// Of the node's GPUs: as its label nvidia.com/gpu.memory says, else as the model has it that its
// agent has found or that its label nvidia.com/gpu.product names. Where GPUs differ, of the
// largest. Null: no node.
GpuWorth GpuWorthOf(const cluster::Node* node, const ChargeRules& rules);

// Whether it counts for more on one node than on another.
bool DependsOnNode(const cluster::Pod& pod);

// `node`: where it is, or null.
Amounts ChargeOf(const cluster::Pod& pod, const cluster::Node* node, const ChargeRules& rules);

}  // namespace nos::quota
