// Affinity and anti-affinity between pods. Required terms of the pod and required anti-affinity of
// running pods are filters. Preferred terms of both sides, and required affinity of running pods
// with a configurable weight, are added to a score.
//
// Semantics: kube-scheduler's InterPodAffinity, with two corrections of version 1.34. A
// namespaceSelector that matches a namespace without labels selects the matching namespaces, not
// all (kubernetes/kubernetes issue 141526; the API documentation agrees). Queueing hints report all
// events that help; kube-scheduler's miss some.
#pragma once

#include "scheduling/plugin.h"

namespace nos::scheduling {

// The fields of InterPodAffinityArgs.
struct InterPodAffinityOptions {
  int32_t hard_pod_affinity_weight = 1;  // 0 to 100; weight of required affinity of running pods
  // For pods without own preferred terms.
  bool ignore_preferred_terms_of_existing_pods = false;
};

// Codes: "PodAffinityMismatch" (unresolvable), "PodAntiAffinity", "ExistingPodsAntiAffinity".
class InterPodAffinity final : public PreFilterPlugin, public FilterPlugin, public ScorePlugin {
 public:
  explicit InterPodAffinity(const InterPodAffinityOptions& options = {}) : options_(options) {}

  std::string Name() const override { return "InterPodAffinity"; }
  bool MayHelp(const ClusterEvent& event, const cluster::Pod& pod) const override;
  // Skips pods without required terms that no running pod's anti-affinity matches.
  Outcome PreFilter(const cluster::Pod& pod, const cluster::ClusterSnapshot& snapshot,
                    CycleState& state) const override;
  // Returns false if the filter was skipped and `other` is the first pod whose anti-affinity
  // matches, or if a pod that may start a new group gets its first matching pod or loses its last
  // one.
  bool Update(const cluster::Pod& pod, const cluster::Pod& other, bool came,
              const cluster::NodeInfo& node, CycleState& state, TouchDomain touch) const override;
  DependsOn Dependence() const override { return DependsOn::kCluster; }
  bool IsAsked(const cluster::Pod& pod) const override {
    return !pod.pod_affinity.required.empty() || !pod.pod_anti_affinity.required.empty();
  }
  Verdict Filter(const CycleState& state, const cluster::Pod& pod,
                 const cluster::NodeInfo& node) const override;

  DependsOn ScoreDependence() const override { return DependsOn::kCluster; }
  bool PreScore(const cluster::Pod& pod, const cluster::ClusterSnapshot& snapshot, Nodes feasible,
                CycleState& state) const override;
  bool UpdateScore(const cluster::Pod& pod, const cluster::Pod& other, bool came,
                   const cluster::NodeInfo& node, CycleState& state,
                   TouchDomain touch) const override;
  Recompute UpdateFeasible(const cluster::NodeInfo&, bool, CycleState&) const override {
    return Recompute::kNothing;
  }
  int64_t Score(const CycleState& state, const cluster::Pod& pod,
                const cluster::NodeInfo& node) const override;
  int64_t Normalized(int64_t score, int64_t lowest, int64_t highest) const override;

 private:
  InterPodAffinityOptions options_;
};

}  // namespace nos::scheduling
