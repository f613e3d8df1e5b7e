// nos partitioner: decides how the GPUs of a cluster are partitioned.
#include <memory>

#include "cmd/command.h"
#include "cmd/commands.h"
#include "cmd/daemon/planning_daemon.h"
#include "controllers/partitioner.h"
#include "controllers/planned_gangs.h"
#include "planning/names.h"

namespace nos::cmd {
namespace {

constexpr std::string_view kKind = "GpuPartitionerConfig";

struct Config {
  DaemonConfig daemon;
  LeaderConfig leader{.lease_name = "gpu-partitioner.nebuly.com"};
  PlanningFiles files;
  std::string objective = "pods";
  controllers::PartitionerConfig partitioner;
};

void DescribePartitioner(ConfigFields& f, Config& c) {
  using std::chrono::hours, std::chrono::milliseconds, std::chrono::minutes, std::chrono::seconds;
  controllers::PartitionerConfig& p = c.partitioner;
  f.Seconds("batchWindowTimeoutSeconds", p.batch_timeout, milliseconds(10), minutes(10),
            "Maximum time from the first pod of a batch to planning.");
  f.Seconds("batchWindowIdleSeconds", p.batch_idle, milliseconds(10), minutes(10),
            "Planning starts when no further pod has appeared for this long.");
  f.Word("objective", c.objective, {"pods", "compute", "memory"},
         "Objective among pods of equal priority: what to serve most of.");
  DescribePlanningFiles(f, c.files);
  f.Renamed("planBudgetSeconds", "planTimeoutSeconds");
  f.Seconds("planTimeoutSeconds", p.plan_timeout, milliseconds(10), minutes(10),
            "Time limit of one planning run. When it expires, the best plan so far is used.");
  f.Renamed("answerDeadlineSeconds", "planAckTimeoutSeconds");
  f.Seconds("planAckTimeoutSeconds", p.plan_ack_timeout, seconds(1), hours(1),
            "Time limit of the agent's acknowledgement. A node whose agent exceeds it is not "
            "planned for a while.");
  f.Renamed("claimDeadlineSeconds", "sliceReservationTimeoutSeconds");
  f.Seconds("sliceReservationTimeoutSeconds", p.slice_reservation_timeout, seconds(1), hours(1),
            "Time that new slices stay reserved for their pod.");
  f.Seconds("holdAfterSeconds", p.hold_after, seconds(1), hours(24 * 30),
            "Pending time after which freed slices are kept free for a pod.");
  f.Group("leaderElection", [&] { DescribeLeader(f, c.leader); });
  DescribeDaemon(f, c.daemon);
  f.Retired("webhook", "this daemon serves no webhook");
  f.Retired("devicePluginConfigMap", "it was a setting of MPS partitioning");
  f.Retired("devicePluginDelaySeconds", "it was a setting of MPS partitioning");
}

Status RunPartitioner(const DaemonFlags& flags, const Config& config) {
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
  Config config;
  const auto describe = [&](ConfigFields& fields) { DescribePartitioner(fields, config); };
  return StartDaemon({.command = "nos partitioner",
                      .kind = kKind,
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
