#include "cmd/daemon/planning_daemon.h"

#include <utility>

#include "base/log.h"
#include "cmd/daemon/outside_events.h"
#include "kube/metered_transport.h"
#include "reconcile/metrics.h"

namespace nos::cmd {
namespace {

// The current reconciler: absent while another replica leads.
class ActiveReplica {
 public:
  ActiveReplica(const PlanningDaemon& what, std::unique_ptr<const PlanningRules> rules,
                PlanningDaemon::Leads leads, Metrics& metrics)
      : what_(what), rules_(std::move(rules)), leads_(std::move(leads)), metrics_(metrics) {}

  void Reload(reconcile::Runner& runner) {
    auto rules = ReadPlanningRules(what_.files);
    metrics_.Count(kReloads, {{"result", rules.ok() ? "ok" : "error"}});
    if (!rules.ok()) {
      Log(LogLevel::kError, "failed to reload configuration files, keeping the previous ones",
          {{"error", rules.status().message()}});
      return;
    }
    Log(LogLevel::kInfo, "reloaded configuration files");
    Leave(runner);
    rules_ = std::move(rules).value();
  }
  void Lead(reconcile::Runner& runner, bool lead) {
    if (lead == (reconciler_ != nullptr)) return;
    if (!lead) return Leave(runner);
    reconciler_ = what_.make(*rules_, leads_, metrics_);
    metered_ = std::make_unique<reconcile::MeteredReconciler>(*reconciler_, what_.name, metrics_);
    runner.Use(metered_.get());
  }

 private:
  void Leave(reconcile::Runner& runner) {
    runner.Use(nullptr);
    metered_.reset();
    reconciler_.reset();
  }

  const PlanningDaemon& what_;
  std::unique_ptr<const PlanningRules> rules_;
  const PlanningDaemon::Leads leads_;
  Metrics& metrics_;
  std::unique_ptr<reconcile::Reconciler> reconciler_;
  std::unique_ptr<reconcile::MeteredReconciler> metered_;
};

}  // namespace

Status RunPlanningDaemon(const DaemonFlags& flags, const PlanningDaemon& what) {
  NOS_ASSIGN(std::unique_ptr<const PlanningRules> rules, ReadPlanningRules(what.files));
  NOS_ASSIGN(const kube::ConnectionConfig connection,
             kube::LoadConnection(flags.kubeconfig, flags.context));
  WakeSignal bell;
  OutsideEvents events({what.files.scheduler_file, what.files.geometries_file},
                       [&] { bell.Ring(); });
  Metrics metrics;
  Announce(what.name, metrics);

  Leader leader(connection, what.leader, [&] { bell.Ring(); });
  const auto leads = [&] { return leader.Leads(); };
  kube::HttpOptions http_options = HttpOptionsOf(what.daemon);
  http_options.may_write = leads;
  kube::HttpTransport http(connection, http_options);
  kube::MeteredTransport metered(http, metrics);
  reconcile::RunnerOptions options = what.watches;
  options.relist_every = what.daemon.relist_every;
  options.wake = [&] { bell.Ring(); };
  reconcile::Runner runner(metered, options);
  LoopReport report;
  NOS_ASSIGN(const auto probes, Probes::Serve(
                                    what.daemon.addresses,
                                    {{"loop", [&] { return report.Alive(); }, true},
                                     {"caches", [&] { return report.Synced(); }},
                                     {"lease", [&] { return leader.error(); }}},
                                    metrics, [&] { leader.Report(metrics); },
                                    MetricsSecurity::Of(flags.metrics, connection)));
  ActiveReplica replica(what, std::move(rules), leads, metrics);
  RunUntil([&] { return events.StopAsked(); }, runner, bell, SystemClock(),
           [&] {
             if (events.TakeFilesChanged()) replica.Reload(runner);
             replica.Lead(runner, leader.Leads());
             report.Turn(runner);
           });
  Log(LogLevel::kInfo, "stopping nos", {{"command", what.name}});
  replica.Lead(runner, false);
  return Status::Ok();
}

}  // namespace nos::cmd
