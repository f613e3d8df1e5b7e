// The remedy of an explanation. Internal to it.
#pragma once

#include <optional>
#include <string>

#include "scheduling/explain.h"

namespace nos::scheduling {

// The nodes with the fewest things in the way: of those that lack nothing, but object to the pod;
// and of those that lack what less important pods hold.
struct Liftable {
  std::optional<Explanation::Nearest> plain, by_priority;
};

std::string RemedyOf(const Explanation& why, const Liftable& liftable, const ExplainInput& input);

}  // namespace nos::scheduling
