#include "sim/world/checks/gang_checker.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/specs.h"
#include "sim/world/node/invariants.h"

namespace nos::sim {
namespace {

// Members with reserved nodes, by gang.
std::map<std::string, std::set<std::string>> KeptByGang(const cluster::ClusterSnapshot& kept) {
  std::map<std::string, std::set<std::string>> by_gang;
  for (size_t i = 0; i < kept.size(); ++i) {
    for (const auto& pod : kept.node(i).pods) {
      const std::string group = PodGroupKeyOf(*pod);
      if (pod->node_name.empty() && !group.empty()) by_gang[group].insert(pod->Key());
    }
  }
  return by_gang;
}

}  // namespace

std::string PodGroupKeyOf(const cluster::Pod& pod) {
  const auto label = pod.meta.labels.find(kPodGroupLabel);
  return label == pod.meta.labels.end() ? "" : pod.meta.ns + "/" + label->second;
}

bool HasPlace(const cluster::Pod& pod) {
  return !pod.node_name.empty() && pod.phase != "Failed" && !pod.meta.deleted;
}

void GangChecker::See(const Pod& before, const Pod& after, Time now) {
  const Pod& pod = after != nullptr ? after : before;
  const auto gang = gangs_.find(PodGroupKeyOf(*pod));
  if (gang == gangs_.end()) return;
  Time& until = gang->second.counted_until[pod->Key()];
  if (after != nullptr && HasPlace(*after)) {
    until = Time::max();
  } else if (until == Time::max()) {
    until = now + kFaultsLinger;
  }
}

bool GangChecker::CountAsked(Gang& gang, const std::set<std::string>& asked, Time now) {
  bool any = false;
  for (auto& [key, until] : gang.counted_until) {
    if (!asked.contains(key)) continue;
    until = std::max(until, now + kFaultsLinger);
    any = true;
  }
  return any;
}

std::vector<std::string> GangChecker::Check(const cluster::ClusterSnapshot& kept, Time now) {
  std::vector<std::string> problems;
  const auto asked = std::exchange(asked_, {});
  if (gangs_.empty()) return problems;
  auto kept_by_gang = KeptByGang(kept);
  for (auto& [name, gang] : gangs_) {
    const bool asked_for = CountAsked(gang, asked, now);
    std::set<std::string> members;
    for (const auto& [key, until] : gang.counted_until) {
      if (until > now) members.insert(key);
    }
    if (asked_for && members.size() < gang.least) {
      problems.push_back(fmt::format("gang {}: {} of its pods are bound, and {} must be", name,
                                     members.size(), gang.least));
    }
    auto& places = kept_by_gang[name];
    if (places.empty()) continue;
    members.merge(places);
    if (members.size() >= gang.least) continue;
    problems.push_back(
        fmt::format("gang {}: places are kept although only {} of its pods have "
                    "one, and {} must",
                    name, members.size(), gang.least));
  }
  return problems;
}

std::vector<std::string> GangChecker::CheckPartitioning(
    const std::set<std::string>& partitioned_for, const std::set<std::string>& planned,
    Time now) const {
  std::vector<std::string> problems;
  for (const auto& [name, gang] : gangs_) {
    size_t members = 0;
    bool concerned = false;
    for (const auto& [key, until] : gang.counted_until) {
      concerned = concerned || partitioned_for.contains(key);
      members += until > now || planned.contains(key) ? 1 : 0;
    }
    if (!concerned || members >= gang.least) continue;
    problems.push_back(fmt::format(
        "gang {}: GPUs are partitioned although only {} of its pods are served, and {} must be",
        name, members, gang.least));
  }
  return problems;
}

}  // namespace nos::sim
