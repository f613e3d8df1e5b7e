// Inputs of a planning controller that come from files: GPU models, and how schedulers would place
// pods. The files may change at run time.
//
//   NOS_ASSIGN(auto rules, ReadPlanningRules(config.files));
//   controllers::Partitioner partitioner(options, rules->Choice(config.files.scheduler_name),
//                                        rules->catalogue);
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cmd/daemon/config_file.h"
#include "gpu/catalogue.h"
#include "scheduling/configuration.h"
#include "scheduling/framework_choice.h"

namespace nos::cmd {

struct PlanningFiles {
  std::string scheduler_file, scheduler_name, geometries_file;
};
void DescribePlanningFiles(ConfigFields& fields, PlanningFiles& files);

struct PlanningRules {
  gpu::Catalogue catalogue;
  std::vector<scheduling::Profile> profiles;
  // Names of schedulers that partition GPUs themselves.
  std::set<std::string, std::less<>> partitioning_schedulers;
  std::shared_ptr<const scheduling::Framework>
      usual;  // for pods of schedulers without a configuration file

  // `otherwise`: profile for pods whose schedulerName matches no profile; "" means kube-scheduler's
  // default. The result refers to these rules.
  scheduling::FrameworkChoice Choice(const std::string& otherwise) const;
};

// Without the scheduler's file: kube-scheduler's default, and a warning. Error: kNotFound for a
// missing file of GPU models; kInvalid for invalid content or a missing profile.
Result<std::unique_ptr<const PlanningRules>> ReadPlanningRules(const PlanningFiles& files);

}  // namespace nos::cmd
