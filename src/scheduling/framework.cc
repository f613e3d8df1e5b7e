#include "scheduling/framework.h"

#include <algorithm>

#include "scheduling/diagnosis.h"
#include "scheduling/plugins/registry.h"

namespace nos::scheduling {
namespace {

using cluster::ClusterSnapshot;
using cluster::NodeInfo;
using cluster::Pod;

// Narrows the candidates to those that both sides allow.
void Intersect(std::set<std::string> allowed, std::optional<std::set<std::string>>& candidates) {
  if (candidates) {
    std::erase_if(allowed, [&](const std::string& name) { return !candidates->contains(name); });
  }
  candidates = std::move(allowed);
}

// The nodes worth filtering, in the order of their names.
template <typename Function>
void ForEachCandidate(const Cycle& cycle, const ClusterSnapshot& snapshot, Function function) {
  if (!cycle.nodes) {
    for (size_t i = 0; i < snapshot.size(); ++i) function(snapshot.node(i));
    return;
  }
  for (const std::string& name : *cycle.nodes) {
    const NodeInfo* node = snapshot.Find(name);
    if (node != nullptr) function(*node);
  }
}

}  // namespace

void NormalizeToHighest(std::vector<int64_t>& scores, bool reverse) {
  int64_t highest = 0;
  for (const int64_t score : scores) highest = std::max(highest, score);
  for (int64_t& score : scores) {
    score = highest == 0 ? 0 : score * kMaxScore / highest;
    if (reverse) score = kMaxScore - score;
  }
}

Framework::Framework(std::vector<Entry> entries) : entries_(std::move(entries)) {
  for (const Entry& entry : entries_) {
    const Plugin* plugin = entry.plugin.get();
    const auto* pre_filter = dynamic_cast<const PreFilterPlugin*>(plugin);
    if (pre_filter != nullptr && entry.filters) pre_filters_.push_back(pre_filter);
    const auto* filter = dynamic_cast<const FilterPlugin*>(plugin);
    if (filter != nullptr && entry.filters) filters_.push_back(filter);
    if (const auto* point = dynamic_cast<const PreScorePlugin*>(plugin)) {
      pre_scorers_.push_back(point);
    }
    const auto* scorer = dynamic_cast<const ScorePlugin*>(plugin);
    if (scorer != nullptr && entry.weight != 0) scorers_.push_back({scorer, entry.weight});
  }
}

Framework Framework::Default() {
  std::vector<Entry> entries;
  for (const RegisteredPlugin& registered : RegisteredPlugins()) {
    entries.push_back({registered.make(), registered.weight});
  }
  return Framework(std::move(entries));
}

Cycle Framework::PreFilter(const Pod& pod, const ClusterSnapshot& snapshot) const {
  Cycle cycle;
  for (const PreFilterPlugin* plugin : pre_filters_) {
    PreFilterPlugin::Outcome outcome = plugin->PreFilter(pod, snapshot, cycle.state);
    if (!outcome.verdict.fits()) {
      cycle.verdict = std::move(outcome.verdict);
      return cycle;
    }
    if (!outcome.nodes) continue;
    if (!cycle.nodes) cycle.elsewhere = std::move(outcome.elsewhere);
    Intersect(std::move(*outcome.nodes), cycle.nodes);
  }
  return cycle;
}

Verdict Framework::Filter(const Cycle& cycle, const Pod& pod, const NodeInfo& node) const {
  if (!cycle.verdict.fits()) return cycle.verdict;
  if (cycle.nodes && !cycle.nodes->contains(node.node->meta.name)) return cycle.elsewhere;
  for (const FilterPlugin* plugin : filters_) {
    if (!plugin->Concerns(pod)) continue;
    Verdict verdict = plugin->Filter(cycle.state, pod, node);
    if (!verdict.fits()) return verdict;
  }
  return Verdict::Fits();
}

CycleState Framework::Learn(const ClusterSnapshot& snapshot, Pods waiting) const {
  CycleState learnt;
  for (const PreScorePlugin* plugin : pre_scorers_) plugin->Learn(snapshot, waiting, learnt);
  return learnt;
}

CycleState Framework::PreScore(const Cycle& cycle, const Pod& pod, const CycleState& learnt) const {
  CycleState state = cycle.state;
  state.Merge(learnt);
  for (const PreScorePlugin* plugin : pre_scorers_) plugin->PreScore(pod, state);
  return state;
}

std::vector<int64_t> Framework::ScoreAll(const CycleState& state, const Pod& pod,
                                         std::span<const NodeInfo* const> nodes) const {
  std::vector<int64_t> totals(nodes.size());
  std::vector<int64_t> scores(nodes.size());
  for (const auto& [plugin, weight] : scorers_) {
    for (size_t i = 0; i < nodes.size(); ++i) scores[i] = plugin->Score(state, pod, *nodes[i]);
    plugin->Normalize(scores);
    for (size_t i = 0; i < nodes.size(); ++i) totals[i] += weight * scores[i];
  }
  return totals;
}

std::vector<int64_t> Framework::Score(const Cycle& cycle, const Pod& pod,
                                      std::span<const NodeInfo* const> nodes,
                                      const CycleState& learnt) const {
  return ScoreAll(PreScore(cycle, pod, learnt), pod, nodes);
}

bool Framework::ComesFirst(const CycleState& state, const Pod& pod, const NodeInfo& left,
                           const NodeInfo& right) const {
  for (const auto& [plugin, weight] : scorers_) {
    const uint64_t l = plugin->Order(state, pod, left), r = plugin->Order(state, pod, right);
    if (l != r) return l < r;
  }
  return left.node->meta.name < right.node->meta.name;
}

Decision Framework::Schedule(const Pod& pod, const ClusterSnapshot& snapshot,
                             const CycleState& learnt) const {
  const Cycle cycle = PreFilter(pod, snapshot);
  std::vector<const NodeInfo*> feasible;
  ForEachCandidate(cycle, snapshot, [&](const NodeInfo& node) {
    if (Filter(cycle, pod, node).fits()) feasible.push_back(&node);
  });
  if (feasible.empty()) return {nullptr, 0, Diagnose(pod, snapshot)};
  const CycleState state = PreScore(cycle, pod, learnt);
  const std::vector<int64_t> scores = ScoreAll(state, pod, feasible);
  size_t best = 0;
  for (size_t i = 1; i < feasible.size(); ++i) {
    if (scores[i] < scores[best]) continue;
    if (scores[i] > scores[best] || ComesFirst(state, pod, *feasible[i], *feasible[best])) best = i;
  }
  return {feasible[best], scores[best], {}};
}

Decision Framework::Schedule(const Pod& pod, const ClusterSnapshot& snapshot) const {
  const std::shared_ptr<const Pod> waiting[] = {std::make_shared<const Pod>(pod)};
  return Schedule(pod, snapshot, Learn(snapshot, waiting));
}

Diagnosis Framework::Diagnose(const Pod& pod, const ClusterSnapshot& snapshot) const {
  const Cycle cycle = PreFilter(pod, snapshot);
  DiagnosisBuilder builder;
  for (size_t i = 0; i < snapshot.size(); ++i) builder.Add(Filter(cycle, pod, snapshot.node(i)));
  return std::move(builder).Finish();
}

}  // namespace nos::scheduling
