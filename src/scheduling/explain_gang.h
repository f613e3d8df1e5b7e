// Why a pod waits that is placed together with others or not at all.
//
//   const Explanation why = ExplainTogether(input, {"pod group ml/train", 3, 0, members});
//
// Pure functions.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "scheduling/explain.h"
#include "scheduling/framework_choice.h"

namespace nos::scheduling {

struct Together {
  std::string name;   // "pod group ml/train"
  size_t least = 1;   // members that must have a node
  size_t placed = 0;  // those that have one
  std::vector<std::shared_ptr<const cluster::Pod>>
      waiting;  // in the order in which they are placed
  // By the scheduler that each of them names. Null: the input's for all.
  const FrameworkChoice* frameworks = nullptr;
};

// Places the members that wait one after the other, as the scheduler does, GPUs cut where need be;
// those that may follow others (MayFollow) again after these, and if members have to be near each
// other, in each topology domain, until enough of them find a node.
// If enough of them find a node, or the pod is none of them, it is Explain of the pod when it is
// its turn; else it tells what keeps the first that finds none beside the others, for all of them.
Explanation ExplainTogether(const ExplainInput& input, const Together& together);

}  // namespace nos::scheduling
