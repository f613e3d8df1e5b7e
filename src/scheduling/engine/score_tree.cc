#include "scheduling/engine/score_tree.h"

#include <bit>

namespace nos::scheduling {

ScoreTree::ScoreTree(size_t size)
    : leaves_(std::bit_ceil(size < 2 ? size_t{2} : size)), entries_(leaves_), winner_(leaves_) {
  Rebuild();
}

size_t ScoreTree::Winner(size_t a, size_t b) const {
  const Entry &left = entries_[a], &right = entries_[b];
  if (left.score != right.score) return left.score > right.score ? a : b;
  if (left.order != right.order) return left.order < right.order ? a : b;
  return a < b ? a : b;
}

void ScoreTree::Set(size_t index, Entry entry) {
  entries_[index] = entry;
  size_t node = (leaves_ + index) / 2;
  winner_[node] = static_cast<uint32_t>(Winner(index & ~size_t{1}, index | size_t{1}));
  for (node /= 2; node >= 1; node /= 2) {
    winner_[node] = static_cast<uint32_t>(Winner(winner_[2 * node], winner_[2 * node + 1]));
  }
}

void ScoreTree::Rebuild() {
  for (size_t node = leaves_ - 1; node >= 1; --node) {
    const bool lowest = 2 * node >= leaves_;
    const size_t left = lowest ? 2 * node - leaves_ : winner_[2 * node];
    const size_t right = lowest ? 2 * node + 1 - leaves_ : winner_[2 * node + 1];
    winner_[node] = static_cast<uint32_t>(Winner(left, right));
  }
}

std::optional<size_t> ScoreTree::Best() const {
  const size_t best = winner_[1];
  if (entries_[best].score == kNever) return std::nullopt;
  return best;
}

}  // namespace nos::scheduling
