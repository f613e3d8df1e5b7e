// Pods that are to be spread evenly over topology domains: a node whose domain would have too many
// more of them than the domain with the fewest is refused (DoNotSchedule), or comes later
// (ScheduleAnyway). Pods without constraints of their own get default ones, for the pods that
// services and owners select together with them.
//
// Semantics: kube-scheduler's PodTopologySpread. Unlike there, pods on their way out do not count
// either when they go, and events wake pods also for labels of a node that its selection reads.
#pragma once

#include <vector>

#include "scheduling/plugin.h"

namespace nos::scheduling {

// As in PodTopologySpreadArgs.
struct PodTopologySpreadOptions {
  // defaultingType System: over zones and nodes, ScheduleAnyway; `default_constraints` are unused.
  bool system_defaults = true;
  // Their selectors are.
  std::vector<cluster::TopologySpreadConstraint> default_constraints = {};
};

// Codes: "TopologySpread", and "TopologyLabelMissing" (unresolvable).
class PodTopologySpread final : public PreFilterPlugin, public FilterPlugin, public ScorePlugin {
 public:
  explicit PodTopologySpread(PodTopologySpreadOptions options = {});

  std::string Name() const override { return "PodTopologySpread"; }
  bool MayHelp(const ClusterEvent& event, const cluster::Pod& pod) const override;
  // Skips pods without constraints.
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
  Anew UpdateFeasible(const cluster::NodeInfo& node, bool feasible,
                      CycleState& state) const override;
  int64_t Score(const CycleState& state, const cluster::Pod& pod,
                const cluster::NodeInfo& node) const override;
  int64_t Normalized(int64_t score, int64_t lowest, int64_t highest) const override;

 private:
  bool system_defaults_;
  std::vector<cluster::TopologySpreadConstraint> defaults_;
  bool hard_defaults_;  // some of them are DoNotSchedule
};

}  // namespace nos::scheduling
