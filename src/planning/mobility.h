// Which pods may be moved to another node: evicted, for what made them to make them anew.
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
#include "planning/planner.h"

namespace nos::planning {

// On a pod: "true": it may be moved, whatever it is of; "false": it may not.
inline constexpr std::string_view kMovable = "nos.nebuly.com/movable";
// Source: cluster-autoscaler FAQ, "What types of pods can prevent CA from removing a node?".
inline constexpr std::string_view kSafeToEvict = "cluster-autoscaler.kubernetes.io/safe-to-evict";
// On a node: "true": it stays.
inline constexpr std::string_view kScaleDownDisabled =
    "cluster-autoscaler.kubernetes.io/scale-down-disabled";
// On a pod or a node: "true": it stays. Source: Karpenter documentation, "Disruption".
inline constexpr std::string_view kDoNotDisrupt = "karpenter.sh/do-not-disrupt";

// Pods from here on are the system's. Source: k8s.io/kubernetes pkg/apis/scheduling,
// SystemCriticalPriority.
inline constexpr int32_t kSystemCritical = 2'000'000'000;

struct MobilityRules {
  // Pods with data on their node (hostPath, emptyDir that is not of memory) may be moved, which
  // loses it, without an annotation that says so.
  bool local_storage = false;
};

struct Mobility {
  enum Kind {
    kMoves,
    kGoes,   // with its node, or by itself: it needs no other (DaemonSet, static pod, ending)
    kStays,  // and so does its node
  } kind = kMoves;
  std::string why;  // it stays
};
// What it says itself goes before what it is of: a "no" before everything, a "yes" before the lack
// of a controller, local data, and its gang. Members of gangs stay otherwise: the others would
// wait for them.
Mobility MobilityOf(const cluster::Pod& pod, const MobilityRules& rules);

// A pod that is to run elsewhere.
struct Move {
  std::shared_ptr<const cluster::Pod> pod;  // as it runs
  std::string from, to;
  std::vector<AssignedDevice> devices;  // that it gets there
};

// What the eviction API would let go, while more and more pods are counted as gone. Unlike for
// preemption (scheduling/framework/budgets.h) an empty selector means all pods of the namespace, and a pod of
// two budgets is never let go. Source: k8s.io/kubernetes pkg/registry/core/pod/storage/eviction.go.
// Values; a copy is cheap.
class EvictionBudgets {
 public:
  // Where nobody has looked around (ClusterSnapshot::ShareAround), nothing is let go.
  explicit EvictionBudgets(const cluster::ClusterSnapshot& snapshot);

  // "": it may go.
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
  std::shared_ptr<const Table> table_;  // copies share it
  std::vector<int32_t> allowed_;        // by number
};

}  // namespace nos::planning
