// Compares decisions on pods with ResourceClaims, or with extended resources that a DeviceClass
// serves. The choice among feasible nodes and devices is not compared: nos ranks them by what is
// left of the GPUs.
#pragma once

#include <string>

#include "scheduler_differential/compare.h"

namespace nos::differential {

// The pod that both schedulers decided on, and the cluster as it was then.
struct ClaimQuestion {
  const cluster::Pod& pod;
  const Picture& picture;
  DeviceApi devices;
};

// `allowed`: the difference that docs/scheduler-differences.md lists; "": none.
// `disagreement`: any other; "": none.
struct ClaimVerdict {
  std::string disagreement, allowed;
};
ClaimVerdict CompareOnClaims(const Outcome& kube, const Opinion& nos,
                             const ClaimQuestion& question);

}  // namespace nos::differential
