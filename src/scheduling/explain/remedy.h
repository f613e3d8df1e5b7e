// The remedy of an explanation. Internal to explanations.
#pragma once

#include <optional>

#include "scheduling/explain.h"
#include "scheduling/remedies.h"

namespace nos::scheduling {

// The nearest nodes by obstacles other than resources: `plain` lacks no resources but objects to
// the pod; `by_priority` lacks resources that less important pods hold.
struct Liftable {
  std::optional<Explanation::Nearest> plain, by_priority;
};

// The slices that the pod requests, and the GPU models that the cluster has or the catalogue knows.
SliceDemand DemandOf(const ExplainInput& input);

Remedy RemedyOf(const Explanation& why, const Liftable& liftable, const ExplainInput& input);

}  // namespace nos::scheduling
