#include "scheduling/framework.h"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "scheduling/diagnosis.h"

namespace nos::scheduling {
namespace {

using cluster::ClusterSnapshot;
using cluster::NodeInfo;
using cluster::Pod;

// Restricts the candidates to nodes that both sets allow.
void Intersect(std::set<std::string> allowed, std::optional<std::set<std::string>>& candidates) {
  if (candidates) {
    std::erase_if(allowed, [&](const std::string& name) { return !candidates->contains(name); });
  }
  candidates = std::move(allowed);
}

// Visits the candidate nodes in the order of their names.
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

int64_t Highest(const std::vector<int64_t>& scores) {
  int64_t highest = kUnscored;
  for (const int64_t score : scores) highest = std::max(highest, score);
  return highest;
}

int64_t Lowest(const std::vector<int64_t>& scores) {
  int64_t lowest = std::numeric_limits<int64_t>::max();
  for (const int64_t score : scores) {
    if (score != kUnscored) lowest = std::min(lowest, score);
  }
  return lowest;
}

}  // namespace

int64_t ScaledToHighest(int64_t score, int64_t highest, bool reverse) {
  const int64_t scaled = highest <= 0 ? 0 : score * kMaxScore / highest;
  return reverse ? kMaxScore - scaled : scaled;
}

Framework::Framework(std::vector<std::unique_ptr<const Plugin>> plugins, Points points)
    : plugins_(std::move(plugins)), points_(std::move(points)) {
  CacheSpecialPlugins();
}

Framework::Framework(std::vector<Entry> entries) {
  const auto add = [](const Plugin* plugin, auto& point) {
    using Point = std::remove_cvref_t<decltype(*point.front())>;
    if (const auto* part = dynamic_cast<const Point*>(plugin)) point.push_back(part);
  };
  for (Entry& entry : entries) {
    const Plugin* plugin = entry.plugin.get();
    add(plugin, points_.gates);
    add(plugin, points_.pre_filters);
    add(plugin, points_.filters);
    add(plugin, points_.reservers);
    add(plugin, points_.pre_binders);
    const auto* scorer = dynamic_cast<const ScorePlugin*>(plugin);
    if (scorer != nullptr && entry.weight != 0) points_.scorers.push_back({scorer, entry.weight});
    plugins_.push_back(std::move(entry.plugin));
  }
  CacheSpecialPlugins();
}

void Framework::CacheSpecialPlugins() {
  const bool here = std::ranges::any_of(
      points_.filters, [](const Plugin* plugin) { return plugin->PartitionsGpus(); });
  partitioned_by_ = here ? PartitionedBy::kScheduler : PartitionedBy::kPartitioner;
  for (const PreFilterPlugin* plugin : points_.pre_filters) {
    if (const QuotaPlugin* quotas = plugin->AsQuotaPlugin()) quotas_ = quotas;
  }
}

Cycle Framework::PreFilter(const Pod& pod, const ClusterSnapshot& snapshot) const {
  Cycle cycle;
  std::set<const Plugin*> skipped;
  for (const PreFilterPlugin* plugin : points_.pre_filters) {
    PreFilterPlugin::Outcome outcome = plugin->PreFilter(pod, snapshot, cycle.state);
    if (!outcome.verdict.fits()) {
      cycle.verdict = std::move(outcome.verdict);
      cycle.by = plugin;
      return cycle;
    }
    if (outcome.skip) skipped.insert(plugin);
    if (!outcome.nodes) continue;
    if (!cycle.nodes) {
      cycle.elsewhere = std::move(outcome.elsewhere);
      cycle.by = plugin;
    }
    Intersect(std::move(*outcome.nodes), cycle.nodes);
  }
  for (const FilterPlugin* plugin : points_.filters) {
    if (!skipped.contains(plugin) && plugin->Concerns(pod)) cycle.filters.push_back(plugin);
  }
  return cycle;
}

Verdict Framework::Filter(const Cycle& cycle, const Pod& pod, const NodeInfo& node,
                          const Plugin** by) const {
  const auto say = [by](const Verdict& verdict, const Plugin* whose) {
    if (by != nullptr) *by = whose;
    return verdict;
  };
  if (!cycle.verdict.fits()) return say(cycle.verdict, cycle.by);
  if (cycle.nodes && !cycle.nodes->contains(node.node->meta.name)) {
    return say(cycle.elsewhere, cycle.by);
  }
  for (const FilterPlugin* plugin : cycle.filters) {
    const Verdict verdict = plugin->Filter(cycle.state, pod, node);
    if (!verdict.fits()) return say(verdict, plugin);
  }
  return Verdict::Fits();
}

std::vector<codec::ApiRequest> Framework::PostFilter(
    const cluster::Pod& pod, const cluster::ClusterSnapshot& snapshot) const {
  std::vector<codec::ApiRequest> writes;
  for (const auto& plugin : plugins_) {
    std::ranges::move(plugin->PostFilter(pod, snapshot), std::back_inserter(writes));
  }
  return writes;
}

CycleState Framework::Precompute(const ClusterSnapshot& snapshot, Pods waiting) const {
  CycleState precomputed;
  for (const Scorer& scorer : points_.scorers)
    scorer.plugin->Precompute(snapshot, waiting, precomputed);
  return precomputed;
}

std::optional<int> Framework::PreferredGpu(const CycleState& precomputed, const Pod& pod,
                                           const cluster::NodeInfo& node) const {
  for (const Scorer& scorer : points_.scorers) {
    if (const auto gpu = scorer.plugin->PreferredGpu(precomputed, pod, node)) return gpu;
  }
  return std::nullopt;
}

Framework::Scoring Framework::PreScore(const Cycle& cycle, const Pod& pod,
                                       const ClusterSnapshot& snapshot, Nodes feasible,
                                       const CycleState& precomputed) const {
  Scoring scoring{cycle.state, {}};
  scoring.state.Merge(precomputed);
  for (const Scorer& scorer : points_.scorers) {
    if (scorer.plugin->PreScore(pod, snapshot, feasible, scoring.state)) {
      scoring.scorers.push_back(scorer);
    }
  }
  return scoring;
}

std::vector<int64_t> Framework::Score(const Cycle& cycle, const Pod& pod,
                                      const ClusterSnapshot& snapshot, Nodes nodes,
                                      const CycleState& precomputed) const {
  return TotalsOf(PreScore(cycle, pod, snapshot, nodes, precomputed), pod, nodes);
}

std::vector<int64_t> Framework::TotalsOf(const Scoring& scoring, const Pod& pod, Nodes nodes) {
  std::vector<int64_t> totals(nodes.size());
  std::vector<int64_t> scores(nodes.size());
  for (const auto& [plugin, weight] : scoring.scorers) {
    for (size_t i = 0; i < nodes.size(); ++i) {
      scores[i] = plugin->Score(scoring.state, pod, *nodes[i]);
    }
    const int64_t lowest = Lowest(scores), highest = Highest(scores);
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (scores[i] == kUnscored) continue;
      totals[i] += weight * plugin->Normalized(scores[i], lowest, highest);
    }
  }
  return totals;
}

bool Framework::ComesFirst(const Scoring& scoring, const Pod& pod, const NodeInfo& left,
                           const NodeInfo& right) {
  for (const auto& [plugin, weight] : scoring.scorers) {
    const uint64_t l = plugin->Order(scoring.state, pod, left);
    const uint64_t r = plugin->Order(scoring.state, pod, right);
    if (l != r) return l < r;
  }
  return left.node->meta.name < right.node->meta.name;
}

Decision Framework::Schedule(const Pod& pod, const ClusterSnapshot& snapshot,
                             const CycleState& precomputed) const {
  const Cycle cycle = PreFilter(pod, snapshot);
  std::vector<const NodeInfo*> feasible;
  ForEachCandidate(cycle, snapshot, [&](const NodeInfo& node) {
    if (Filter(cycle, pod, node).fits()) feasible.push_back(&node);
  });
  if (feasible.empty()) return {nullptr, 0, Diagnose(pod, snapshot)};
  const Scoring scoring = PreScore(cycle, pod, snapshot, feasible, precomputed);
  const std::vector<int64_t> scores = TotalsOf(scoring, pod, feasible);
  size_t best = 0;
  for (size_t i = 1; i < feasible.size(); ++i) {
    if (scores[i] < scores[best]) continue;
    if (scores[i] > scores[best] || ComesFirst(scoring, pod, *feasible[i], *feasible[best])) {
      best = i;
    }
  }
  return {feasible[best], scores[best], {}};
}

Decision Framework::Schedule(const Pod& pod, const ClusterSnapshot& snapshot) const {
  const std::shared_ptr<const Pod> waiting[] = {std::make_shared<const Pod>(pod)};
  return Schedule(pod, snapshot, Precompute(snapshot, waiting));
}

Diagnosis Framework::Diagnose(const Pod& pod, const ClusterSnapshot& snapshot) const {
  const Cycle cycle = PreFilter(pod, snapshot);
  DiagnosisBuilder builder;
  if (!cycle.verdict.fits()) {
    builder.Refuse(cycle.verdict, static_cast<int>(snapshot.size()), cycle.by);
    return std::move(builder).Finish();
  }
  for (size_t i = 0; i < snapshot.size(); ++i) {
    const Plugin* by = nullptr;
    const Verdict verdict = Filter(cycle, pod, snapshot.node(i), &by);
    builder.Add(verdict, 1, by);
  }
  return std::move(builder).Finish();
}

}  // namespace nos::scheduling
