// Verdicts and scores of all nodes for one kind of pod, updated at the cost of what changed.
// Internal to Engine and Rehearsal.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "scheduling/cycle.h"
#include "scheduling/diagnosis.h"
#include "scheduling/engine/domain_index.h"
#include "scheduling/engine/score_column.h"
#include "scheduling/engine/score_tree.h"

namespace nos::scheduling {

class Framework;

class KindTable {
 public:
  // `pod` represents its kind.
  KindTable(const Framework& framework, std::shared_ptr<const cluster::Pod> pod,
            const cluster::ClusterSnapshot& snapshot, const CycleState& precomputed);

  // A pod was added to the node with this index or removed from it (`came`). False: the table must
  // be rebuilt.
  bool Follow(const cluster::Pod& other, bool came, size_t node,
              const cluster::ClusterSnapshot& snapshot, DomainIndex& domains);
  // Marks the node for re-evaluation.
  void Touch(size_t node);
  // Images on some node changed.
  void FollowImages();
  // The cluster context changed. False: the table must be rebuilt.
  bool FollowContext(const cluster::ClusterSnapshot& snapshot) const;

  // Verdict of a node on the pod beside nominated pods that are not there yet.
  struct Beside {
    std::vector<std::shared_ptr<const cluster::Pod>> others;
    Verdict verdict;
    const Plugin* by = nullptr;  // the plugin that gave the verdict
  };
  // REQUIRES: Fits(node); `others` is not empty. Valid until the node is touched or AskBeside is
  // called again for it.
  const Beside& AskBeside(size_t node, std::vector<std::shared_ptr<const cluster::Pod>> others,
                          const cluster::ClusterSnapshot& snapshot);

  // Updates verdicts and scores. The accessors below are valid afterwards.
  void Refresh(const cluster::ClusterSnapshot& snapshot);
  const ScoreTree& tree() const { return tree_; }
  ScoreTree& tree() { return tree_; }
  bool Fits(size_t node) const { return fits_[node] != 0; }
  const Cycle& cycle() const { return cycle_; }
  // Verdicts of all nodes.
  const Diagnosis& Refusal(const cluster::ClusterSnapshot& snapshot);

 private:
  // Scores of one plugin for all nodes.
  struct Column {
    const ScorePlugin* plugin;
    int weight;
    bool active = true;    // PreScore returned true
    bool outdated = true;  // PreScore must be called again
    ScoreColumn scores{};
    int64_t lowest = 0, highest = 0;
    int64_t reference = 0;  // the highest score by which the totals are normalized
  };

  Verdict Ask(size_t node, const cluster::ClusterSnapshot& snapshot, const Plugin** by) const;
  const Plugin* PluginOfSlices(const Cycle& cycle) const;
  Beside BesideOthers(size_t node, std::vector<std::shared_ptr<const cluster::Pod>> others,
                      const cluster::ClusterSnapshot& snapshot) const;
  void AskTouched(const cluster::ClusterSnapshot& snapshot);
  // `fitted`: previous verdicts of the touched nodes.
  ScorePlugin::Recompute FollowFeasible(const Column& column, const std::vector<uint8_t>& fitted,
                                        const cluster::ClusterSnapshot& snapshot);
  void Rescore(Column& column, ScorePlugin::Recompute anew,
               const cluster::ClusterSnapshot& snapshot);
  void PreScore(Column& column, const cluster::ClusterSnapshot& snapshot);
  static bool UpdateExtremes(Column& column);
  int64_t Total(size_t node) const;
  uint64_t OrderOf(const cluster::NodeInfo& node) const;

  const Framework& framework_;
  std::shared_ptr<const cluster::Pod> pod_;
  const cluster::ResourceVector requests_;
  Cycle cycle_;
  std::vector<Column> columns_;
  std::vector<uint8_t> fits_;
  std::vector<uint32_t> touched_;
  std::vector<uint8_t> is_touched_;
  bool totals_outdated_ = true;
  ScoreTree tree_;
  std::optional<Diagnosis> refusal_;
  std::unordered_map<size_t, Beside> beside_;
};

}  // namespace nos::scheduling
