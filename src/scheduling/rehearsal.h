// Simulates placements and evictions, one after the other, on a copy of the cluster, with the rules
// of Engine.
//
//   Rehearsal rehearsal = engine.Rehearse();
//   if (const auto* node = rehearsal.FindNode(framework, pod, promises, ""))
//     rehearsal.Place(framework, pod, node->node->meta.name);
//
// The engine must outlive it. Owned by one thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "cluster/snapshot.h"
#include "scheduling/engine/kind_tables.h"
#include "scheduling/plugin.h"

namespace nos::scheduling {

class Framework;

class Rehearsal {
 public:
  using Pod = std::shared_ptr<const cluster::Pod>;
  using Precomputed = std::map<const Framework*, CycleState>;

  Rehearsal(cluster::ClusterSnapshot snapshot, const Precomputed& precomputed)
      : snapshot_(std::move(snapshot)), precomputed_(precomputed) {}

  // PodDisruptionBudgets in it allow fewer disruptions after Evict.
  const cluster::ClusterSnapshot& snapshot() const { return snapshot_; }
  // Returns `preferred` if the pod fits there, else the best node. Null: no node fits.
  const cluster::NodeInfo* FindNode(const Framework& framework, const Pod& pod,
                                    const Promises& promises, std::string_view preferred);
  // Places the pod and reserves with all plugins. False: a plugin refused, and nothing was changed.
  bool Place(const Framework& framework, const Pod& pod, const std::string& node);
  // The pod ended and the node's agent reported its instances free.
  void Vacate(const Pod& pod, const std::string& node);
  void Evict(const Pod& victim, const std::string& node);
  void RemoveNode(const std::string& name);

 private:
  cluster::ClusterSnapshot snapshot_;
  const Precomputed& precomputed_;
  KindTables tables_;
  uint64_t context_version_ = 0;  // counts changes of the cluster context by reservations
};

// Result of the framework's last Precompute; empty if there was none.
const CycleState& PrecomputedOf(const Rehearsal::Precomputed& precomputed,
                                const Framework& framework);

// Adds to the pod the exact instances to create for it on the node, if instances must be created
// there. Otherwise returns the pod unchanged. `precomputed`: result of the framework's last
// Precompute.
std::shared_ptr<const cluster::Pod> WithInstances(const Framework& framework,
                                                  const CycleState& precomputed,
                                                  const cluster::NodeInfo& node,
                                                  std::shared_ptr<const cluster::Pod> pod);

}  // namespace nos::scheduling
