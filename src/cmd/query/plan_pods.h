// Parts of nos plan: which scheduler places which pod, and pods that their quotas refuse.
#pragma once

#include "controllers/plan_within_quotas.h"
#include "scheduling/configuration.h"
#include "scheduling/framework.h"
#include "scheduling/framework_choice.h"

namespace nos::cmd {

// By scheduler name, as in nos explain without a configuration file: nos scheduler, which enforces
// quotas, and kube-scheduler's default for all others.
class PlanningFrameworks {
 public:
  PlanningFrameworks();
  PlanningFrameworks(const PlanningFrameworks&) = delete;
  PlanningFrameworks& operator=(const PlanningFrameworks&) = delete;
  const scheduling::FrameworkChoice& choice() const { return choice_; }

 private:
  const scheduling::Framework ours_;
  const scheduling::Configuration usual_;
  const scheduling::FrameworkChoice choice_;
};

// The plan, followed by the pods that their quotas refuse.
planning::Plan WithRefused(controllers::AdmittedPlan admitted);

}  // namespace nos::cmd
