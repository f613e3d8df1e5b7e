#include "controllers/autoscaler/unschedulable_pods.h"

#include <utility>

namespace nos::controllers {

UnschedulablePods UnschedulablePods::Without(const std::set<int>& gone) const {
  UnschedulablePods left;
  std::vector<int> place(pods.size(), -1);  // new index by old index
  for (size_t i = 0; i < pods.size(); ++i) {
    if (gone.contains(static_cast<int>(i))) continue;
    place[i] = static_cast<int>(left.pods.size());
    left.pods.push_back(pods[i]);
  }
  for (planning::Gang gang : gangs) {
    const size_t before = gang.members.size();
    std::erase_if(gang.members, [&](int member) { return place[static_cast<size_t>(member)] < 0; });
    gang.placed += static_cast<int>(before - gang.members.size());
    for (int& member : gang.members) member = place[static_cast<size_t>(member)];
    const bool has_enough = gang.problem.empty() && gang.Lacking() <= 0;
    if (!has_enough && !gang.members.empty()) left.gangs.push_back(std::move(gang));
  }
  return left;
}

}  // namespace nos::controllers
