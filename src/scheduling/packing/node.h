// Model of nodes and pods for packing: plain numbers without names.
//
//   Node node{.cpu_milli = 96'000, .memory_mib = 393'216, .gpu_milli = {1000, 1000}};
//   PodKind half{.cpu_milli = 4000, .memory_mib = 8192, .gpus = 1, .milli = 470};
//   if (Fits(node, half)) Take(node, half, {0});  // gpu_milli is now {530, 1000}
//
// Plain values, safe to copy and to use from any thread.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace nos::scheduling::packing {

constexpr int kWholeGpu = 1000;  // thousandths of one GPU
constexpr int kMaxModels = 64;
constexpr uint64_t kAnyModel = ~uint64_t{0};

// Pods with equal requests are one kind.
struct PodKind {
  int64_t cpu_milli = 0;
  int64_t memory_mib = 0;
  int gpus = 0;                 // devices; 0: no GPU
  int milli = 0;                // thousandths of each device, 1 to 1000; must be 1000 if gpus > 1
  uint64_t models = kAnyModel;  // bit i: GPU model i is acceptable

  friend auto operator<=>(const PodKind&, const PodKind&) = default;
};

// Free resources of a node.
struct Node {
  int64_t cpu_milli = 0;
  int64_t memory_mib = 0;
  int64_t pods = std::numeric_limits<int64_t>::max();  // number of further pods
  int model = 0;  // number of its GPU model, 0 to kMaxModels - 1, assigned by the caller
  std::vector<int> gpu_milli = {};  // free thousandths of each device, 0 to 1000

  friend bool operator==(const Node&, const Node&) = default;
};

// True if CPU, memory, pod count, model and devices are sufficient. A pod with several GPUs needs
// as many unused ones.
bool Fits(const Node& node, const PodKind& kind);

// The first `kind.gpus` devices with kind.milli free each. REQUIRES: Fits(node, kind).
std::vector<int> FirstDevices(const Node& node, const PodKind& kind);

// Deducts a pod's resources on the given devices, and adds them back. Both are unchecked.
void Take(Node& node, const PodKind& kind, const std::vector<int>& devices);
void Return(Node& node, const PodKind& kind, const std::vector<int>& devices);

}  // namespace nos::scheduling::packing
