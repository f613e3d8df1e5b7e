// Kubernetes objects as packing sees them: the bridge from a snapshot to node.h and demand.h.
//
//   const View view(snapshot);
//   Demand demand = view.DemandOf(snapshot, waiting);
//   Node node = view.NodeOf(info);
//   PodKind kind = view.KindOf(pod, cluster::RequestsOf(pod));
//
// A device of a node is a MIG GPU, filled by the share of its slots that instances in use take, or
// a whole one as "nvidia.com/gpu" counts them, which is free or taken.
// Immutable after construction; may be read from any thread. The catalogue must outlive it.
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

// More devices of one pod or node are not believed.
constexpr int64_t kMostDevices = 256;

// Whole GPUs as the device plugin offers them: "nvidia.com/gpu".
cluster::ResourceId WholeGpuResource();

// Whether the node has GPUs of any kind, taken or not.
bool HasGpus(const cluster::NodeInfo& node);

// Where a node stands among equal ones: a fixed order that looks random, the same on every machine.
// First fit packs better along it than along names or kinds of nodes, which come in runs.
uint32_t TieOrder(const std::string& node_name);

class View {
 public:
  // Numbers the GPU models by product label. Beyond kMaxModels the rest count as one.
  explicit View(const cluster::ClusterSnapshot& snapshot);

  Node NodeOf(const cluster::NodeInfo& info) const;
  // The pod without its slices. `requests` are those of the pod.
  PodKind KindOf(const cluster::Pod& pod, const cluster::ResourceVector& requests) const;
  // The same with one share of a GPU's memory (gpu/shares.h), which may be had on any GPU model
  // that the node has; nothing: on none of the node's GPUs.
  static std::optional<PodKind> KindWithShare(PodKind kind, const cluster::NodeInfo& info,
                                              cluster::ResourceId share);
  // Pods that run and pods that wait; each slice counts like a pod with its part of CPU and memory.
  // DaemonSet pods do not choose their node and are left out.
  Demand DemandOf(const cluster::ClusterSnapshot& snapshot,
                  std::span<const std::shared_ptr<const cluster::Pod>> waiting) const;

 private:
  struct Product {
    cluster::Node node;  // nothing but the product label
    // What its nodes' GPUs that nos divides are or may be.
    std::vector<const gpu::Model*> models;
  };
  // A slice's share of a GPU, and where it can be cut.
  struct Slice {
    int milli = 0;  // 0: on no GPU here
    uint64_t models = 0;
  };

  uint64_t ModelsOf(const cluster::Pod& pod) const;
  Slice SliceOf(cluster::ResourceId resource) const;
  void Learn(const cluster::Pod& pod, Demand& demand) const;

  std::vector<Product> products_;  // by number
  std::map<std::string, int> number_of_;
};

}  // namespace nos::scheduling::packing
