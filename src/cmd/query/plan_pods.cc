#include "cmd/query/plan_pods.h"

#include <map>
#include <string>
#include <utility>

#include "cmd/daemon/scheduler_file.h"

namespace nos::cmd {

PlanningFrameworks::PlanningFrameworks()
    : ours_(scheduling::Framework::Default()),
      usual_(scheduling::DefaultConfiguration({.simulates = true})),
      choice_(*usual_.profiles.front().framework, {{std::string(kOurScheduler), &ours_}}) {}

planning::Plan WithRefused(controllers::AdmittedPlan admitted) {
  planning::Plan& plan = admitted.plan;
  std::map<std::string, size_t> there;  // members of refused gangs
  for (size_t i = 0; i < plan.pods.size(); ++i) there[plan.pods[i].pod->Key()] = i;
  for (planning::PodOutcome& outcome : admitted.refused) {
    const auto known = there.find(outcome.pod->Key());
    if (known == there.end()) {
      plan.pods.push_back(std::move(outcome));
    } else {
      plan.pods[known->second] = std::move(outcome);
    }
  }
  return std::move(plan);
}

}  // namespace nos::cmd
