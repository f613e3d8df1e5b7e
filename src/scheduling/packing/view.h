// Converts a cluster snapshot to the model of packing (node.h and demand.h).
//
//   const View view(snapshot);
//   Demand demand = view.DemandOf(snapshot, waiting);
//   Node node = view.NodeOf(info);
//   PodKind kind = view.KindOf(pod, cluster::RequestsOf(pod));
//
// A device of a node is either a MIG GPU, filled by the share of its slots that used instances
// take, or a whole GPU as counted by "nvidia.com/gpu", which is free or taken.
//
// Immutable after construction; thread-safe for reads. The catalogue must outlive it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cluster/snapshot.h"
#include "scheduling/packing/demand.h"
#include "scheduling/packing/node.h"

namespace nos::scheduling::packing {

// Upper bound on plausible device counts of a pod or node; larger values are clamped.
constexpr int64_t kMaxDevices = 256;

// Whole GPUs as advertised by the device plugin: "nvidia.com/gpu".
cluster::ResourceId WholeGpuResource();

// True if the node has GPUs of any kind, free or taken.
bool HasGpus(const cluster::NodeInfo& node);

// Rank of a node among equal ones: a fixed pseudo-random order, the same on every machine. First
// fit packs better in this order than in the order of names or node types, which come in runs.
uint32_t TieOrder(const std::string& node_name);

class View {
 public:
  // Numbers the GPU models by product label. Models beyond kMaxModels share one number.
  explicit View(const cluster::ClusterSnapshot& snapshot);

  Node NodeOf(const cluster::NodeInfo& info) const;
  // Kind of the pod without its slices. `requests`: the pod's requests.
  PodKind KindOf(const cluster::Pod& pod, const cluster::ResourceVector& requests) const;
  // The same with one MPS share (gpu/shares.h) on any GPU model of the node. Absent: none of the
  // node's GPUs offers it.
  static std::optional<PodKind> KindWithShare(PodKind kind, const cluster::NodeInfo& info,
                                              cluster::ResourceId share);
  // Demand of running and waiting pods. Each slice counts as a pod with its part of CPU and memory.
  // DaemonSet pods do not choose their node and are ignored.
  Demand DemandOf(const cluster::ClusterSnapshot& snapshot,
                  std::span<const std::shared_ptr<const cluster::Pod>> waiting) const;

 private:
  struct Product {
    cluster::Node node;  // only the product label is set
    // Models that managed GPUs of its nodes are or may be switched to.
    std::vector<const gpu::Model*> models;
  };
  // Size of a slice on a GPU, and the models that can create it.
  struct Slice {
    int milli = 0;  // 0: no GPU in the cluster offers it
    uint64_t models = 0;
  };

  uint64_t ModelsOf(const cluster::Pod& pod) const;
  Slice SliceOf(cluster::ResourceId resource) const;
  void Precompute(const cluster::Pod& pod, Demand& demand) const;

  std::vector<Product> products_;  // by number
  std::map<std::string, int> number_of_;
};

}  // namespace nos::scheduling::packing
