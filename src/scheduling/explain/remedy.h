// The remedy of an explanation. Internal to explanations.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scheduling/explain.h"
#include "scheduling/remedies.h"

namespace nos::scheduling {

// The nearest nodes by obstacles other than resources: `plain` lacks no resources but objects to
// the pod; `by_priority` lacks resources that less important pods hold.
struct Liftable {
  std::optional<Explanation::Nearest> plain, by_priority;
  std::optional<Remedy> opt_in = {};  // of a node that lacks only slices
};

// Another component may have partitioned GPUs that the catalogue does not know.
enum class Advertised { kLeftOut, kCounted };
// The slices that the pod requests, and the GPU models that the cluster has or the catalogue knows.
// kLeftOut: without slices of which a node advertises enough.
SliceDemand DemandOf(const ExplainInput& input, Advertised advertised = Advertised::kLeftOut);

// A container requests several shares, and no node offers them that another component shares.
bool HasUnservedShares(const ExplainInput& input);

Remedy RemedyOf(const Explanation& why, const Liftable& liftable, const ExplainInput& input);
// Further remedies for a pod that waits for room on some node.
std::vector<std::string> OtherRemedies(const Remedy& best, const Explanation& why,
                                       const Liftable& liftable, const ExplainInput& input);

}  // namespace nos::scheduling
