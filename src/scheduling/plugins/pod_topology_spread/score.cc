// Scores of ScheduleAnyway constraints.
#include <algorithm>
#include <cmath>

#include "cluster/selectors.h"
#include "scheduling/framework/copy_on_write.h"
#include "scheduling/framework/domain_sums.h"
#include "scheduling/plugins/pod_topology_spread/constraints.h"
#include "scheduling/plugins/pod_topology_spread/plugin.h"

namespace nos::scheduling {
namespace {

using cluster::Node;
using cluster::NodeInfo;
using cluster::Pod;

// Counts of one constraint.
struct Tally {
  ByText<int64_t> pods;      // by domain; for kHostname by node name
  ByText<int64_t> feasible;  // feasible nodes by domain; unused for kHostname
  double weight = 0;         // of one pod; grows with the number of domains
};

struct Spreading {
  std::vector<SpreadConstraint> constraints;
  bool needs_all_keys;  // nodes without one of the labels are not scored
};

struct Tallies {
  std::vector<Tally> of;  // per constraint
  int64_t feasible = 0;   // number of scored nodes
};

struct ScoreState {
  std::shared_ptr<const Spreading> spreading;
  CopyOnWrite<Tallies> tallies;
};

bool HasScore(const Spreading& spreading, const Node& node) {
  return !spreading.needs_all_keys || HasAllKeys(spreading.constraints, node);
}

// Scored nodes without the label form a domain of their own.
std::string_view DomainOf(const SpreadConstraint& constraint, const Node& node) {
  if (constraint.key == kHostname) return node.meta.name;
  const std::string* value = LabelOf(node, constraint.key);
  return value == nullptr ? std::string_view() : *value;
}

void Add(ByText<int64_t>& to, std::string_view key, int64_t amount) {
  auto at = to.find(key);
  if (at == to.end()) at = to.try_emplace(std::string(key), 0).first;
  at->second += amount;
  if (at->second == 0) to.erase(at);
}

// True if pods of the node count. For kHostname, each node counts its own pods unconditionally.
bool IsCounted(const Spreading& spreading, const SpreadConstraint& constraint, const Pod& pod,
               const Node& node, bool selects_node) {
  return constraint.key == kHostname ||
         (HasScore(spreading, node) && Includes(constraint, pod, node, selects_node));
}

void CountNode(const Spreading& spreading, const Pod& pod, const NodeInfo& node, Tallies& to) {
  const bool selects = cluster::SelectsNode(pod, *node.node);
  for (size_t c = 0; c < spreading.constraints.size(); ++c) {
    const SpreadConstraint& constraint = spreading.constraints[c];
    if (!IsCounted(spreading, constraint, pod, *node.node, selects)) continue;
    const int64_t pods = std::ranges::count_if(
        node.pods, [&](const auto& other) { return Counts(constraint, pod.meta.ns, *other); });
    if (pods != 0) Add(to.of[c].pods, DomainOf(constraint, *node.node), pods);
  }
}

void CountFeasible(const Spreading& spreading, const Node& node, int64_t sign, Tallies& to) {
  if (!HasScore(spreading, node)) return;
  to.feasible += sign;
  for (size_t c = 0; c < spreading.constraints.size(); ++c) {
    const SpreadConstraint& constraint = spreading.constraints[c];
    if (constraint.key != kHostname) Add(to.of[c].feasible, DomainOf(constraint, node), sign);
  }
}

// True if a weight changed.
bool SetWeights(const Spreading& spreading, Tallies& to) {
  bool changed = false;
  for (size_t c = 0; c < spreading.constraints.size(); ++c) {
    const bool nodes = spreading.constraints[c].key == kHostname;
    const int64_t domains = nodes ? to.feasible : static_cast<int64_t>(to.of[c].feasible.size());
    const double weight = std::log(static_cast<double>(domains + 2));
    changed = changed || weight != to.of[c].weight;
    to.of[c].weight = weight;
  }
  return changed;
}

}  // namespace

bool PodTopologySpread::PreScore(const Pod& pod, const cluster::ClusterSnapshot& snapshot,
                                 Nodes feasible, CycleState& state) const {
  Spreading spreading{ConstraintsOf(pod, kScheduleAnyway, defaults_, snapshot.context()),
                      !pod.spread.empty() || !system_defaults_};
  if (spreading.constraints.empty()) return false;
  Tallies tallies{std::vector<Tally>(spreading.constraints.size())};
  for (size_t i = 0; i < snapshot.size(); ++i) {
    CountNode(spreading, pod, snapshot.node(i), tallies);
  }
  for (const NodeInfo* node : feasible) CountFeasible(spreading, *node->node, 1, tallies);
  SetWeights(spreading, tallies);
  state.Set(ScoreState{std::make_shared<const Spreading>(std::move(spreading)),
                       CopyOnWrite(std::move(tallies))});
  return true;
}

bool PodTopologySpread::UpdateScore(const Pod& pod, const Pod& other, bool came,
                                    const NodeInfo& node, CycleState& state,
                                    TouchDomain touch) const {
  auto* left = state.Get<ScoreState>();
  if (left == nullptr || other.meta.ns != pod.meta.ns) return true;
  const bool selects = cluster::SelectsNode(pod, *node.node);
  for (size_t c = 0; c < left->spreading->constraints.size(); ++c) {
    const SpreadConstraint& constraint = left->spreading->constraints[c];
    if (!Counts(constraint, pod.meta.ns, other)) continue;
    if (!IsCounted(*left->spreading, constraint, pod, *node.node, selects)) continue;
    const std::string_view domain = DomainOf(constraint, *node.node);
    Add(left->tallies.Change().of[c].pods, domain, came ? 1 : -1);
    if (constraint.key != kHostname) touch(constraint.key, domain);
  }
  return true;
}

ScorePlugin::Recompute PodTopologySpread::UpdateFeasible(const NodeInfo& node, bool feasible,
                                                         CycleState& state) const {
  auto* left = state.Get<ScoreState>();
  if (left == nullptr) return Recompute::kNothing;
  Tallies& tallies = left->tallies.Change();
  CountFeasible(*left->spreading, *node.node, feasible ? 1 : -1, tallies);
  return SetWeights(*left->spreading, tallies) ? Recompute::kScores : Recompute::kNothing;
}

int64_t PodTopologySpread::Score(const CycleState& state, const Pod&, const NodeInfo& node) const {
  const auto* left = state.Get<ScoreState>();
  if (left == nullptr) return 0;
  const Spreading& spreading = *left->spreading;
  double score = 0;
  for (size_t c = 0; c < spreading.constraints.size(); ++c) {
    const SpreadConstraint& constraint = spreading.constraints[c];
    const Tally& tally = left->tallies->of[c];
    const std::string* value = LabelOf(*node.node, constraint.key);
    if (value == nullptr) {
      if (spreading.needs_all_keys) return kUnscored;
      continue;
    }
    const auto pods = tally.pods.find(constraint.key == kHostname ? node.node->meta.name : *value);
    const int64_t count = pods == tally.pods.end() ? 0 : pods->second;
    score += static_cast<double>(count) * tally.weight + (constraint.max_skew - 1);
  }
  return std::llround(score);
}

int64_t PodTopologySpread::Normalized(int64_t score, int64_t lowest, int64_t highest) const {
  if (highest <= 0) return kMaxScore;
  return kMaxScore * (highest + lowest - score) / highest;
}

}  // namespace nos::scheduling
