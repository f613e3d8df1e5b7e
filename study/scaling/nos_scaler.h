// nos in the scaling simulation: the planner repartitions existing GPUs, requests nodes, and
// selects nodes to remove.
#pragma once

#include <memory>

#include "study/scaling/stage.h"

namespace nos::study {

struct NosScalerOptions {
  // True: pods of nodes in little use are moved so that the node can be removed (PlanShrink).
  // False: only empty nodes are removed.
  bool scale_down = false;
  bool moves = false;  // jobs move to make capacity for pending ones (PlanMoves)
  // Seconds: a node is removed after it could have been removed this long and none was requested.
  double window = 600;
  double repartition_seconds = 10;  // duration of repartitioning a GPU
};

// The pools' GPUs are hybrid: each is whole or partitioned by MIG.
std::unique_ptr<Scaler> MakeNosScaler(Stage& stage, const NosScalerOptions& options);

}  // namespace nos::study
