// What every node says to the pods of one kind: who fits, and how good it is. Kept up to date at
// the cost of what changed. Internal to Engine.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "scheduling/framework.h"
#include "scheduling/engine/score_tree.h"

namespace nos::scheduling {

// Nodes by the value of one of their labels.
class DomainIndex {
 public:
  // The indices of the nodes whose label `key` has this value; of the snapshot that was given last.
  const std::vector<uint32_t>& NodesOf(const cluster::ClusterSnapshot& snapshot,
                                       std::string_view key, std::string_view value);
  // The nodes' labels are no longer what they were.
  void Clear() { by_key_.clear(); }

 private:
  using ByValue = std::map<std::string, std::vector<uint32_t>, std::less<>>;
  std::map<std::string, ByValue, std::less<>> by_key_;
};

class KindTable {
 public:
  // `pod` stands for its kind.
  KindTable(const Framework& framework, std::shared_ptr<const cluster::Pod> pod,
            const cluster::ClusterSnapshot& snapshot, const CycleState& learnt);

  // A pod came to the node of this index, or left it. False: the table must be made anew.
  bool Follow(const cluster::Pod& other, bool came, size_t node,
              const cluster::ClusterSnapshot& snapshot, DomainIndex& domains);
  // Ask this node anew.
  void Touch(size_t node);
  // Some node has got or lost images.
  void FollowImages();
  // What surrounds pods and nodes has changed. False: the table must be made anew.
  bool FollowAround(const cluster::ClusterSnapshot& snapshot) const;

  // What a node says to the pod beside others, to whom it gave room before they are there.
  struct Beside {
    std::vector<std::shared_ptr<const cluster::Pod>> others;
    Verdict verdict;
    const Plugin* by = nullptr;  // whose verdict it is
  };
  // REQUIRES: Fits(node); there are others. Valid until the node or the others are touched.
  const Beside& AskBeside(size_t node, std::vector<std::shared_ptr<const cluster::Pod>> others,
                          const cluster::ClusterSnapshot& snapshot);

  // Brings verdicts and scores up to date; then the others may be asked.
  void Refresh(const cluster::ClusterSnapshot& snapshot);
  const ScoreTree& tree() const { return tree_; }
  ScoreTree& tree() { return tree_; }
  bool Fits(size_t node) const { return fits_[node] != 0; }
  const Cycle& cycle() const { return cycle_; }
  // What every node says.
  const Diagnosis& Refusal(const cluster::ClusterSnapshot& snapshot);

 private:
  // What one plugin says of all nodes.
  struct Column {
    const ScorePlugin* plugin;
    int weight;
    bool active = true;    // has something to say
    bool outdated = true;  // its PreScore is to be called anew
    bool wide = true;      // its extremes are to be searched anew
    std::vector<int64_t> scores{};
    int64_t lowest = 0, highest = 0;
  };

  Beside BesideOthers(size_t node, std::vector<std::shared_ptr<const cluster::Pod>> others,
                      const cluster::ClusterSnapshot& snapshot) const;
  void AskTouched(const cluster::ClusterSnapshot& snapshot);
  // `fitted`: whether the touched nodes fitted before.
  ScorePlugin::Anew FollowFeasible(const Column& column, const std::vector<uint8_t>& fitted,
                                   const cluster::ClusterSnapshot& snapshot);
  void Rescore(Column& column, ScorePlugin::Anew anew, const cluster::ClusterSnapshot& snapshot);
  void PreScore(Column& column, const cluster::ClusterSnapshot& snapshot);
  static void SetScore(Column& column, size_t node, int64_t score);
  static bool SearchExtremes(Column& column);
  int64_t Total(size_t node) const;
  uint64_t OrderOf(const cluster::NodeInfo& node) const;

  const Framework& framework_;
  std::shared_ptr<const cluster::Pod> pod_;
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
