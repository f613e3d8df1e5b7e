// Spreads pods evenly over topology domains. A node whose domain would have too many pods compared
// to the domain with the fewest is refused (DoNotSchedule) or scores lower (ScheduleAnyway). Pods
// without constraints get default ones, counted over the pods that Services and owners select
// together with them.
//
// Semantics: kube-scheduler's PodTopologySpread, with two differences. A terminating pod, which
// does not count, is not deducted again when it is removed. Queueing hints also consider changes of
// node labels that the pod's node selection reads.
#pragma once

#include <vector>

#include "scheduling/plugin.h"

namespace nos::scheduling {

// The fields of PodTopologySpreadArgs.
struct PodTopologySpreadOptions {
  // defaultingType System: ScheduleAnyway over zones and nodes; `default_constraints` are unused.
  bool system_defaults = true;
  // Their selectors are unused; see DefaultSelector.
  std::vector<cluster::TopologySpreadConstraint> default_constraints = {};
};

// Codes: "TopologySpread", and "TopologyLabelMissing" (unresolvable).
class PodTopologySpread final : public PreFilterPlugin, public FilterPlugin, public ScorePlugin {
 public:
  explicit PodTopologySpread(PodTopologySpreadOptions options = {});

  std::string Name() const override { return "PodTopologySpread"; }
  bool MayHelp(const ClusterEvent& event, const cluster::Pod& pod) const override;
  // Skips pods without DoNotSchedule constraints.
  Outcome PreFilter(const cluster::Pod& pod, const cluster::ClusterSnapshot& snapshot,
                    CycleState& state) const override;
  bool Update(const cluster::Pod& pod, const cluster::Pod& other, bool came,
              const cluster::NodeInfo& node, CycleState& state, TouchDomain touch) const override;
  DependsOn Dependence() const override { return DependsOn::kCluster; }
  bool Concerns(const cluster::Pod& pod) const override;
  Verdict Filter(const CycleState& state, const cluster::Pod& pod,
                 const cluster::NodeInfo& node) const override;

  DependsOn ScoreDependence() const override { return DependsOn::kCluster; }
  bool PreScore(const cluster::Pod& pod, const cluster::ClusterSnapshot& snapshot, Nodes feasible,
                CycleState& state) const override;
  bool UpdateScore(const cluster::Pod& pod, const cluster::Pod& other, bool came,
                   const cluster::NodeInfo& node, CycleState& state,
                   TouchDomain touch) const override;
  Recompute UpdateFeasible(const cluster::NodeInfo& node, bool feasible,
                           CycleState& state) const override;
  int64_t Score(const CycleState& state, const cluster::Pod& pod,
                const cluster::NodeInfo& node) const override;
  int64_t Normalized(int64_t score, int64_t lowest, int64_t highest) const override;

 private:
  bool system_defaults_;
  std::vector<cluster::TopologySpreadConstraint> defaults_;
  bool hard_defaults_;  // a default constraint is DoNotSchedule
};

}  // namespace nos::scheduling
