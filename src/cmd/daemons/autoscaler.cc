// nos autoscaler: adds nodes when repartitioning cannot place pending pods, removes idle ones.
#include "controllers/autoscaler.h"

#include <memory>

#include "cmd/command.h"
#include "cmd/commands.h"
#include "cmd/daemon/planning_daemon.h"
#include "cmd/daemons/autoscaler_config.h"

namespace nos::cmd {
namespace {

Status RunAutoscaler(const DaemonFlags& flags, const AutoscalerFile& file) {
  if (file.image.empty()) {
    return Invalid(
        "placeholders.image: required: the image of placeholder pods, which is the image of nos");
  }
  const auto make = [&](const PlanningRules& rules, const PlanningDaemon::Leads& leads,
                        Metrics& metrics) {
    return std::make_unique<controllers::Autoscaler>(
        OptionsOf(file), rules.Choice(file.files.scheduler_name), rules.catalogue,
        controllers::PoolScaling(PoolWebhookCaller(file.webhook, leads)), &metrics);
  };
  return RunPlanningDaemon(flags, {.name = "autoscaler",
                                   .daemon = file.daemon,
                                   .leader = file.leader,
                                   .files = file.files,
                                   .watches = controllers::WatchingForAutoscaler(),
                                   .make = make});
}

int Start(const DaemonFlags& flags) {
  AutoscalerFile file;
  const auto describe = [&](ConfigFields& fields) { DescribeAutoscaler(fields, file); };
  return StartDaemon({.command = "nos autoscaler",
                      .kind = kAutoscalerKind,
                      .describe = describe,
                      .check = [&] { return CheckAutoscaler(file); },
                      .log_level = file.daemon.log_level,
                      .run = [&] { return RunAutoscaler(flags, file); }},
                     flags.config, flags.print_config);
}

}  // namespace

void AddAutoscalerCommand(CLI::App& root, Chosen& chosen) {
  AddDaemonCommand(root, chosen, "autoscaler",
                   "Add and remove nodes as pods need them (runs in the cluster)", Start);
}

}  // namespace nos::cmd
