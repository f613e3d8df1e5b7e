#include "controllers/withdrawals.h"

#include <algorithm>

namespace nos::controllers {

void Withdrawals::Update(const std::map<std::string, std::string>& withdrawn,
                         const std::map<std::string, int64_t>& offered, const cluster::Node& node,
                         Time now) {
  std::erase_if(entries_, [&](const auto& entry) { return !withdrawn.contains(entry.first); });
  for (const auto& [uuid, resource] : withdrawn) {
    Entry& entry = entries_.try_emplace(uuid, Entry{now, std::nullopt}).first->second;
    const auto allocatable = node.allocatable.find(resource);
    const int64_t shown = allocatable == node.allocatable.end() ? 0 : allocatable->second.Value();
    const auto count = offered.find(resource);
    if (!entry.shown && shown <= (count == offered.end() ? 0 : count->second)) entry.shown = now;
  }
}

Time Withdrawals::ReadyAt(const Entry& entry) const {
  return entry.shown.value_or(entry.since + times_.timeout) + times_.settle;
}

bool Withdrawals::MayDestroy(const std::string& uuid, Time now) const {
  const auto found = entries_.find(uuid);
  return found != entries_.end() && ReadyAt(found->second) <= now;
}

std::optional<Time> Withdrawals::NextReady(Time now) const {
  std::optional<Time> next;
  for (const auto& [uuid, entry] : entries_) {
    const Time ready = ReadyAt(entry);
    if (ready > now) next = std::min(next.value_or(ready), ready);
  }
  return next;
}

}  // namespace nos::controllers
