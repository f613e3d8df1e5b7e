// First fit by lowest score, with a cache of (pod kind, node) scores that is valid until the node
// changes.
//
//   ScoreMemo memo(nodes.size());
//   auto best = memo.Lowest(kind, [&](size_t node) { return ScoreOf(kind, nodes[node]); });
//   Take(nodes[best->node], ...);  memo.Touch(best->node);
//
// Placing a pod changes one node. A further pod of a known kind therefore costs one comparison per
// node, plus a score for each node changed since the last pod of the kind. Bounded: all rows are
// dropped when the cache exceeds max_entries. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "scheduling/packing/node.h"

namespace nos::scheduling::packing {

struct Score {
  int32_t cost = 0;     // lower is better
  int32_t device = -1;  // passed through for the scorer
};

class ScoreMemo {
 public:
  explicit ScoreMemo(size_t nodes, size_t max_entries = size_t{1} << 21)
      : versions_(nodes, 1), max_entries_(max_entries) {}

  struct Best {
    size_t node = 0;
    Score score;
  };

  // Returns the first node, by index, with the lowest score. `score` returns no value for nodes
  // that do not fit. `allowed` filters nodes and is not cached.
  template <typename ScoreFn, typename AllowedFn>
  std::optional<Best> Lowest(const PodKind& kind, ScoreFn&& score, AllowedFn&& allowed) {
    std::vector<Entry>& row = Row(kind);
    std::optional<Best> best;
    for (size_t node = 0; node < row.size(); ++node) {
      Entry& entry = row[node];
      if (entry.version != versions_[node]) entry = Scored(versions_[node], score(node));
      if (!entry.fits || (best && entry.score.cost >= best->score.cost)) continue;
      if (allowed(node)) best = Best{node, entry.score};
    }
    return best;
  }

  void Touch(size_t node) { ++versions_[node]; }
  void Forget() { rows_.clear(); }

 private:
  struct Entry {
    uint32_t version = 0;  // version of the node when scored; 0: never
    bool fits = false;
    Score score;
  };

  static Entry Scored(uint32_t version, const std::optional<Score>& score) {
    return {version, score.has_value(), score.value_or(Score{})};
  }

  std::vector<Entry>& Row(const PodKind& kind) {
    const auto found = rows_.find(kind);
    if (found != rows_.end()) return found->second;
    if ((rows_.size() + 1) * versions_.size() > max_entries_) rows_.clear();
    return rows_.emplace(kind, std::vector<Entry>(versions_.size())).first->second;
  }

  std::vector<uint32_t> versions_;  // per node, starting at 1
  size_t max_entries_;
  std::map<PodKind, std::vector<Entry>> rows_;
};

}  // namespace nos::scheduling::packing
