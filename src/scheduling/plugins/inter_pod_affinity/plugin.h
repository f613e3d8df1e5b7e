// Pods that want to be in the same topology domain as other pods, or must not be: required terms
// of the pod and required anti-affinity of those that run decide, preferred terms of both sides
// (and required affinity of those that run, with a weight of its own) add up to a score.
//
// Semantics: kube-scheduler's InterPodAffinity. Where its version 1.34 strays from the API's
// documentation this does not: a namespace selector that holds for a namespace without labels
// means the namespaces it selects, not all (kubernetes issue 141526). Its queueing hints miss
// events that help; these do not.
#pragma once

#include "scheduling/plugin.h"

namespace nos::scheduling {

// As in InterPodAffinityArgs.
struct InterPodAffinityOptions {
  int32_t hard_pod_affinity_weight = 1;  // 0 to 100; of required affinity of pods that run
  // For pods without preferred terms of their own.
  bool ignore_preferred_terms_of_existing_pods = false;
};

// Codes: "PodAffinityMismatch" (unresolvable), "PodAntiAffinity", "ExistingPodsAntiAffinity".
class InterPodAffinity final : public PreFilterPlugin, public FilterPlugin, public ScorePlugin {
 public:
  explicit InterPodAffinity(const InterPodAffinityOptions& options = {}) : options_(options) {}

  std::string Name() const override { return "InterPodAffinity"; }
  bool MayHelp(const ClusterEvent& event, const cluster::Pod& pod) const override;
  // Skips a pod without required terms that no pod repels.
  Outcome PreFilter(const cluster::Pod& pod, const cluster::ClusterSnapshot& snapshot,
                    CycleState& state) const override;
  // Fails when the first pod comes that repels one that was skipped, and when the first or last
  // comes or goes that a pod wants to be near to which, without any, may be anywhere.
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
  Anew UpdateFeasible(const cluster::NodeInfo&, bool, CycleState&) const override {
    return Anew::kNothing;
  }
  int64_t Score(const CycleState& state, const cluster::Pod& pod,
                const cluster::NodeInfo& node) const override;
  int64_t Normalized(int64_t score, int64_t lowest, int64_t highest) const override;

 private:
  InterPodAffinityOptions options_;
};

}  // namespace nos::scheduling
