#include "scheduling/engine/kind_table.h"

#include <algorithm>
#include <numeric>

#include "scheduling/diagnosis.h"
#include "scheduling/engine/promises.h"
#include "scheduling/framework.h"

namespace nos::scheduling {

using cluster::ClusterSnapshot;
using cluster::NodeInfo;
using cluster::Pod;

const std::vector<uint32_t>& DomainIndex::NodesOf(const ClusterSnapshot& snapshot,
                                                  std::string_view key, std::string_view value) {
  static const std::vector<uint32_t> kNone;
  auto found = by_key_.find(key);
  if (found == by_key_.end()) {
    found = by_key_.emplace(key, ByValue()).first;
    for (size_t i = 0; i < snapshot.size(); ++i) {
      const auto& labels = snapshot.node(i).node->meta.labels;
      const auto label = labels.find(key);
      if (label != labels.end()) found->second[label->second].push_back(static_cast<uint32_t>(i));
    }
  }
  const auto nodes = found->second.find(value);
  return nodes == found->second.end() ? kNone : nodes->second;
}

KindTable::KindTable(const Framework& framework, std::shared_ptr<const cluster::Pod> pod,
                     const ClusterSnapshot& snapshot, const CycleState& precomputed)
    : framework_(framework),
      pod_(std::move(pod)),
      requests_(cluster::RequestsOf(*pod_)),
      cycle_(framework.PreFilter(*pod_, snapshot)),
      fits_(snapshot.size()),
      touched_(snapshot.size()),
      is_touched_(snapshot.size(), 1),
      tree_(snapshot.size()) {
  cycle_.state.Merge(precomputed);
  std::iota(touched_.begin(), touched_.end(), 0U);
  for (const Framework::Scorer& scorer : framework.scorers()) {
    columns_.push_back({scorer.plugin, scorer.weight});
    columns_.back().scores = ScoreColumn(snapshot.size());
  }
}

void KindTable::Touch(size_t node) {
  beside_.erase(node);
  if (is_touched_[node] != 0) return;
  is_touched_[node] = 1;
  touched_.push_back(static_cast<uint32_t>(node));
}

const KindTable::Beside& KindTable::AskBeside(size_t node,
                                              std::vector<std::shared_ptr<const Pod>> others,
                                              const ClusterSnapshot& snapshot) {
  const bool looks_elsewhere = std::ranges::any_of(cycle_.filters, [](const FilterPlugin* filter) {
    return filter->Dependence() == DependsOn::kCluster;
  });
  Beside& beside = beside_[node];
  if (looks_elsewhere || beside.others != others) {
    beside = BesideOthers(node, std::move(others), snapshot);
  }
  return beside;
}

KindTable::Beside KindTable::BesideOthers(size_t node,
                                          std::vector<std::shared_ptr<const Pod>> others,
                                          const ClusterSnapshot& snapshot) const {
  const SnapshotWithCycle with =
      WithOthers(framework_, snapshot, cycle_, *pod_, others, snapshot.node(node));
  Beside beside{std::move(others), {}, nullptr};
  beside.verdict = framework_.Filter(with.cycle, *pod_, with.snapshot.node(node), &beside.by);
  if (!beside.verdict.fits()) return beside;
  if (auto held = WhyHeldForOthers(*pod_, snapshot.node(node), with)) {
    beside.verdict = *std::move(held);
    beside.by = PluginOfSlices(with.cycle);
  }
  return beside;
}

// Its events wake a pod that waits for instances; null: there is none.
const Plugin* KindTable::PluginOfSlices(const Cycle& cycle) const {
  const auto by = std::ranges::find_if(cycle.filters, [](const FilterPlugin* filter) {
    return filter->Name() == "GpuPartitioning" || filter->Name() == "NodeResourcesFit";
  });
  return by == cycle.filters.end() ? nullptr : *by;
}

Verdict KindTable::Ask(size_t node, const ClusterSnapshot& snapshot, const Plugin** by) const {
  Verdict verdict = framework_.Filter(cycle_, *pod_, snapshot.node(node), by);
  if (!verdict.fits()) return verdict;
  auto held = WhyHeldForPrepared(requests_, snapshot.node(node));
  if (!held) return verdict;
  if (by != nullptr) *by = PluginOfSlices(cycle_);
  return *std::move(held);
}

bool KindTable::Follow(const cluster::Pod& other, bool came, size_t node,
                       const ClusterSnapshot& snapshot, DomainIndex& domains) {
  if (!cycle_.verdict.fits()) return false;  // the pre-filter may now accept the pod
  Touch(node);
  const NodeInfo& info = snapshot.node(node);
  const auto touch = [&](std::string_view key, std::string_view value) {
    for (const uint32_t i : domains.NodesOf(snapshot, key, value)) Touch(i);
  };
  for (const PreFilterPlugin* plugin : framework_.pre_filters()) {
    if (!plugin->Update(*pod_, other, came, info, cycle_.state, touch)) return false;
  }
  for (Column& column : columns_) {
    if (column.outdated || column.plugin->ScoreDependence() != DependsOn::kCluster) continue;
    column.outdated = !column.plugin->UpdateScore(*pod_, other, came, info, cycle_.state, touch);
  }
  return true;
}

void KindTable::FollowImages() {
  for (Column& column : columns_) column.outdated |= column.plugin->DependsOnImages();
}

bool KindTable::FollowContext(const ClusterSnapshot& snapshot) const {
  const auto reads = [](const auto* plugin) { return plugin->Dependence() == DependsOn::kCluster; };
  if (!cycle_.verdict.fits() || std::ranges::any_of(cycle_.filters, reads)) return false;
  Cycle fresh = framework_.PreFilter(*pod_, snapshot);
  if (!fresh.verdict.fits() || fresh.filters != cycle_.filters || fresh.nodes != cycle_.nodes) {
    return false;
  }
  return std::ranges::all_of(columns_, [&](const Column& column) {
    if (column.plugin->ScoreDependence() != DependsOn::kCluster) return true;
    return !column.active && !column.plugin->PreScore(*pod_, snapshot, {}, fresh.state);
  });
}

void KindTable::Refresh(const ClusterSnapshot& snapshot) {
  // 1. Re-evaluate touched nodes.
  AskTouched(snapshot);
  // 2. If the lowest or highest score of a plugin changed, normalized scores of all nodes change.
  for (Column& column : columns_) {
    if (!column.active || column.plugin->IsAbsolute()) continue;
    const bool same =
        !UpdateExtremes(column) ||
        column.plugin->KeepsDifferences(column.lowest, column.highest, column.reference);
    if (!same) totals_outdated_ = true;
  }
  // 3. Update the totals: of all nodes at O(n), or of the touched nodes at O(log n) each.
  const auto set = [&](size_t node, auto setter) {
    const bool fits = fits_[node] != 0;
    setter(node,
           fits ? ScoreTree::Entry{Total(node), OrderOf(snapshot.node(node))} : ScoreTree::Entry{});
  };
  if (totals_outdated_) {
    for (Column& column : columns_) column.reference = column.highest;
    for (size_t i = 0; i < fits_.size(); ++i) {
      set(i, [&](size_t node, ScoreTree::Entry entry) { tree_.SetLater(node, entry); });
    }
    tree_.Rebuild();
  } else {
    for (const uint32_t i : touched_) {
      set(i, [&](size_t node, ScoreTree::Entry entry) { tree_.Set(node, entry); });
    }
  }
  totals_outdated_ = false;
  for (const uint32_t i : touched_) is_touched_[i] = 0;
  touched_.clear();
}

// Filters run first, because scores may depend on the set of feasible nodes.
void KindTable::AskTouched(const ClusterSnapshot& snapshot) {
  if (!touched_.empty()) refusal_.reset();
  std::vector<uint8_t> fitted(touched_.size());
  bool others_fit = false;
  for (size_t t = 0; t < touched_.size(); ++t) {
    const uint32_t i = touched_[t];
    fitted[t] = fits_[i];
    fits_[i] = Ask(i, snapshot, nullptr).fits() ? 1 : 0;
    others_fit = others_fit || fits_[i] != fitted[t];
  }
  for (Column& column : columns_) {
    const bool depends = column.plugin->ScoreDependence() == DependsOn::kCluster;
    const auto anew = column.outdated         ? ScorePlugin::Recompute::kPreScore
                      : depends && others_fit ? FollowFeasible(column, fitted, snapshot)
                                              : ScorePlugin::Recompute::kNothing;
    if (anew != ScorePlugin::Recompute::kNothing) {
      Rescore(column, anew, snapshot);
      continue;
    }
    if (!column.active) continue;
    for (size_t t = 0; t < touched_.size(); ++t) {
      const uint32_t i = touched_[t];
      if (fits_[i] == 0 && fitted[t] == 0) continue;
      const int64_t score =
          fits_[i] == 0 ? kUnscored : column.plugin->Score(cycle_.state, *pod_, snapshot.node(i));
      column.scores.Set(i, score);
    }
  }
}

ScorePlugin::Recompute KindTable::FollowFeasible(const Column& column,
                                                 const std::vector<uint8_t>& fitted,
                                                 const ClusterSnapshot& snapshot) {
  auto anew = ScorePlugin::Recompute::kNothing;
  for (size_t t = 0; t < touched_.size(); ++t) {
    const uint32_t i = touched_[t];
    if (fits_[i] == fitted[t]) continue;
    anew = std::max(anew,
                    column.plugin->UpdateFeasible(snapshot.node(i), fits_[i] != 0, cycle_.state));
  }
  return anew;
}

void KindTable::PreScore(Column& column, const ClusterSnapshot& snapshot) {
  std::vector<const NodeInfo*> feasible;
  for (size_t i = 0; i < fits_.size(); ++i) {
    if (fits_[i] != 0) feasible.push_back(&snapshot.node(i));
  }
  column.active = column.plugin->PreScore(*pod_, snapshot, feasible, cycle_.state);
  column.outdated = false;
}

void KindTable::Rescore(Column& column, ScorePlugin::Recompute anew,
                        const ClusterSnapshot& snapshot) {
  const bool was_active = column.active;
  if (anew == ScorePlugin::Recompute::kPreScore) PreScore(column, snapshot);
  if (!column.active && !was_active) return;
  totals_outdated_ = true;
  for (size_t i = 0; i < fits_.size(); ++i) {
    const bool scored = column.active && fits_[i] != 0;
    column.scores.Set(
        i, scored ? column.plugin->Score(cycle_.state, *pod_, snapshot.node(i)) : kUnscored);
  }
}

// True if the extremes changed.
bool KindTable::UpdateExtremes(Column& column) {
  const auto [lowest, highest] = column.scores.Extremes();
  if (lowest == column.lowest && highest == column.highest) return false;
  column.lowest = lowest;
  column.highest = highest;
  return true;
}

int64_t KindTable::Total(size_t node) const {
  int64_t total = 0;
  for (const Column& column : columns_) {
    const int64_t score = column.scores[node];
    if (!column.active || score == kUnscored) continue;
    total += column.weight * column.plugin->Normalized(score, column.lowest, column.reference);
  }
  return total;
}

uint64_t KindTable::OrderOf(const NodeInfo& node) const {
  for (const Column& column : columns_) {
    if (!column.active) continue;
    const uint64_t order = column.plugin->Order(cycle_.state, *pod_, node);
    if (order != 0) return order;
  }
  return 0;
}

const Diagnosis& KindTable::Refusal(const ClusterSnapshot& snapshot) {
  if (refusal_) return *refusal_;
  DiagnosisBuilder builder;
  if (!cycle_.verdict.fits()) {
    builder.Refuse(cycle_.verdict, static_cast<int>(snapshot.size()), cycle_.by);
    refusal_ = std::move(builder).Finish();
    return *refusal_;
  }
  for (size_t i = 0; i < snapshot.size(); ++i) {
    const Plugin* by = nullptr;
    const Verdict verdict = Ask(i, snapshot, &by);
    builder.Add(verdict, 1, by);
  }
  refusal_ = std::move(builder).Finish();
  return *refusal_;
}

}  // namespace nos::scheduling
