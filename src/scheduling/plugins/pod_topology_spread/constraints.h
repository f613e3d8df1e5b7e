// The constraints that spread one pod over topology domains, ready to be asked about many nodes and
// pods.
//
// Pure functions of values; may be called from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/surroundings.h"

namespace nos::scheduling {

inline constexpr std::string_view kHostname = "kubernetes.io/hostname";
inline constexpr std::string_view kDoNotSchedule = "DoNotSchedule";
inline constexpr std::string_view kScheduleAnyway = "ScheduleAnyway";

struct SpreadConstraint {
  std::string key;  // of node labels
  int32_t max_skew = 1, min_domains = 1;
  std::optional<cluster::LabelSelector> selector;      // absent: no pod
  bool honors_affinity = true, honors_taints = false;  // nodes that are out of reach do not count
  bool counts_itself = false;                          // the pod, once it is placed
};

// Those of the pod that say `action` when they cannot be met; of a pod that has none at all, those
// of `defaults`, for the pods that belong together with it (DefaultSelector).
std::vector<SpreadConstraint> ConstraintsOf(
    const cluster::Pod& pod, std::string_view action,
    std::span<const cluster::TopologySpreadConstraint> defaults,
    const cluster::Surroundings& around);
// Those of its own alone.
std::vector<SpreadConstraint> OwnConstraintsOf(const cluster::Pod& pod, std::string_view action);

bool HasAllKeys(std::span<const SpreadConstraint> constraints, const cluster::Node& node);
// Whether what runs on the node counts. `selects_node`: the pod's node selector and affinity do.
bool Includes(const SpreadConstraint& constraint, const cluster::Pod& pod,
              const cluster::Node& node, bool selects_node);
// Whether `other` counts: of the pod's namespace, selected, and not on its way out. An empty
// selector counts nothing, as in kube-scheduler.
bool Counts(const SpreadConstraint& constraint, std::string_view ns, const cluster::Pod& other);

}  // namespace nos::scheduling
