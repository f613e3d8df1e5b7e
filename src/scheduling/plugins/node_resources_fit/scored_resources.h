// Resources that a score is computed from, and their use on a node including the pod.
//
//   const ScoredResources resources({{"cpu", 1}, {"nvidia.com/gpu", 5}}, Requests::kAssumed);
//   const std::vector<int64_t> asked = resources.AskedBy(pod);            // once per pod
//   resources.ForEach(asked, node, [&](int64_t taken, int64_t allocatable, int64_t weight) {...});
//
// Semantics: kube-scheduler's NodeResourcesFit and NodeResourcesBalancedAllocation. Immutable;
// thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/snapshot.h"

namespace nos::scheduling {

struct WeightedResource {
  std::string name;
  int64_t weight = 1;  // 1 to 100
  friend bool operator==(const WeightedResource&, const WeightedResource&) = default;
};

// Scored resources other than cpu, memory and ephemeral storage: extended resources, huge pages,
// attachable volumes, and names that contain "kubernetes.io/".
bool IsScalarResource(std::string_view name);
// Devices and other resources outside Kubernetes' own names: "example.com/dongle".
bool IsExtendedResource(std::string_view name);

class ScoredResources {
 public:
  // For pods without cpu or memory requests: kReal counts 0, kAssumed a small default
  // (cluster::ScoredRequests).
  enum class Requests { kReal, kAssumed };
  ScoredResources(const std::vector<WeightedResource>& resources, Requests requests);

  // Requested amounts, in the order of the resources.
  std::vector<int64_t> AskedBy(const cluster::Pod& pod) const;
  // Calls visit(taken, allocatable, weight) for every resource of the node, except scalar ones that
  // the pod does not request, since their use is irrelevant to it. `taken` may exceed
  // `allocatable`, which is positive.
  template <typename Function>
  void ForEach(const std::vector<int64_t>& asked, const cluster::NodeInfo& node,
               Function visit) const {
    for (size_t i = 0; i < resources_.size(); ++i) {
      const Resource& resource = resources_[i];
      if (resource.scalar && asked[i] == 0) continue;
      const int64_t allocatable = node.allocatable.Get(resource.id);
      if (allocatable <= 0) continue;
      visit(Taken(resource.id, node) + asked[i], allocatable, resource.weight);
    }
  }

 private:
  struct Resource {
    cluster::ResourceId id = 0;
    int64_t weight = 1;
    bool scalar = false;
  };
  int64_t Taken(cluster::ResourceId id, const cluster::NodeInfo& node) const {
    if (requests_ == Requests::kAssumed && id == cluster::kCpu) return node.scored.cpu;
    if (requests_ == Requests::kAssumed && id == cluster::kMemory) return node.scored.memory;
    return node.requested.Get(id);
  }

  std::vector<Resource> resources_;
  Requests requests_;
};

}  // namespace nos::scheduling
