#include "agent/node/sharing_mode.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "cluster/annotations.h"

namespace nos::agent {
namespace {

struct Row {
  std::string_view label;
  SharingMode mode;
};

// Any other label is partitioning by MIG.
constexpr Row kModes[] = {
    {"mps", {.per_gpu = false, .mps = true}},
    {"hybrid", {.per_gpu = true, .mps = true}},
};

}  // namespace

SharingMode SharingModeOf(const cluster::Node& node, bool gives_whole) {
  const auto row = std::ranges::find(kModes, cluster::RequestedSharingMode(node), &Row::label);
  if (row == std::end(kModes) || (row->mode.per_gpu && !gives_whole)) return {};
  return row->mode;
}

}  // namespace nos::agent
