// Pending pods for which capacity is held on a node (kube-scheduler's nominator), and which of them
// go before another pod.
//
//   Nominator nominator(cache, charges, evicted);
//   nominator.Set(pod, "node-1", false);
//   nominator.FirstOn("node-1", other, before);  // {pod}, if it goes before `other`
//
// Each nomination has a standing: guaranteed by min of its quota, covered by a quota that borrows,
// or without a quota. Guaranteed pods go first; promises.h has the rules for the capacity itself.
// Standings are computed when they are asked for, after quotas, their use or evictions changed.
//
// The constructor's arguments must outlive it. Owned by one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "scheduling/engine/cluster_cache.h"
#include "scheduling/engine/evicted_pods.h"
#include "scheduling/engine/quota_charges.h"
#include "scheduling/plugin.h"

namespace nos::scheduling {

class Nominator {
 public:
  using Pod = std::shared_ptr<const cluster::Pod>;
  enum class QuotaStanding { kNone, kCovered, kGuaranteed };  // kNone: the pod has no quota
  struct Nomination {
    Pod pod;
    std::string key;
    uint64_t number;  // order of nominations; 0: read from the API server
    // On the node; set for pods with a quota.
    std::optional<quota::ChargeParts> charge;
    QuotaStanding standing;
    bool by_others;  // another scheduler serves the pod
  };
  using ByNode = std::map<std::string, std::vector<Nomination>, std::less<>>;
  enum class Effect { kNone, kTakes, kFrees };  // on capacity for other pods

  Nominator(const ClusterCache& cache, const QuotaCharges& charges, const EvictedPods& evicted)
      : cache_(cache), charges_(charges), evicted_(evicted) {}

  // An empty `node` removes the nomination.
  Effect Set(const Pod& pod, const std::string& node, bool by_others);
  // Charges of pods nominated for the node may have changed.
  void OnChargesChange(std::string_view node);
  // The set of evicted pods changed.
  void OnEvictionsChange() { outdated_ = true; }

  bool empty() const { return nodes_.empty(); }
  // The pod's nominated node, or "".
  std::string NodeOf(const std::string& pod_key) const;
  // Null: the pod is not nominated.
  const std::string* FindNodeOf(const std::string& pod_key) const;
  // All nominations, with their current charges and standings.
  const ByNode& Standings() const;
  // Pods nominated for the node.
  std::vector<Pod> On(std::string_view node) const;
  // Pods nominated for the node that go after this pod, which is about to be nominated.
  std::vector<Pod> Behind(std::string_view node, const cluster::Pod& pod) const;
  // Pods nominated for the node that go before this pod, in the order in which they get capacity.
  // `before`: cache for one pod; start with an absent one.
  std::vector<Pod> FirstOn(std::string_view node, const cluster::Pod& pod,
                           std::optional<quota::Amounts>& before) const;
  // The same for all nodes. Excludes pods whose keys are in `left_out`.
  Promises AllFirst(const cluster::Pod& pod, const std::set<std::string>& left_out) const;
  // True if min of the pod's quota covers the pod, nominated or not. `node`: the pod's node, if
  // known.
  bool IsGuaranteed(const cluster::Pod& pod, std::string_view node) const;

 private:
  quota::ChargeParts ChargeOn(const cluster::Pod& pod, std::string_view node) const;
  quota::Amounts NominatedBefore(const cluster::Pod& pod) const;
  QuotaStanding StandingOf(const cluster::Pod& pod, size_t account, const quota::Amounts& charge,
                           const quota::Amounts& before) const;
  // `before`: cache of NominatedBefore(pod), which is equal for all nodes.
  QuotaStanding StandingOf(const cluster::Pod& pod, std::string_view node,
                           std::optional<quota::Amounts>& before) const;
  bool GoesFirst(const Nomination& other, const cluster::Pod& pod, QuotaStanding own,
                 bool is_nominated) const;
  void Outdate(const cluster::Pod& pod);

  const ClusterCache& cache_;
  const QuotaCharges& charges_;
  const EvictedPods& evicted_;
  mutable ByNode by_node_;
  // Charges and standings in by_node_ are those of this version of the charges, unless outdated.
  mutable uint64_t standings_version_ = 0;
  mutable bool outdated_ = false;
  uint64_t made_ = 0;
  std::unordered_map<std::string, std::string> nodes_;  // pod key -> node
};

}  // namespace nos::scheduling
