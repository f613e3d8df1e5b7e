#include "scheduling/lost_node.h"

#include <algorithm>

namespace nos::scheduling {

bool IsLost(const cluster::Node& node) {
  return std::ranges::any_of(node.taints, [](const cluster::Taint& taint) {
    return taint.key == "node.kubernetes.io/unreachable";
  });
}

}  // namespace nos::scheduling
