#include "scheduling/gang_domains.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "scheduling/plugins/inter_pod_affinity/terms.h"

namespace nos::scheduling {
namespace {

using Members = std::span<const std::shared_ptr<const cluster::Pod>>;

std::set<std::string> KeysOf(Members members) {
  std::set<std::string> keys;
  for (const auto& owner : members) {
    for (const cluster::PodAffinityTerm& term : owner->pod_affinity.required) {
      if (keys.contains(term.topology_key)) continue;
      const bool means_one = std::ranges::any_of(
          members, [&](const auto& other) { return MaySelect(term, *owner, *other); });
      if (means_one) keys.insert(term.topology_key);
    }
  }
  return keys;
}

bool HasToBeNear(const cluster::Pod& owner, const cluster::Pod& other) {
  return std::ranges::any_of(
      owner.pod_affinity.required,
      [&](const cluster::PodAffinityTerm& term) { return MaySelect(term, owner, other); });
}

}  // namespace

bool HaveToBeNear(Members members) { return !KeysOf(members).empty(); }

bool IsTied(const cluster::Pod& member, Members members) {
  return std::ranges::any_of(members, [&](const auto& other) {
    return HasToBeNear(member, *other) || HasToBeNear(*other, member);
  });
}

std::vector<std::vector<size_t>> GangDomains(Members members,
                                             std::span<const cluster::NodeInfo* const> nodes) {
  const std::set<std::string> keys = KeysOf(members);
  if (keys.empty()) return {};
  std::map<std::vector<std::string>, std::vector<size_t>> by_values;
  for (size_t n = 0; n < nodes.size(); ++n) {
    const cluster::StringMap& labels = nodes[n]->node->meta.labels;
    std::vector<std::string> values;
    for (const std::string& key : keys) {
      const auto label = labels.find(key);
      if (label != labels.end()) values.push_back(label->second);
    }
    if (values.size() == keys.size()) by_values[std::move(values)].push_back(n);
  }
  std::vector<std::vector<size_t>> domains;
  for (auto& [values, in_it] : by_values) domains.push_back(std::move(in_it));
  std::ranges::stable_sort(domains, std::ranges::greater(), &std::vector<size_t>::size);
  return domains;
}

}  // namespace nos::scheduling
