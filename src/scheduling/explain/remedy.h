// The remedy of an explanation. Internal to explanations.
#pragma once

#include <optional>
#include <string>

#include "scheduling/explain.h"

namespace nos::scheduling {

// The nearest nodes by obstacles other than resources: `plain` lacks no resources but objects to
// the pod; `by_priority` lacks resources that less important pods hold.
struct Liftable {
  std::optional<Explanation::Nearest> plain, by_priority;
};

std::string RemedyOf(const Explanation& why, const Liftable& liftable, const ExplainInput& input);

}  // namespace nos::scheduling
