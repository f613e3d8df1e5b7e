#include "agent/node/drains.h"

#include <algorithm>

#include "reconcile/node_write.h"

namespace nos::agent {

bool Drains::Counted(const std::string& resource, const Counts& counts, const cluster::Node& node) {
  const auto count = counts.find(resource);
  return reconcile::AllocatableOf(node, resource) > (count == counts.end() ? 0 : count->second);
}

void Drains::Look(const Instances& unwanted, const Counts& counts, const cluster::Node& node) {
  std::erase_if(entries_, [&](const auto& entry) { return !unwanted.contains(entry.first); });
  for (auto& [uuid, entry] : entries_) {
    if (Counted(unwanted.at(uuid), counts, node)) entry.uncounted.reset();
  }
}

void Drains::OnWritten(const Instances& unwanted, const Counts& counts, const cluster::Node& node,
                       bool refused, Time now) {
  Look(unwanted, counts, node);
  for (const auto& [uuid, resource] : unwanted) {
    Entry& entry = entries_[uuid];
    if (!entry.uncounted && !Counted(resource, counts, node)) entry.uncounted = now;
    if (refused && !entry.refused) entry.refused = now;
  }
}

bool Drains::Drained(const std::string& uuid, Time now) const {
  return entries_.contains(uuid) && DrainedAt(uuid) <= now;
}

Time Drains::DrainedAt(const std::string& uuid) const {
  const Entry& entry = entries_.at(uuid);
  if (entry.uncounted) return *entry.uncounted + times_.settle;
  return entry.refused ? *entry.refused + times_.timeout : Time::max();
}

}  // namespace nos::agent
