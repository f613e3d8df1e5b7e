#include "controllers/relocation/reopen.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string_view>
#include <vector>

#include "controllers/relocation/marks.h"

namespace nos::controllers {
namespace {

// Time::max(): a watch event will show the end.
Time ReopensAt(const MovesAway& mark, const std::set<std::string_view>& homeless,
               const MovingScene& scene, RelocationMemories& memories, Duration deadline,
               Time now) {
  const auto moving = scene.moving.find(mark.id);
  RelocationMemory& memory = memories[mark.id];
  memory.seen = now;
  if (moving != scene.moving.end() && !moving->second.places.empty()) {
    memory.over.reset();  // they were not in the caches yet
    return Time::max();
  }
  if (!memory.over) memory.over = now;
  const bool seen_to_the_end = memory.reported_moved || memory.reported_off;
  if (!seen_to_the_end) {
    // The placeholders may not be in the caches yet, or another replica has done everything else.
    // The mark's own time is not trusted alone.
    const Time young = std::min(mark.since, *memory.over) + kSettle;
    return std::max(young, *memory.over + deadline);
  }
  const bool waits = std::ranges::any_of(
      memory.successors, [&](const std::string& uid) { return homeless.contains(uid); });
  return waits ? *memory.over + deadline : now;
}

}  // namespace

void ReopenNodes(const reconcile::Listers& view, kube::Client& client, Time now,
                 Duration successor_timeout, const MovingScene& scene, RelocationMemories& memory,
                 StepOutcome& outcome) {
  std::vector<std::shared_ptr<const cluster::Node>> marked;
  const auto nodes = view.nodes.Snapshot();
  for (const auto& node : *nodes) {
    if (node->meta.annotations.contains(kMovesAway) && !node->meta.deleted) marked.push_back(node);
  }
  if (marked.empty()) return;
  std::set<std::string_view> homeless;
  const auto pods = view.pods.Snapshot();
  for (const auto& pod : *pods) {
    if (pod->node_name.empty() && !pod->Finished()) homeless.insert(pod->meta.uid);
  }
  for (const auto& node : marked) {
    const auto mark = MovesAwayOf(*node);
    if (mark) {
      const Time at = ReopensAt(*mark, homeless, scene, memory, successor_timeout, now);
      if (now < at) {
        if (at != Time::max()) outcome.Due(at);
        continue;
      }
    }
    outcome.Note(ReopenNode(*node, client).status(),
                 "let node " + node->meta.name + " take pods again");
  }
}

}  // namespace nos::controllers
