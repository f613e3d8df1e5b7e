// The remedy of an explanation. Internal to it.
#pragma once

#include <optional>
#include <string>

#include "scheduling/explain.h"

namespace nos::scheduling {

// `liftable`: the node with the fewest objections of those that lack nothing.
std::string RemedyOf(const Explanation& why, const std::optional<Explanation::Nearest>& liftable,
                     const ExplainInput& input);

}  // namespace nos::scheduling
