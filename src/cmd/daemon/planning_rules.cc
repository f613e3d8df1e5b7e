#include "cmd/daemon/planning_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "base/log.h"
#include "cmd/catalogue_flag.h"
#include "cmd/daemon/scheduler_file.h"

namespace nos::cmd {
namespace {

// The files, without a scheduler configuration that is missing: its ConfigMap is optional.
PlanningFiles Present(PlanningFiles files) {
  std::error_code error;
  if (files.scheduler_file.empty() || std::filesystem::exists(files.scheduler_file, error) ||
      error) {
    return files;
  }
  Log(LogLevel::kWarn,
      "planning with kube-scheduler's default, the scheduler configuration is missing",
      {{"file", files.scheduler_file}});
  files.scheduler_file.clear();
  return files;
}

Result<std::vector<scheduling::Profile>> ReadProfiles(const PlanningFiles& files) {
  if (files.scheduler_file.empty()) return std::vector<scheduling::Profile>();
  NOS_ASSIGN(SchedulerFile file, ReadSchedulerFile(files.scheduler_file, {.simulates = true}));
  const bool there = std::ranges::any_of(file.configuration.profiles, [&](const auto& profile) {
    return profile.scheduler_name == files.scheduler_name;
  });
  if (files.scheduler_name.empty() || there) return std::move(file.configuration.profiles);
  return Invalid(fmt::format("{}: no profile has schedulerName '{}'", files.scheduler_file,
                             files.scheduler_name));
}

}  // namespace

void DescribePlanningFiles(ConfigFields& f, PlanningFiles& c) {
  f.Text(
      "schedulerConfigFile", c.scheduler_file,
      "KubeSchedulerConfiguration file. Pods that name one of its profiles are placed as that "
      "profile does, other pods as kube-scheduler's default does, and all pods while the file is "
      "missing. Reloaded when it changes.");
  f.Text("schedulerName", c.scheduler_name,
         "Profile of that file for pods that name no profile of it. Empty: kube-scheduler's "
         "default.");
  f.Text("knownMigGeometriesFile", c.geometries_file,
         "File with additional or overridden GPU models (docs/catalogue.md). Reloaded when it "
         "changes.");
}

scheduling::FrameworkChoice PlanningRules::Choice(const std::string& otherwise) const {
  std::map<std::string, const scheduling::Framework*> by_name;
  for (const auto& profile : profiles) by_name[profile.scheduler_name] = profile.framework.get();
  const auto named = by_name.find(otherwise);
  return {named != by_name.end() ? *named->second : *usual, by_name};
}

Result<std::unique_ptr<const PlanningRules>> ReadPlanningRules(const PlanningFiles& given) {
  const PlanningFiles files = Present(given);
  NOS_ASSIGN(gpu::Catalogue catalogue, ReadCatalogue(files.geometries_file));
  NOS_ASSIGN(std::vector<scheduling::Profile> profiles, ReadProfiles(files));
  NOS_ASSIGN(auto partitioning, PartitioningProfiles(files.scheduler_file));
  scheduling::Configuration usual = scheduling::DefaultConfiguration({.simulates = true});
  return std::make_unique<const PlanningRules>(
      PlanningRules{std::move(catalogue), std::move(profiles), std::move(partitioning),
                    std::move(usual.profiles.front().framework)});
}

}  // namespace nos::cmd
