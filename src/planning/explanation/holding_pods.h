// The fewest pods on a node that hold what another pod lacks there, beside slices.
//
//   HoldingPods holding(translation);
//   for (const Holder& pod : holding.Fewest(cls, node, draft, SIZE_MAX, allowance)) ...
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planning/explanation/allowance.h"
#include "planning/explanation/wording.h"
#include "planning/model/draft.h"
#include "planning/translation/translate.h"

namespace nos::planning {

// Remembers what the pods of each node hold. The translation must outlive it.
class HoldingPods {
 public:
  explicit HoldingPods(const Translation& translation);

  // Running pods that nothing restarts there, and pods that the draft places, except members of the
  // class's own gang. Finds one pod or two
  // if these are enough; otherwise all of them less those, most important first, that need not end.
  // Empty: even all of them do not hold enough, or more than `most` must end.
  std::vector<Holder> Fewest(int cls, int node, const Draft& draft, size_t most,
                             Allowance& allowance);

 private:
  struct Running {
    std::string key;
    std::vector<int64_t> held;  // by dimension
  };
  const std::vector<Running>& On(int node);

  const Translation& t_;
  std::vector<std::optional<std::vector<Running>>> by_node_;  // least important first
};

}  // namespace nos::planning
