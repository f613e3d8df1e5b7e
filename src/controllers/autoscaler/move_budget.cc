#include "controllers/autoscaler/move_budget.h"

#include <algorithm>

namespace nos::controllers {

bool MoveAllowance::Allows(const std::map<std::string, int>& more) const {
  int sum = total;
  for (const auto& [ns, count] : more) {
    sum += count;
    const auto known = by_namespace.find(ns);
    const int before = known == by_namespace.end() ? 0 : known->second;
    if (before + count > per_namespace) return false;
  }
  return sum <= per_hour;
}

void MoveAllowance::Take(const std::string& ns) {
  ++total;
  ++by_namespace[ns];
}

void MoveBudget::Observe(const std::vector<std::shared_ptr<const cluster::Node>>& nodes, Time now) {
  std::erase_if(moved_, [&](const auto& one) { return now - one.second.at >= kMovedCounts; });
  for (const auto& node : nodes) {
    MovedById all = MovedFrom(*node, now);
    for (auto& [id, moved] : all) {
      moved_.try_emplace(std::pair(id, node->meta.name), std::move(moved));
    }
  }
}

void MoveBudget::Add(const std::string& relocation, const std::string& node, const std::string& ns,
                     Time now) {
  Moved& moved = moved_[{relocation, node}];
  moved.at = now;
  ++moved.pods[ns];
}

MoveAllowance MoveBudget::Allowance() const {
  MoveAllowance allowance{per_hour_, per_namespace_};
  for (const auto& [where, moved] : moved_) {
    for (const auto& [ns, count] : moved.pods) {
      allowance.total += count;
      allowance.by_namespace[ns] += count;
    }
  }
  return allowance;
}

}  // namespace nos::controllers
