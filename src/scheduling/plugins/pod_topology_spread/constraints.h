// Compiled topology spread constraints of one pod, for matching many nodes and pods.
//
// Pure functions of values; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/context.h"

namespace nos::scheduling {

inline constexpr std::string_view kHostname = "kubernetes.io/hostname";
inline constexpr std::string_view kDoNotSchedule = "DoNotSchedule";
inline constexpr std::string_view kScheduleAnyway = "ScheduleAnyway";

struct SpreadConstraint {
  std::string key;  // label key of nodes
  int32_t max_skew = 1, min_domains = 1;
  std::optional<cluster::LabelSelector> selector;      // absent: selects no pod
  bool honors_affinity = true, honors_taints = false;  // ignore nodes that the pod cannot use
  bool counts_itself = false;                          // the pod matches its own selector
};

// The pod's constraints with `action` as whenUnsatisfiable. For a pod without any constraints:
// those of `defaults`, with the pod's DefaultSelector.
std::vector<SpreadConstraint> ConstraintsOf(
    const cluster::Pod& pod, std::string_view action,
    std::span<const cluster::TopologySpreadConstraint> defaults,
    const cluster::ClusterContext& context);
// Only the pod's own constraints.
std::vector<SpreadConstraint> OwnConstraintsOf(const cluster::Pod& pod, std::string_view action);

bool HasAllKeys(std::span<const SpreadConstraint> constraints, const cluster::Node& node);
// True if pods on the node count. `selects_node`: the pod's node selector and affinity match the
// node.
bool Includes(const SpreadConstraint& constraint, const cluster::Pod& pod,
              const cluster::Node& node, bool selects_node);
// True if `other` counts: same namespace, selected, not terminating. An empty selector selects no
// pod, as in kube-scheduler.
bool Counts(const SpreadConstraint& constraint, std::string_view ns, const cluster::Pod& other);

}  // namespace nos::scheduling
