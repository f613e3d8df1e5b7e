// Parses the statements of a scenario that describe the initial cluster: nodes, GPUs, pods.
// Internal to this folder. Errors: kInvalid with file and line.
#pragma once

#include <set>

#include "controllers/autoscaler.h"
#include "sim/scenarios/steps.h"
#include "sim/scenarios/words.h"

namespace nos::sim {

// After the word "node".
Result<NodeSpec> ParseNode(Words& words);
// After the word "pool".
Result<PoolSpec> ParsePool(Words& words);
// After the word "autoscaler".
Status ParseAutoscaler(Words& words, controllers::AutoscalerConfig& config);
// After the word "gpu": "0-3 model=A30: 1g.6gb@0 used by a, 2g.12gb@2 free". `described`: the GPUs
// of this node in earlier lines.
Status ParseGpu(Words& words, NodeSpec& node, std::set<size_t>& described);
// After the word "pod" (count 1) or "pods N".
Result<AddPods> ParsePods(Words& words, int count);

}  // namespace nos::sim
