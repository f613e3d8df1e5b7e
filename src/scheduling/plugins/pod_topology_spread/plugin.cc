#include "scheduling/plugins/pod_topology_spread/plugin.h"

#include <algorithm>

#include "cluster/selectors.h"
#include "scheduling/framework/copy_on_write.h"
#include "scheduling/plugins/pod_topology_spread/constraints.h"
#include "scheduling/plugins/pod_topology_spread/spread_counts.h"

namespace nos::scheduling {
namespace {

using cluster::NodeInfo;
using cluster::Pod;
using cluster::TopologySpreadConstraint;

struct FilterState {
  std::shared_ptr<const std::vector<SpreadConstraint>> constraints;
  CopyOnWrite<std::vector<SpreadCounts>> counts;  // per constraint
};

bool IsHard(const TopologySpreadConstraint& constraint) {
  return constraint.when_unsatisfiable == kDoNotSchedule;
}

std::vector<TopologySpreadConstraint> DefaultsOf(PodTopologySpreadOptions& options) {
  if (!options.system_defaults) return std::move(options.default_constraints);
  TopologySpreadConstraint host, zone;
  host.topology_key = kHostname;
  host.max_skew = 3;
  zone.topology_key = "topology.kubernetes.io/zone";
  zone.max_skew = 5;
  host.when_unsatisfiable = zone.when_unsatisfiable = kScheduleAnyway;
  return {std::move(host), std::move(zone)};
}

// Minimum over domains that the skew refers to: 0 while there are fewer than minDomains.
int64_t Least(const SpreadConstraint& constraint, const SpreadCounts& counts) {
  const auto domains = static_cast<int64_t>(counts.domains().size());
  return domains < constraint.min_domains ? 0 : counts.Least();
}

bool IsTooMany(const SpreadConstraint& constraint, int64_t count, int64_t least) {
  return count + (constraint.counts_itself ? 1 : 0) - least > constraint.max_skew;
}

int64_t CountPods(const SpreadConstraint& constraint, std::string_view ns, const NodeInfo& node) {
  return std::ranges::count_if(node.pods,
                               [&](const auto& other) { return Counts(constraint, ns, *other); });
}

// Adds or removes one pod in the domain `value`. False: the counts must be recomputed.
bool Follow(const SpreadConstraint& constraint, const std::string& value, bool came,
            SpreadCounts& counts, TouchDomain touch) {
  const int64_t count = counts.At(value), least = Least(constraint, counts);
  if (!came && count == 0) return false;  // the removed pod was never counted
  counts.Add(value, came ? 1 : -1);
  const int64_t least_now = Least(constraint, counts);
  if (IsTooMany(constraint, count, least) != IsTooMany(constraint, counts.At(value), least_now)) {
    touch(constraint.key, value);
  }
  if (least == least_now) return true;
  if (constraint.max_skew < 1) return false;  // such a skew may also refuse domains without counts
  for (const auto& [other, pods] : counts.domains()) {
    if (other == value ||
        IsTooMany(constraint, pods, least) == IsTooMany(constraint, pods, least_now)) {
      continue;
    }
    touch(constraint.key, other);
  }
  return true;
}

}  // namespace

PodTopologySpread::PodTopologySpread(PodTopologySpreadOptions options)
    : system_defaults_(options.system_defaults),
      defaults_(DefaultsOf(options)),
      hard_defaults_(std::ranges::any_of(defaults_, IsHard)) {}

bool PodTopologySpread::Concerns(const Pod& pod) const {
  return pod.spread.empty() ? hard_defaults_ : std::ranges::any_of(pod.spread, IsHard);
}

PreFilterPlugin::Outcome PodTopologySpread::PreFilter(const Pod& pod,
                                                      const cluster::ClusterSnapshot& snapshot,
                                                      CycleState& state) const {
  Outcome outcome;
  outcome.skip = true;
  if (!Concerns(pod)) return outcome;
  auto constraints = std::make_shared<const std::vector<SpreadConstraint>>(
      ConstraintsOf(pod, kDoNotSchedule, defaults_, snapshot.context()));
  if (constraints->empty()) return outcome;
  std::vector<SpreadCounts> counts(constraints->size());
  for (size_t i = 0; i < snapshot.size(); ++i) {
    const NodeInfo& node = snapshot.node(i);
    if (!HasAllKeys(*constraints, *node.node)) continue;
    const bool selects = cluster::SelectsNode(pod, *node.node);
    for (size_t c = 0; c < constraints->size(); ++c) {
      const SpreadConstraint& constraint = (*constraints)[c];
      if (!Includes(constraint, pod, *node.node, selects)) continue;
      counts[c].Add(*LabelOf(*node.node, constraint.key), CountPods(constraint, pod.meta.ns, node));
    }
  }
  state.Set(FilterState{std::move(constraints), CopyOnWrite(std::move(counts))});
  outcome.skip = false;
  return outcome;
}

bool PodTopologySpread::Update(const Pod& pod, const Pod& other, bool came, const NodeInfo& node,
                               CycleState& state, TouchDomain touch) const {
  auto* left = state.Get<FilterState>();
  if (left == nullptr || other.meta.ns != pod.meta.ns) return true;
  const std::vector<SpreadConstraint>& constraints = *left->constraints;
  if (!HasAllKeys(constraints, *node.node)) return true;
  const bool selects = cluster::SelectsNode(pod, *node.node);
  for (size_t c = 0; c < constraints.size(); ++c) {
    if (!Counts(constraints[c], pod.meta.ns, other)) continue;
    if (!Includes(constraints[c], pod, *node.node, selects)) continue;
    const std::string& value = *LabelOf(*node.node, constraints[c].key);
    if (!Follow(constraints[c], value, came, left->counts.Change()[c], touch)) return false;
  }
  return true;
}

Verdict PodTopologySpread::Filter(const CycleState& state, const Pod&, const NodeInfo& node) const {
  const auto* left = state.Get<FilterState>();
  if (left == nullptr) return Verdict::Fits();
  for (size_t c = 0; c < left->constraints->size(); ++c) {
    const SpreadConstraint& constraint = (*left->constraints)[c];
    const SpreadCounts& counts = (*left->counts)[c];
    const std::string* value = LabelOf(*node.node, constraint.key);
    if (value == nullptr) {
      return Verdict::Unresolvable(codes::kTopologyLabelMissing,
                                   "node(s) didn't match pod topology spread constraints (missing "
                                   "required label)");
    }
    if (IsTooMany(constraint, counts.At(*value), Least(constraint, counts))) {
      return Verdict::Unschedulable(codes::kTopologySpread,
                                    "node(s) didn't match pod topology spread constraints");
    }
  }
  return Verdict::Fits();
}

}  // namespace nos::scheduling
