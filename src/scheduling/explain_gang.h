// Explains why a member of a gang (pods placed together or not at all) is pending.
//
//   const Explanation why = ExplainTogether(input, {"pod group ml/train", 3, 0, members});
//
// Pure functions.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scheduling/explain.h"
#include "scheduling/framework_choice.h"

namespace nos::scheduling {

struct Together {
  std::string name;   // "pod group ml/train"
  size_t least = 1;   // minimum number of members with a node
  size_t placed = 0;  // members that have a node
  std::vector<std::shared_ptr<const cluster::Pod>> waiting;  // in placement order
  // Framework by each member's scheduler name. Null: the input's framework for all.
  const FrameworkChoice* frameworks = nullptr;
  // Like ExplainInput::reclaim, for a member beside others that the snapshot has on their nodes and
  // that are charged this much. Null: none, or unknown.
  using ReclaimBeside = std::function<std::optional<Preemption>(
      const std::shared_ptr<const cluster::Pod>& member, const cluster::ClusterSnapshot& snapshot,
      const quota::Amounts& others)>;
  ReclaimBeside reclaim = nullptr;
  std::vector<std::shared_ptr<const cluster::Pod>> gated = {};  // members with scheduling gates
};

// Simulates the scheduler: places the waiting members one by one, with GPUs partitioned if needed.
// Members that may fit after others (MayFollow) are retried at the end. If members must be near
// each other, each topology domain is tried until enough members have a node.
//
// If enough members find a node, or the pod is not among them, the result is that of Explain for
// the pod at its turn. Otherwise it explains, for all members, why the first member without a node
// finds none beside the others.
Explanation ExplainTogether(const ExplainInput& input, const Together& together);

}  // namespace nos::scheduling
