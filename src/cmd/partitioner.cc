// nos partitioner: decides how the GPUs of a cluster are cut.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "base/log.h"
#include "cmd/command.h"
#include "cmd/daemon.h"
#include "cmd/leader.h"
#include "cmd/outside_events.h"
#include "cmd/planning_rules.h"
#include "controllers/measures.h"
#include "controllers/partitioner.h"
#include "controllers/planned_gangs.h"
#include "kube/metered_transport.h"
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
            "A plan is made at the latest so long after the first pod of a batch was seen.");
  f.Seconds("batchWindowIdleSeconds", p.batch_idle, milliseconds(10), minutes(10),
            "A plan is made when no further pod has come for so long.");
  f.Word("objective", c.objective, {"pods", "compute", "memory"},
         "What to serve most of, among pods of equal priority.");
  DescribePlanningFiles(f, c.files);
  f.Seconds("planBudgetSeconds", p.plan_budget, milliseconds(10), minutes(10),
            "The best plan found by then counts.");
  f.Seconds("answerDeadlineSeconds", p.ack_deadline, seconds(1), hours(1),
            "A node whose agent has not answered by then is left alone for a while.");
  f.Seconds("claimDeadlineSeconds", p.claim_deadline, seconds(1), hours(1),
            "Slices cut for a pod are kept for it so long.");
  f.Seconds("holdAfterSeconds", p.starvation_after, seconds(1), hours(24 * 30),
            "For a pod that has waited so long slices are kept free as they fall free.");
  f.Group("leaderElection", [&] { DescribeLeader(f, c.leader); });
  DescribeDaemon(f, c.daemon);
  f.Retired("webhook", "no webhook is served here");
  f.Retired("devicePluginConfigMap", "it belongs to MPS partitioning");
  f.Retired("devicePluginDelaySeconds", "it belongs to MPS partitioning");
}

controllers::PartitionerConfig OptionsOf(const Config& config, const PlanningRules& rules) {
  controllers::PartitionerConfig options = config.partitioner;
  options.cutting_schedulers = rules.cutting;
  return options;
}

// The partitioner of the moment: made anew when the rules change, and absent while another replica
// leads. What it remembers can be told from the cluster.
class Seat {
 public:
  Seat(const Config& config, std::unique_ptr<const PlanningRules> rules, Metrics& metrics)
      : config_(config), rules_(std::move(rules)), metrics_(metrics) {}

  void Reload(controllers::Runner& runner) {
    auto rules = ReadPlanningRules(config_.files);
    metrics_.Count(kReloads, {{"result", rules.ok() ? "ok" : "error"}});
    if (!rules.ok()) {
      Log(LogLevel::kError, "changed files are refused; the former rules stay in force",
          {{"error", rules.status().message()}});
      return;
    }
    Log(LogLevel::kInfo, "changed files are in force");
    Leave(runner);
    rules_ = std::move(rules).value();
  }
  void Sit(controllers::Runner& runner, bool lead) {
    if (lead == (partitioner_ != nullptr)) return;
    if (!lead) return Leave(runner);
    partitioner_ = std::make_unique<controllers::Partitioner>(
        OptionsOf(config_, *rules_), rules_->Choice(config_.files.scheduler_name),
        rules_->catalogue, &metrics_);
    metered_ =
        std::make_unique<controllers::MeteredReconciler>(*partitioner_, "partitioner", metrics_);
    runner.Use(metered_.get());
  }

 private:
  void Leave(controllers::Runner& runner) {
    runner.Use(nullptr);
    metered_.reset();
    partitioner_.reset();
  }

  const Config& config_;
  std::unique_ptr<const PlanningRules> rules_;
  Metrics& metrics_;
  std::unique_ptr<controllers::Partitioner> partitioner_;
  std::unique_ptr<controllers::MeteredReconciler> metered_;
};

Status RunPartitioner(const DaemonFlags& flags, Config& config) {
  NOS_ASSIGN(std::unique_ptr<const PlanningRules> rules, ReadPlanningRules(config.files));
  NOS_ASSIGN(const kube::ConnectionConfig connection,
             kube::LoadConnection(flags.kubeconfig, flags.context));
  Bell bell;
  OutsideEvents events({config.files.scheduler_file, config.files.geometries_file},
                       [&] { bell.Ring(); });
  Metrics metrics;
  Announce("partitioner", metrics);

  Leader leader(connection, config.leader, [&] { bell.Ring(); });
  kube::HttpOptions http_options = HttpOptionsOf(config.daemon);
  http_options.may_write = [&] { return leader.Leads(); };
  kube::HttpTransport http(connection, http_options);
  kube::MeteredTransport metered(http, metrics);
  controllers::RunnerOptions options = controllers::WatchingGangs();
  options.relist_every = config.daemon.relist_every;
  options.wake = [&] { bell.Ring(); };
  controllers::Runner runner(metered, options);
  LoopReport report;
  NOS_ASSIGN(const auto probes, Probes::Serve(config.daemon.addresses,
                                              {{"loop", [&] { return report.Alive(); }, true},
                                               {"caches", [&] { return report.Synced(); }},
                                               {"lease", [&] { return leader.error(); }}},
                                              metrics, [&] { leader.Report(metrics); }));
  Seat seat(config, std::move(rules), metrics);
  RunUntil([&] { return events.StopAsked(); }, runner, bell, SystemClock(),
           [&] {
             if (events.TakeFilesChanged()) seat.Reload(runner);
             seat.Sit(runner, leader.Leads());
             report.Turn(runner);
           });
  Log(LogLevel::kInfo, "nos ends", {{"command", "partitioner"}});
  seat.Sit(runner, false);
  return Status::Ok();
}

int Start(const DaemonFlags& flags) {
  Config config;
  const auto describe = [&](ConfigFields& fields) { DescribePartitioner(fields, config); };
  Status status = ReadConfigFile(flags.config, kKind, describe);
  if (status.ok()) status = CheckLeader(config.leader).Within(flags.config);
  if (!status.ok()) return Fail("nos partitioner", status);
  if (flags.print_config) {
    std::cout << PrintConfig(kKind, describe);
    return 0;
  }
  SetLogLevelByName(config.daemon.log_level);
  config.partitioner.objective =
      planning::FindObjective(config.objective).value_or(planning::Objective::kPods);
  const Status ran = RunPartitioner(flags, config);
  return ran.ok() ? 0 : Fail("nos partitioner", ran);
}

}  // namespace

void AddPartitionerCommand(CLI::App& root, Chosen& chosen) {
  CLI::App* command = root.add_subcommand(
      "partitioner", "Decide how the GPUs of a cluster are cut (runs in the cluster)");
  auto flags = std::make_shared<DaemonFlags>();
  AddDaemonFlags(*command, *flags);
  command->footer(
      "Examples:\n"
      "  nos partitioner --print-config > partitioner.yaml\n"
      "  nos partitioner --config partitioner.yaml --kubeconfig ~/.kube/config");
  command->callback([&chosen, flags] { chosen.action = [flags] { return Start(*flags); }; });
}

}  // namespace nos::cmd
