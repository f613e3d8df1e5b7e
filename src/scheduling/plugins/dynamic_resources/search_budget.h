// Limits the search for the devices of one pod over all nodes. A claim can be made so that no
// search for it ends (many requests that contradict each other), on every node alike. The scheduler
// decides one pod after the other, so the others would wait.
//
//   SearchBudget budget;
//   options.max_steps = budget.Next();
//   budget.Note(index.Allocate(claims, node, find_class, options));
#pragma once

#include <cstdint>

#include "dra/allocator.h"

namespace nos::scheduling {

class SearchBudget {
 public:
  // Searches that end without an answer, before only short ones are made.
  static constexpr int kLongSearches = 2;
  // Then none is made on further nodes.
  static constexpr int kSearches = 100;
  // In devices tried: about 20 ms and 2 ms. Claims of a few requests need some hundred steps.
  static constexpr int64_t kLongSearch = 100'000, kShortSearch = 10'000;

  // The most steps for the next node.
  int64_t Next() const {
    if (unanswered_ >= kSearches) return 0;
    return unanswered_ < kLongSearches ? kLongSearch : kShortSearch;
  }
  void Note(const dra::AllocationOutcome& outcome) {
    if (outcome.kind == dra::AllocationOutcome::Kind::kStepsExhausted) ++unanswered_;
  }

 private:
  int unanswered_ = 0;
};

}  // namespace nos::scheduling
