#include "controllers/scheduler/preemption/agent_waits.h"

#include "cluster/annotations.h"
#include "controllers/pending/assumed.h"

namespace nos::controllers {

bool AgentWaits::MayWait(const std::string& pod_key, Time now) {
  std::optional<Time>& until = until_[pod_key];
  // An old wait had another cause.
  if (until && now >= *until + 10 * limit_) until.reset();
  if (!until) {
    until = now + limit_;
    ends_.emplace(*until, pod_key);
  }
  return now < *until;
}

std::vector<std::string> AgentWaits::TakeExpired(Time now) {
  std::vector<std::string> expired;
  while (!ends_.empty() && ends_.begin()->first <= now) {
    auto end = ends_.extract(ends_.begin()).value();
    const auto wait = until_.find(end.second);
    if (wait != until_.end() && wait->second == end.first) expired.push_back(std::move(end.second));
  }
  return expired;
}

std::optional<Time> AgentWaits::NextDue() const {
  if (ends_.empty()) return std::nullopt;
  return ends_.begin()->first;
}

std::optional<Time> AgentWaits::Until(const std::string& pod_key) const {
  const auto wait = until_.find(pod_key);
  return wait == until_.end() ? std::nullopt : wait->second;
}

void AgentWaits::MarkSilent(const std::string& node, const cluster::Pod& pod) {
  const cluster::NodeInfo* info = engine_.snapshot().Find(node);
  if (info == nullptr) return;
  Silence& silence = silent_[node];
  const bool same = silence.node != nullptr && cluster::ReportTheSame(*info->node, *silence.node);
  silence = {info->node, (same && silence.for_all) || engine_.IsGuaranteed(pod, node)};
}

std::vector<std::string> AgentWaits::SilentNodes(const cluster::Pod& pod) {
  std::erase_if(silent_, [&](const auto& entry) {
    const cluster::NodeInfo* info = engine_.snapshot().Find(entry.first);
    return info == nullptr || !cluster::ReportTheSame(*info->node, *entry.second.node);
  });
  std::vector<std::string> names;
  if (silent_.empty()) return names;
  const bool guaranteed = engine_.IsGuaranteed(pod, "");
  for (const auto& [name, silence] : silent_) {
    if (silence.for_all || !guaranteed) names.push_back(name);
  }
  return names;
}

void AgentWaits::LeaveOutSilentNodes(const cluster::Pod& pod, cluster::ClusterSnapshot& snapshot) {
  if (!AsksForSlices(pod, GivesWhole(snapshot))) return;
  for (const std::string& name : SilentNodes(pod)) snapshot.RemoveNode(name);
}

}  // namespace nos::controllers
