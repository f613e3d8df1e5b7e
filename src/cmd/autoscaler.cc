// nos autoscaler: more nodes when no cutting of GPUs helps, fewer when they are idle.
#include "controllers/autoscaler.h"

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "base/log.h"
#include "cmd/autoscaler_config.h"
#include "cmd/command.h"
#include "cmd/outside_events.h"
#include "controllers/measures.h"
#include "kube/metered_transport.h"

namespace nos::cmd {
namespace {

// The autoscaler of the moment: made anew when the rules change, and absent while another replica
// leads. What it must remember stands in the cluster.
class Seat {
 public:
  Seat(const AutoscalerFile& file, std::unique_ptr<const PlanningRules> rules,
       std::function<bool()> may_write, Metrics& metrics)
      : file_(file),
        rules_(std::move(rules)),
        call_(PoolWebhookCaller(file.webhook, std::move(may_write))),
        metrics_(metrics) {}

  void Reload(controllers::Runner& runner) {
    auto rules = ReadPlanningRules(file_.files);
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
    if (lead == (autoscaler_ != nullptr)) return;
    if (!lead) return Leave(runner);
    autoscaler_ = std::make_unique<controllers::Autoscaler>(
        OptionsOf(file_), rules_->Choice(file_.files.scheduler_name), rules_->catalogue,
        controllers::PoolScaling(call_), &metrics_);
    metered_ =
        std::make_unique<controllers::MeteredReconciler>(*autoscaler_, "autoscaler", metrics_);
    runner.Use(metered_.get());
  }

 private:
  void Leave(controllers::Runner& runner) {
    runner.Use(nullptr);
    metered_.reset();
    autoscaler_.reset();
  }

  const AutoscalerFile& file_;
  std::unique_ptr<const PlanningRules> rules_;
  const controllers::PoolScaling::CallWebhook call_;
  Metrics& metrics_;
  std::unique_ptr<controllers::Autoscaler> autoscaler_;
  std::unique_ptr<controllers::MeteredReconciler> metered_;
};

Status RunAutoscaler(const DaemonFlags& flags, const AutoscalerFile& file) {
  if (file.image.empty()) {
    return Invalid("placeholders.image: say what runs in pods that hold places: the image of nos");
  }
  NOS_ASSIGN(std::unique_ptr<const PlanningRules> rules, ReadPlanningRules(file.files));
  NOS_ASSIGN(const kube::ConnectionConfig connection,
             kube::LoadConnection(flags.kubeconfig, flags.context));
  Bell bell;
  OutsideEvents events({file.files.scheduler_file, file.files.geometries_file},
                       [&] { bell.Ring(); });
  Metrics metrics;
  Announce("autoscaler", metrics);

  Leader leader(connection, file.leader, [&] { bell.Ring(); });
  const auto leads = [&] { return leader.Leads(); };
  kube::HttpOptions http_options = HttpOptionsOf(file.daemon);
  http_options.may_write = leads;
  kube::HttpTransport http(connection, http_options);
  kube::MeteredTransport metered(http, metrics);
  controllers::RunnerOptions options = controllers::WatchingForAutoscaler();
  options.relist_every = file.daemon.relist_every;
  options.wake = [&] { bell.Ring(); };
  controllers::Runner runner(metered, options);
  LoopReport report;
  NOS_ASSIGN(const auto probes, Probes::Serve(file.daemon.addresses,
                                              {{"loop", [&] { return report.Alive(); }, true},
                                               {"caches", [&] { return report.Synced(); }},
                                               {"lease", [&] { return leader.error(); }}},
                                              metrics, [&] { leader.Report(metrics); }));
  Seat seat(file, std::move(rules), leads, metrics);
  RunUntil([&] { return events.StopAsked(); }, runner, bell, SystemClock(),
           [&] {
             if (events.TakeFilesChanged()) seat.Reload(runner);
             seat.Sit(runner, leader.Leads());
             report.Turn(runner);
           });
  Log(LogLevel::kInfo, "nos ends", {{"command", "autoscaler"}});
  seat.Sit(runner, false);
  return Status::Ok();
}

int Start(const DaemonFlags& flags) {
  AutoscalerFile file;
  const auto describe = [&](ConfigFields& fields) { DescribeAutoscaler(fields, file); };
  Status status = ReadConfigFile(flags.config, kAutoscalerKind, describe);
  if (status.ok()) status = CheckAutoscaler(file).Within(flags.config);
  if (!status.ok()) return Fail("nos autoscaler", status);
  if (flags.print_config) {
    std::cout << PrintConfig(kAutoscalerKind, describe);
    return 0;
  }
  SetLogLevelByName(file.daemon.log_level);
  const Status ran = RunAutoscaler(flags, file);
  return ran.ok() ? 0 : Fail("nos autoscaler", ran);
}

}  // namespace

void AddAutoscalerCommand(CLI::App& root, Chosen& chosen) {
  CLI::App* command = root.add_subcommand(
      "autoscaler", "Have nodes added and taken away as pods need them (runs in the cluster)");
  auto flags = std::make_shared<DaemonFlags>();
  AddDaemonFlags(*command, *flags);
  command->footer(
      "Examples:\n"
      "  nos autoscaler --print-config > autoscaler.yaml\n"
      "  nos autoscaler --config autoscaler.yaml --kubeconfig ~/.kube/config");
  command->callback([&chosen, flags] { chosen.action = [flags] { return Start(*flags); }; });
}

}  // namespace nos::cmd
