// One plugin's scores of all nodes, with the lowest and the highest of them while scores change.
//
//   ScoreColumn scores(5000);
//   scores.Set(17, 250);
//   const auto [lowest, highest] = scores.Extremes();
//
// Extremes takes constant time if no score has changed, else O(changed blocks + size / 64).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "scheduling/plugin.h"

namespace nos::scheduling {

class ScoreColumn {
 public:
  explicit ScoreColumn(size_t size = 0)
      : scores_(size, kUnscored), blocks_((size + kBlock - 1) / kBlock) {}

  int64_t operator[](size_t node) const { return scores_[node]; }
  void Set(size_t node, int64_t score) {
    if (scores_[node] == score) return;
    scores_[node] = score;
    blocks_[node / kBlock].current = all_.current = false;
  }
  // Lowest and highest; the highest integer and kUnscored if no node has a score.
  std::pair<int64_t, int64_t> Extremes() {
    if (!all_.current) {
      all_ = {true};
      for (size_t i = 0; i < blocks_.size(); ++i) {
        if (!blocks_[i].current) blocks_[i] = Read(i);
        all_.lowest = std::min(all_.lowest, blocks_[i].lowest);
        all_.highest = std::max(all_.highest, blocks_[i].highest);
      }
    }
    return {all_.lowest, all_.highest};
  }

 private:
  static constexpr size_t kBlock = 64;  // nodes
  struct Block {
    bool current = false;
    int64_t lowest = std::numeric_limits<int64_t>::max();
    int64_t highest = kUnscored;
  };

  Block Read(size_t index) const {
    Block block{true};
    const size_t end = std::min((index + 1) * kBlock, scores_.size());
    for (size_t i = index * kBlock; i < end; ++i) {
      block.highest = std::max(block.highest, scores_[i]);
      if (scores_[i] != kUnscored) block.lowest = std::min(block.lowest, scores_[i]);
    }
    return block;
  }

  std::vector<int64_t> scores_;
  std::vector<Block> blocks_;
  Block all_;
};

}  // namespace nos::scheduling
