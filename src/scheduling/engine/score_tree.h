// Tournament tree: finds the best node while scores change one by one.
//
//   ScoreTree tree(5000);
//   tree.Set(17, {.score = 250, .order = 3});
//   tree.Best();                              // 17
//
// The highest score wins, then the lowest order, then the lowest index.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace nos::scheduling {

class ScoreTree {
 public:
  static constexpr int64_t kNever = INT64_MIN;  // score of a node that must not be chosen
  struct Entry {
    int64_t score = kNever;
    uint64_t order = 0;
  };

  explicit ScoreTree(size_t size = 0);

  // O(log size).
  void Set(size_t index, Entry entry);
  const Entry& entry(size_t index) const { return entries_[index]; }
  // For many changes: call SetLater for each, then Rebuild once.
  void SetLater(size_t index, Entry entry) { entries_[index] = entry; }
  void Rebuild();
  // Absent: no node may be chosen.
  std::optional<size_t> Best() const;

 private:
  // Index of the winning entry.
  size_t Winner(size_t a, size_t b) const;

  size_t leaves_ = 1;             // a power of two
  std::vector<Entry> entries_;    // one per leaf
  std::vector<uint32_t> winner_;  // winner of the subtree below each inner node; 1 is the root
};

}  // namespace nos::scheduling
