// The smallest change that would let a waiting pod run, in one sentence.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planning/explanation/allowance.h"
#include "planning/optimize/stages.h"
#include "planning/translation/translate.h"

namespace nos::planning {

struct RemedyInput {
  const Translation& translation;
  const StagedResult& result;
  // By node: all that the filters object to.
  const std::vector<std::vector<scheduling::Verdict>>& obstacles;
  // By node: of the GPUs for the class's slices; none: not found out, which counts as no.
  const std::vector<std::optional<bool>>& has_room;
};

// Looks at every node: what keeps a pod of the class away from it when all that is planned is
// there, and how many things would have to change. Of equally many, waiting for others to end comes
// before asking people for changes. Everything that stands between the pod and that node is named.
// "" when the allowance did not suffice to look at all of them.
std::string FindRemedy(const RemedyInput& input, int cls, Allowance& allowance);

bool NodeHasProfile(const Problem& problem, int node, uint16_t slice);
// The first dimension of which the node has too little left; -1: none.
int LackingDimension(const Draft& draft, int cls, int node);

}  // namespace nos::planning
