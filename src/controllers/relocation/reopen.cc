// Uncordons nodes that pods have left, when the relocation is over. Until then a successor could
// return and take the freed capacity.
#include <fmt/core.h>

#include <algorithm>

#include "controllers/relocation/steps.h"

namespace nos::controllers {

void RelocationSteps::ReopenNodes() {
  std::vector<std::shared_ptr<const cluster::Node>> marked;
  const auto nodes = view_.nodes.Snapshot();
  for (const auto& node : *nodes) {
    if (node->meta.annotations.contains(kMovesAway) && !node->meta.deleted) marked.push_back(node);
  }
  if (marked.empty()) return;
  std::set<std::string_view> homeless;
  const auto pods = view_.pods.Snapshot();
  for (const Pod& pod : *pods) {
    if (pod->node_name.empty() && !pod->Finished()) homeless.insert(pod->meta.uid);
  }
  for (const auto& node : marked) {
    const auto mark = MovesAwayOf(*node);
    if (mark) {
      const Time at = ReopensAt(*mark, homeless);
      if (now_ < at) {
        if (at != Time::max()) Due(at);
        continue;
      }
    }
    Failed(ReopenNode(*node, client_).status(), "let node " + node->meta.name + " take pods again");
  }
}

// Time::max(): a watch event will show the end.
Time RelocationSteps::ReopensAt(const MovesAway& mark, const std::set<std::string_view>& homeless) {
  const auto moving = scene_.moving.find(mark.id);
  RelocationMemory& memory = memory_[mark.id];
  memory.seen = now_;
  if (moving != scene_.moving.end() && !moving->second.places.empty()) {
    memory.over.reset();  // they were not in the caches yet
    return Time::max();
  }
  if (!memory.over) memory.over = now_;
  const bool seen_to_the_end = memory.told_moved || memory.told_off;
  if (!seen_to_the_end) {
    // The placeholders may not be in the caches yet, or another replica has done everything else.
    // The mark's own time is not trusted alone.
    const Time young = std::min(mark.since, *memory.over) + kSettle;
    return std::max(young, *memory.over + config_.successor_deadline);
  }
  const bool waits = std::ranges::any_of(
      memory.successors, [&](const std::string& uid) { return homeless.contains(uid); });
  return waits ? *memory.over + config_.successor_deadline : now_;
}

}  // namespace nos::controllers
