// The fewest pods on a node that hold what another pod lacks there, beside slices.
//
//   HoldingPods holding(translation);
//   for (const Holder& pod : holding.Fewest(cls, node, draft, SIZE_MAX, allowance)) ...
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "planning/explanation/allowance.h"
#include "planning/explanation/wording.h"
#include "planning/model/draft.h"
#include "planning/translation/translate.h"

namespace nos::planning {

// Remembers what the pods of each node hold, as thousands of classes are asked about. The
// translation must outlive it.
class HoldingPods {
 public:
  explicit HoldingPods(const Translation& translation);

  // Running pods that nothing restarts there, and pods that the draft places, except members of the
  // class's own gang. Finds one pod or two if these are enough; otherwise all of them less those,
  // most important first, that need not end. Empty: even all of them do not hold enough, or more
  // than `most` must end.
  //
  // REQUIRES: `draft` is the draft of the last call, or one with later versions of its nodes.
  std::vector<Holder> Fewest(int cls, int node, const Draft& draft, size_t most,
                             Allowance& allowance);

 private:
  struct Running {
    std::string key;
    std::vector<int64_t> held;  // by dimension
  };
  struct Candidate {
    Holder pod;
    int cls = -1;                   // of a planned pod
    const int64_t* held = nullptr;  // by dimension
  };
  struct OfNode {
    std::vector<Running> running;        // least important first
    std::vector<Candidate> candidates;   // planned pods, then running ones
    std::vector<int64_t> first, second;  // by dimension: the largest amounts that pods hold
    uint32_t version = 0;                // of the node, in the draft
  };
  using Missing = std::vector<std::pair<size_t, int64_t>>;  // dimension and amount
  using Candidates = std::vector<const Candidate*>;

  void FindRunning(int node, OfNode& here) const;
  void FindCandidates(int node, const Draft& draft, OfNode& here) const;
  const OfNode& At(int node, const Draft& draft, Allowance& allowance);
  static std::vector<Holder> One(const Candidates& candidates, const Missing& missing);
  static std::vector<Holder> Two(const Candidates& candidates, const Missing& missing);
  static std::vector<Holder> Many(Candidates ending, const Missing& missing);

  const Translation& t_;
  std::vector<std::optional<OfNode>> by_node_;
};

}  // namespace nos::planning
