// nos scheduler: binds pods to nodes.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "base/file.h"
#include "base/log.h"
#include "cmd/catalogue_flag.h"
#include "cmd/command.h"
#include "cmd/daemon.h"
#include "cmd/leader.h"
#include "cmd/outside_events.h"
#include "codec/yaml.h"
#include "controllers/measures.h"
#include "controllers/scheduler.h"
#include "kube/metered_transport.h"
#include "scheduling/profile.h"

namespace nos::cmd {
namespace {

constexpr size_t kMostFileBytes = size_t{4} << 20;
constexpr const char* kDefaultName = "nos-scheduler";
constexpr int kBinders = 32;

struct SchedulerFlags {
  DaemonFlags daemon;
  DaemonConfig common;
  std::string geometries_file;
};

// What is read from files that may change.
struct Rules {
  gpu::Catalogue catalogue;
  std::map<std::string, scheduling::Framework> profiles;
};

Result<std::unique_ptr<const Rules>> ReadRules(const SchedulerFlags& flags) {
  NOS_ASSIGN(gpu::Catalogue catalogue, ReadCatalogue(flags.geometries_file));
  auto rules = std::make_unique<Rules>(Rules{std::move(catalogue), {}});
  rules->profiles.emplace(kDefaultName, scheduling::Framework::Default());
  return std::unique_ptr<const Rules>(std::move(rules));
}

// The scheduler of the moment: made anew when the rules change, and absent while another replica
// leads. What it remembers can be told from the cluster.
class Seat {
 public:
  Seat(const SchedulerFlags& flags, std::unique_ptr<const Rules> rules,
       controllers::SchedulerThreads threads, Metrics& metrics)
      : flags_(flags), rules_(std::move(rules)), threads_(std::move(threads)), metrics_(metrics) {}

  void Sit(controllers::Runner& runner, bool lead) {
    if (lead == (scheduler_ != nullptr)) return;
    if (!lead) {
      runner.Use(nullptr);
      metered_.reset();
      scheduler_.reset();
      return;
    }
    std::vector<controllers::SchedulerProfile> profiles;
    for (const auto& [name, framework] : rules_->profiles) profiles.push_back({name, &framework});
    scheduler_ = std::make_unique<controllers::Scheduler>(
        controllers::SchedulerConfig(), std::move(profiles), rules_->catalogue, threads_);
    metered_ = std::make_unique<controllers::MeteredReconciler>(*scheduler_, "scheduler", metrics_);
    runner.Use(metered_.get());
  }

 private:
  const SchedulerFlags& flags_;
  std::unique_ptr<const Rules> rules_;
  controllers::SchedulerThreads threads_;
  Metrics& metrics_;
  std::unique_ptr<controllers::Scheduler> scheduler_;
  std::unique_ptr<controllers::MeteredReconciler> metered_;
};

Status RunScheduler(const SchedulerFlags& flags) {
  NOS_ASSIGN(std::unique_ptr<const Rules> rules, ReadRules(flags));
  NOS_ASSIGN(const kube::ConnectionConfig connection,
             kube::LoadConnection(flags.daemon.kubeconfig, flags.daemon.context));
  Bell bell;
  OutsideEvents events({flags.daemon.config, flags.geometries_file}, [&] { bell.Ring(); });
  Metrics metrics;
  Announce("scheduler", metrics);
  LeaderConfig leader_config{.lease_name = kDefaultName};
  Leader leader(connection, leader_config, [&] { bell.Ring(); });
  kube::HttpOptions http_options = HttpOptionsOf(flags.common);
  http_options.may_write = [&] { return leader.Leads(); };
  http_options.max_connections = 2 * kBinders;
  kube::HttpTransport http(connection, http_options);
  kube::MeteredTransport metered(http, metrics);
  controllers::RunnerOptions options;
  options.relist_every = flags.common.relist_every;
  options.watch_around = true;
  options.wake = [&] { bell.Ring(); };
  controllers::Runner runner(metered, options);
  LoopReport report;
  NOS_ASSIGN(const auto probes, Probes::Serve(flags.common.addresses,
                                              {{"loop", [&] { return report.Alive(); }, true},
                                               {"caches", [&] { return report.Synced(); }},
                                               {"lease", [&] { return leader.error(); }}},
                                              metrics, [&] { leader.Report(metrics); }));
  kube::Workers binders(metered, kBinders), teller(metered, 1);
  const SystemClock clock;
  Seat seat(flags, std::move(rules),
            {&binders, &teller,
             [&] {
               runner.Poke(clock.Now());
               bell.Ring();
             }},
            metrics);
  RunUntil([&] { return events.StopAsked(); }, runner, bell, clock,
           [&] {
             seat.Sit(runner, leader.Leads());
             report.Turn(runner);
           });
  Log(LogLevel::kInfo, "nos ends", {{"command", "scheduler"}});
  seat.Sit(runner, false);
  return Status::Ok();
}

int Start(SchedulerFlags& flags) {
  SetLogLevelByName(flags.common.log_level);
  const Status ran = RunScheduler(flags);
  return ran.ok() ? 0 : Fail("nos scheduler", ran);
}

}  // namespace

void AddSchedulerCommand(CLI::App& root, Chosen& chosen) {
  CLI::App* command = root.add_subcommand("scheduler", "Bind pods to nodes (runs in the cluster)");
  auto flags = std::make_shared<SchedulerFlags>();
  flags->common.requests_per_second = 5000;
  flags->common.burst = 10'000;
  AddDaemonFlags(*command, flags->daemon);
  command->callback([&chosen, flags] { chosen.action = [flags] { return Start(*flags); }; });
}

}  // namespace nos::cmd
