// Gives pods the devices that they claim (spec.resourceClaims), of any driver.
//
// Semantics: kube-scheduler's DynamicResources as of Kubernetes 1.37; src/dra lists the
// differences. For extended resources that a DeviceClass serves, the plugin creates a claim on a
// node that does not offer them (dra/extended_resources.h).
//
// Devices and nodes are chosen where GPUs stay most useful (dra/least_loss.h), as GpuPacking does
// for slices of device plugins. The score is kMaxScore on the best node. It decreases by one for
// each hundredth of a GPU that is lost beyond that node's loss, and by kMaxScore for each
// alternative of a firstAvailable request that comes before the allocated one. Ties: the fewest
// free slots left, then the most instances.
#pragma once

#include "dra/extended_resources.h"
#include "scheduling/plugin.h"

namespace nos::scheduling {

// True if the pod has claims, or may get one for its extended resources.
inline bool MayTakeDevices(const cluster::Pod& pod) {
  return pod.HasClaims() || dra::AsksForExtendedResources(pod);
}

// Codes: "ResourceClaimNotCreated" before the queue; for all nodes: "ResourceClaimNotFound",
// "ResourceClaimDeleted", "ResourceClaimInUse", "ResourceClaimOfAnother", "DevicesRefused",
// "DevicesFailed"; for one node: "InsufficientDevices", "DevicesElsewhere", "DevicesRefused"; while
// binding: "WaitsForDevices", "DevicesFailed", "DeviceBindingTimeout".
//
// Reserve assumes the allocations that PreBind then writes: in the index of devices, or without one
// in the snapshot's cluster context. If a write fails, the caller must call Unreserve. The plugin
// does nothing without ResourceClaims in the cluster context.
class DynamicResources final : public PreEnqueuePlugin,
                               public PreFilterPlugin,
                               public FilterPlugin,
                               public ScorePlugin,
                               public ReservePlugin,
                               public PreBindPlugin {
 public:
  // `patience`: time for binding conditions (bindingTimeout).
  explicit DynamicResources(Duration patience = std::chrono::seconds(600)) : patience_(patience) {}

  std::string Name() const override { return "DynamicResources"; }
  Verdict PreEnqueue(const cluster::Pod& pod) const override;
  Outcome PreFilter(const cluster::Pod& pod, const cluster::ClusterSnapshot& snapshot,
                    CycleState& state) const override;
  // Classes, taint rules and devices that several nodes can use are in the cluster context. A
  // change of devices or claims that concerns one node arrives as a change of that node.
  DependsOn Dependence() const override { return DependsOn::kCluster; }
  bool Concerns(const cluster::Pod& pod) const override { return MayTakeDevices(pod); }
  bool ChoosesDevices() const override { return true; }
  bool ConcernsIn(const cluster::ClusterSnapshot& snapshot, const cluster::Pod& pod) const override;
  Verdict Filter(const CycleState& state, const cluster::Pod& pod,
                 const cluster::NodeInfo& node) const override;
  bool PreScore(const cluster::Pod& pod, const cluster::ClusterSnapshot& snapshot, Nodes feasible,
                CycleState& state) const override;
  int64_t Score(const CycleState& state, const cluster::Pod& pod,
                const cluster::NodeInfo& node) const override;
  int64_t Normalized(int64_t score, int64_t lowest, int64_t highest) const override;
  bool KeepsDifferences(int64_t lowest, int64_t highest, int64_t reference) const override;
  uint64_t Order(const CycleState& state, const cluster::Pod& pod,
                 const cluster::NodeInfo& node) const override;
  Verdict Reserve(const cluster::Pod& pod, std::string_view node,
                  cluster::ClusterSnapshot& snapshot, CycleState& state) const override;
  void Unreserve(const cluster::Pod& pod, std::string_view node, cluster::ClusterSnapshot& snapshot,
                 CycleState& state) const override;
  Progress PreBind(const cluster::Pod& pod, std::string_view node,
                   const cluster::ClusterSnapshot& snapshot, Time now,
                   CycleState& state) const override;
  std::vector<codec::ApiRequest> PostFilter(
      const cluster::Pod& pod, const cluster::ClusterSnapshot& snapshot) const override;
  bool MayHelp(const ClusterEvent& event, const cluster::Pod& pod) const override;

 private:
  Duration patience_;
};

// The most alternatives that a request of the pod's unallocated claims lists (firstAvailable); 1 if
// none does.
size_t AlternativesOf(const cluster::Pod& pod, const cluster::ClusterContext& context);

// Appends to the kind of a pod (KindOf) which claims its devices come from: pods whose claims ask
// for the same have the same kind until devices are allocated to them.
void AppendClaims(const cluster::Pod& pod, const cluster::ClusterContext& context,
                  std::string& kind);

}  // namespace nos::scheduling
