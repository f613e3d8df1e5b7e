// nos in the scaling simulation: the planner cuts the GPUs there are, the same planner asks for
// nodes, and says which may go.
#pragma once

#include <memory>

#include "study/scaling/stage.h"

namespace nos::study {

struct NosScalerOptions {
  // Nodes that stand half empty are emptied onto others (PlanShrink); false: only empty ones go.
  bool scale_down = false;
  bool moves = false;       // jobs move for others that wait (PlanMoves)
  double window = 600;      // seconds for which a node could have gone, and none was asked for
  double cut_seconds = 10;  // until a GPU is cut anew
};

// `stage` has the pools; their GPUs are hybrid: each whole, or cut by MIG.
std::unique_ptr<Scaler> MakeNosScaler(Stage& stage, const NosScalerOptions& options);

}  // namespace nos::study
