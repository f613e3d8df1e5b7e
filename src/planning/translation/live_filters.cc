#include "planning/translation/live_filters.h"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "scheduling/framework.h"
#include "scheduling/gang_domains.h"
#include "scheduling/pod_kind.h"

namespace nos::planning {
namespace {

constexpr int kMaxRounds = 8;

// The units that are placed at once, in the order of the plan: a pod, or all pods of a gang.
std::vector<std::vector<size_t>> UnitsOf(const Translation& t, const std::vector<PlacedPod>& pods) {
  std::vector<size_t> order(pods.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return t.problem.classes[pods[a].cls].level < t.problem.classes[pods[b].cls].level;
  });
  std::vector<std::vector<size_t>> units;
  std::map<std::pair<int, int>, size_t> of_gang;  // by level and gang: of units
  for (const size_t i : order) {
    const PodClass& cls = t.problem.classes[pods[i].cls];
    if (cls.gang >= 0) {
      const auto [at, fresh] = of_gang.try_emplace({cls.level, cls.gang}, units.size());
      if (!fresh) {
        units[at->second].push_back(i);
        continue;
      }
    }
    units.push_back({i});
  }
  return units;
}

}  // namespace

void PlanChecker::Play::Bind(const std::shared_ptr<const cluster::Pod>& pod,
                             const std::string& node) {
  // Cannot fail: the node is in the snapshot.
  if (snapshot_.Bind(pod, node).ok()) bound_.push_back({pod.get(), &node});
}

std::optional<scheduling::Verdict> PlanChecker::Play::Objects(const cluster::Pod& pod,
                                                              const std::string& node) {
  const scheduling::Cycle& cycle = CycleOf(pod);
  if (!cycle.verdict.fits()) return cycle.verdict;
  if (cycle.nodes && !cycle.nodes->contains(node)) return cycle.elsewhere;
  for (const scheduling::FilterPlugin* filter : cycle.filters) {
    if (!IsLive(*filter)) continue;
    scheduling::Verdict verdict = filter->Filter(cycle.state, pod, *snapshot_.Find(node));
    if (!verdict.fits()) return verdict;
  }
  return std::nullopt;
}

const scheduling::Cycle& PlanChecker::Play::CycleOf(const cluster::Pod& pod) {
  KindKey key{checker_.frameworks_.IndexFor(pod), scheduling::KindOf(pod)};
  const scheduling::Framework& framework = checker_.frameworks_.For(pod);
  const auto [it, fresh] = kinds_.try_emplace(key);
  Kind& kind = it->second;
  if (fresh) kind.cycle = checker_.BeginningOf(pod, std::move(key));
  if (!CatchUp(framework, pod, kind)) kind.cycle = framework.PreFilter(pod, snapshot_);
  kind.at = bound_.size();
  return kind.cycle;
}

// False if recomputing is cheaper or necessary.
bool PlanChecker::Play::CatchUp(const scheduling::Framework& framework, const cluster::Pod& pod,
                                Kind& kind) const {
  if (kind.at == bound_.size()) return true;
  if (!kind.cycle.verdict.fits() || bound_.size() - kind.at > snapshot_.size()) return false;
  const auto touch = [](std::string_view, std::string_view) {};
  for (; kind.at < bound_.size(); ++kind.at) {
    const Bound& bound = bound_[kind.at];
    const cluster::NodeInfo& node = *snapshot_.Find(*bound.node);
    for (const scheduling::PreFilterPlugin* plugin : framework.pre_filters()) {
      if (!plugin->Update(pod, *bound.pod, true, node, kind.cycle.state, touch)) return false;
    }
  }
  return true;
}

const scheduling::Cycle& PlanChecker::BeginningOf(const cluster::Pod& pod, KindKey key) {
  const auto [it, fresh] = beginnings_.try_emplace(std::move(key));
  if (fresh) it->second = frameworks_.For(pod).PreFilter(pod, snapshot_);
  return it->second;
}

bool IsLive(const scheduling::FilterPlugin& filter) {
  return filter.Dependence() != scheduling::DependsOn::kNodeObject &&
         filter.Name() != "NodeResourcesFit";
}

LivePods::LivePods(const cluster::ClusterSnapshot& snapshot, Pods pending,
                   const scheduling::FrameworkChoice& frameworks)
    : snapshot_(snapshot), frameworks_(frameworks), repellers_(snapshot.context()) {
  for (const scheduling::Framework* framework : frameworks_.all()) {
    std::ranges::copy_if(framework->filters(), std::back_inserter(filters_.emplace_back()),
                         [](const scheduling::FilterPlugin* filter) { return IsLive(*filter); });
  }
  for (size_t i = 0; i < snapshot.size(); ++i) {
    const cluster::NodeInfo& node = snapshot.node(i);
    if (node.with_required_anti_affinity == 0) continue;
    for (const auto& pod : node.pods) repellers_.Add(pod);
  }
  for (const auto& pod : pending) repellers_.Add(pod);
}

bool LivePods::Has(const cluster::Pod& pod) const {
  const auto& filters = filters_[frameworks_.IndexFor(pod)];
  return std::ranges::any_of(filters, [&](const scheduling::FilterPlugin* filter) {
    return filter->ConcernsIn(snapshot_, pod) && (filter->IsAsked(pod) || repellers_.Repel(pod));
  });
}

std::vector<Objection> PlanChecker::FindObjections(const Translation& t,
                                                   const StagedResult& result) {
  std::vector<Objection> objections;
  if (t.live_rows.empty()) return objections;
  const std::vector<PlacedPod>& pods = result.draft.pods();
  Play play(*this);
  std::vector<std::vector<size_t>> units = UnitsOf(t, pods);
  for (std::vector<size_t>& left : units) {
    std::vector<Objection> refused;
    for (size_t before = left.size() + 1; left.size() < before && !left.empty();) {
      before = left.size();
      refused.clear();
      std::erase_if(left, [&](size_t i) {
        const int cls = pods[i].cls;
        const auto& pod = t.pending[t.members[cls][result.members[i]]];
        const std::string& node = t.nodes[pods[i].node]->node->meta.name;
        const bool asks = t.live_rows.contains(t.problem.classes[cls].allowed);
        auto verdict = asks ? play.Objects(*pod, node) : std::nullopt;
        if (!verdict) {
          play.Bind(pod, node);
          return true;
        }
        const bool waits = scheduling::MayFollow(*pod);
        (waits ? refused : objections).push_back({cls, pods[i].node, std::move(*verdict)});
        return !waits;
      });
    }
    std::ranges::move(refused, std::back_inserter(objections));
  }
  return objections;
}

void ApplyObjections(const std::vector<Objection>& objections, int round, Translation& t) {
  for (const Objection& o : objections) {
    const int row = t.problem.classes[o.cls].allowed;
    std::vector<bool>& allowed = t.problem.allowed[row];
    for (int n = 0; n < static_cast<int>(allowed.size()); ++n) {
      if (!allowed[n] || (n != o.node && round < kMaxRounds)) continue;
      allowed[n] = false;
      t.objections.try_emplace({row, n}, o.verdict);
    }
  }
  t.problem.IndexShapes();
}

}  // namespace nos::planning
