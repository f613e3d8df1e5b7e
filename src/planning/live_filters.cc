#include "planning/live_filters.h"

#include <algorithm>
#include <numeric>

namespace nos::planning {
namespace {

constexpr int kMostRounds = 8;

std::optional<scheduling::Verdict> Objects(const cluster::ClusterSnapshot& snapshot,
                                           const scheduling::Framework& framework,
                                           const cluster::Pod& pod, const std::string& node) {
  const scheduling::Cycle cycle = framework.PreFilter(pod, snapshot);
  if (!cycle.verdict.fits()) return cycle.verdict;
  if (cycle.nodes && !cycle.nodes->contains(node)) return cycle.elsewhere;
  for (const scheduling::FilterPlugin* filter : framework.filters()) {
    if (!IsLive(*filter) || !filter->Concerns(pod)) continue;
    scheduling::Verdict verdict = filter->Filter(cycle.state, pod, *snapshot.Find(node));
    if (!verdict.fits()) return verdict;
  }
  return std::nullopt;
}

}  // namespace

bool IsLive(const scheduling::FilterPlugin& filter) {
  return filter.Dependence() != scheduling::DependsOn::kNodeObject &&
         filter.Name() != "NodeResourcesFit";
}

bool HasLiveFilter(const scheduling::Framework& framework, const cluster::Pod& pod) {
  return std::any_of(
      framework.filters().begin(), framework.filters().end(),
      [&](const scheduling::FilterPlugin* f) { return IsLive(*f) && f->Concerns(pod); });
}

std::vector<Objection> FindObjections(const cluster::ClusterSnapshot& snapshot,
                                      const scheduling::Framework& framework, const Translation& t,
                                      const StagedResult& result) {
  std::vector<Objection> objections;
  if (t.live_rows.empty()) return objections;
  const std::vector<PlacedPod>& pods = result.draft.pods();
  std::vector<size_t> order(pods.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return t.problem.classes[pods[a].cls].level < t.problem.classes[pods[b].cls].level;
  });
  cluster::ClusterSnapshot played = snapshot;
  for (const size_t i : order) {
    const int cls = pods[i].cls;
    const std::shared_ptr<const cluster::Pod>& pod = t.pending[t.members[cls][result.members[i]]];
    const std::string& node = t.nodes[pods[i].node]->node->meta.name;
    if (t.live_rows.contains(t.problem.classes[cls].allowed)) {
      if (auto verdict = Objects(played, framework, *pod, node)) {
        objections.push_back({cls, pods[i].node, std::move(*verdict)});
        continue;
      }
    }
    if (!played.Bind(pod, node).ok()) continue;  // the node is in the snapshot: cannot happen
  }
  return objections;
}

void Heed(const std::vector<Objection>& objections, int round, Translation& t) {
  for (const Objection& o : objections) {
    const int row = t.problem.classes[o.cls].allowed;
    std::vector<bool>& allowed = t.problem.allowed[row];
    for (int n = 0; n < static_cast<int>(allowed.size()); ++n) {
      if (!allowed[n] || (n != o.node && round < kMostRounds)) continue;
      allowed[n] = false;
      t.objections.try_emplace({row, n}, o.verdict);
    }
  }
  t.problem.IndexShapes();
}

}  // namespace nos::planning
