// nos partitioner: decides how the GPUs of a cluster are partitioned.
#include <memory>

#include "cmd/command.h"
#include "cmd/commands.h"
#include "cmd/daemon/planning_daemon.h"
#include "cmd/daemons/partitioner_config.h"
#include "controllers/partitioner.h"
#include "controllers/planned_gangs.h"
#include "planning/names.h"

namespace nos::cmd {
namespace {

Status RunPartitioner(const DaemonFlags& flags, const PartitionerFile& config) {
  const auto make = [&](const PlanningRules& rules, const PlanningDaemon::Leads&,
                        Metrics& metrics) {
    controllers::PartitionerConfig options = config.partitioner;
    options.partitioning_schedulers = rules.partitioning_schedulers;
    options.objective =
        planning::FindObjective(config.objective).value_or(planning::Objective::kPods);
    return std::make_unique<controllers::Partitioner>(
        std::move(options), rules.Choice(config.files.scheduler_name), rules.catalogue, &metrics);
  };
  return RunPlanningDaemon(flags, {.name = "partitioner",
                                   .daemon = config.daemon,
                                   .leader = config.leader,
                                   .files = config.files,
                                   .watches = controllers::WatchingGangs(),
                                   .make = make});
}

int Start(const DaemonFlags& flags) {
  PartitionerFile config;
  const auto describe = [&](ConfigFields& fields) { DescribePartitioner(fields, config); };
  return StartDaemon({.command = "nos partitioner",
                      .kind = kPartitionerKind,
                      .describe = describe,
                      .check = [&] { return CheckLeader(config.leader); },
                      .log_level = config.daemon.log_level,
                      .run = [&] { return RunPartitioner(flags, config); }},
                     flags.config, flags.print_config);
}

}  // namespace

void AddPartitionerCommand(CLI::App& root, Chosen& chosen) {
  AddDaemonCommand(root, chosen, "partitioner",
                   "Decide how the GPUs of a cluster are partitioned (runs in the cluster)", Start);
}

}  // namespace nos::cmd
