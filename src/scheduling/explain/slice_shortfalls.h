// Counts what keeps a pod's slices from the nodes that only say "Insufficient". Texts are rendered
// once per reason. Internal to explanations.
//
//   SliceShortfalls lacks(demand);
//   for (...) lacks.Add(obstacles, node);
//   lacks.Refine(diagnosis);
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "scheduling/explain/obstacles.h"
#include "scheduling/remedies.h"

namespace nos::scheduling {

// Refers to the demand and to the added nodes.
class SliceShortfalls {
 public:
  explicit SliceShortfalls(const SliceDemand& demand) : demand_(demand) {}
  // Ignores nodes that another filter refuses first, and nodes whose GPUs can be partitioned for
  // the pod: there the slices are just missing.
  void Add(const Obstacles& here, const cluster::NodeInfo& node);
  // Replaces the reasons of the added nodes. Reasons of nodes that can never serve the pod come
  // last.
  void Refine(Diagnosis& diagnosis) const;

 private:
  enum class Kind { kNotPartitioned, kGpuProblem, kNoGpu, kNoRoom, kNoRoomBesideUsed };
  // The kind, with the sharing mode, problem or resource that its text names, and for kNoGpu the
  // models of the node.
  using Key = std::tuple<Kind, std::string_view, std::vector<const gpu::Model*>>;
  struct Found {
    int nodes = 0;
    const cluster::NodeInfo* example = nullptr;
  };

  Key KeyOf(const cluster::NodeInfo& node) const;
  Diagnosis::Entry EntryOf(const Key& key, const Found& found) const;

  const SliceDemand& demand_;
  std::map<Key, Found> found_;
  std::map<std::string, int> replaced_;  // nodes by resource
};

}  // namespace nos::scheduling
