// Decides which pods may be moved: evicted, so that their controller creates a replacement on
// another node.
//
//   const Mobility mobility = MobilityOf(pod, rules);
//   EvictionBudgets budgets(snapshot);
//   if (mobility.kind == Mobility::kMoves && budgets.WhyNot(pod).empty()) budgets.Take(pod);
//
// Pure functions of values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/snapshot.h"
#include "planning/plan.h"

namespace nos::planning {

// Pod annotation. "true": the pod may be moved, whatever its controller. "false": it may not.
inline constexpr std::string_view kMovable = "nos.nebuly.com/movable";
// Source: cluster-autoscaler FAQ, "What types of pods can prevent CA from removing a node?".
inline constexpr std::string_view kSafeToEvict = "cluster-autoscaler.kubernetes.io/safe-to-evict";
// Node annotation. "true": the node is not removed.
inline constexpr std::string_view kScaleDownDisabled =
    "cluster-autoscaler.kubernetes.io/scale-down-disabled";
// Pod or node annotation. "true": the object is not disrupted. Source: Karpenter documentation,
// "Disruption".
inline constexpr std::string_view kDoNotDisrupt = "karpenter.sh/do-not-disrupt";

// Pods with at least this priority belong to the system. Source: k8s.io/kubernetes
// pkg/apis/scheduling, SystemCriticalPriority.
inline constexpr int32_t kSystemCritical = 2'000'000'000;

struct MobilityRules {
  // Allows moving pods with data on their node (hostPath, emptyDir not in memory) without an
  // annotation. The data is lost.
  bool local_storage = false;
  // Allows moving pods with host ports. The namespace of placeholders must admit such pods.
  bool host_ports = true;
};

struct Mobility {
  enum Kind {
    kMoves,
    kGoes,   // deleted with its node, or ends by itself: no target needed (DaemonSet, static pod,
             // terminating)
    kStays,  // must stay, and so must its node
  } kind = kMoves;
  std::string why;  // reason if kStays
};
// A system-critical priority or an annotation that forbids a move overrides everything else. An
// annotation that allows it overrides a missing controller, local data and gang membership. Without
// one, members of gangs stay, because the rest of the gang would wait for them. No annotation
// allows host ports against the rules.
Mobility MobilityOf(const cluster::Pod& pod, const MobilityRules& rules);

// The move of a running pod to another node.
struct Move {
  std::shared_ptr<const cluster::Pod> pod;  // as it runs now
  std::string from, to;
  std::vector<AssignedDevice> devices;  // on the node `to`
};

// Predicts the answers of the eviction API while a plan evicts more and more pods. Differs from
// preemption (scheduling/framework/budgets.h): an empty selector matches all pods of the namespace,
// and a pod matched by two budgets is never evicted. Source: k8s.io/kubernetes
// pkg/registry/core/pod/storage/eviction.go. A value type; copies are cheap.
class EvictionBudgets {
 public:
  // If the snapshot has no cluster context (ClusterSnapshot::ShareContext), no pod may be evicted.
  explicit EvictionBudgets(const cluster::ClusterSnapshot& snapshot);

  // "" if the pod may be evicted.
  std::string WhyNot(const cluster::Pod& pod) const;
  void Take(const cluster::Pod& pod);

 private:
  struct Budget {
    std::shared_ptr<const cluster::PodDisruptionBudget> budget;
    size_t number;
  };
  using Table = std::map<std::string, std::vector<Budget>, std::less<>>;  // by namespace

  std::vector<const Budget*> Of(const cluster::Pod& pod) const;

  bool known_ = false;
  std::shared_ptr<const Table> table_;  // shared by copies
  std::vector<int32_t> allowed_;        // by number
};

}  // namespace nos::planning
