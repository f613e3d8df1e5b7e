// What those that plan go by: GPU models, and where schedulers would place pods. Read from files
// that may change.
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
  std::set<std::string, std::less<>> cutting;  // schedulers that have GPUs cut themselves
  scheduling::Framework usual;                 // for pods of schedulers that no file is about

  // `otherwise`: the profile for pods that name none of them; "": kube-scheduler's default. Refers
  // to these rules.
  scheduling::FrameworkChoice Choice(const std::string& otherwise) const;
};

// Error: kNotFound for a file, kInvalid: what is wrong with it, or it has no profile of the name.
Result<std::unique_ptr<const PlanningRules>> ReadPlanningRules(const PlanningFiles& files);

}  // namespace nos::cmd
