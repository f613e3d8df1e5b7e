// What packing sees of a node and of a pod: plain numbers, no names.
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

// Pods that ask for the same are one kind.
struct PodKind {
  int64_t cpu_milli = 0;
  int64_t memory_mib = 0;
  int gpus = 0;                 // devices; 0 = a pod without GPU
  int milli = 0;                // thousandths of each device, 1 to 1000; exactly 1000 when gpus > 1
  uint64_t models = kAnyModel;  // bit i: GPU model i will do

  friend auto operator<=>(const PodKind&, const PodKind&) = default;
};

// What is left of a node.
struct Node {
  int64_t cpu_milli = 0;
  int64_t memory_mib = 0;
  int64_t pods = std::numeric_limits<int64_t>::max();  // how many more may run here
  int model = 0;  // of its GPUs, 0 to kMaxModels - 1; the caller numbers the names
  std::vector<int> gpu_milli = {};  // thousandths left of each device, 0 to 1000

  friend bool operator==(const Node&, const Node&) = default;
};

// True when CPU, memory, pod count, model and devices all suffice. A pod of several GPUs needs that
// many untouched ones.
bool Fits(const Node& node, const PodKind& kind);

// The first `kind.gpus` devices with room for kind.milli each. REQUIRES: Fits(node, kind).
std::vector<int> FirstDevices(const Node& node, const PodKind& kind);

// Books a pod onto the given devices, and gives it back. Neither checks anything.
void Take(Node& node, const PodKind& kind, const std::vector<int>& devices);
void Return(Node& node, const PodKind& kind, const std::vector<int>& devices);

}  // namespace nos::scheduling::packing
