// nos scheduler: binds pods to nodes.
#include <CLI/CLI.hpp>
#include <atomic>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "cmd/catalogue_flag.h"
#include "cmd/command.h"
#include "cmd/commands.h"
#include "cmd/daemon/leader.h"
#include "cmd/daemon/outside_events.h"
#include "cmd/daemon/process.h"
#include "cmd/daemon/scheduler_file.h"
#include "cmd/daemon/standby_devices.h"
#include "cmd/daemons/extender.h"
#include "controllers/scheduler.h"
#include "kube/metered_transport.h"
#include "reconcile/metrics.h"
#include "scheduling/framework.h"

namespace nos::cmd {
namespace {

constexpr scheduling::ConfigurationUse kUse{
    .default_name = "nos-scheduler", .partitioned_by = scheduling::PartitionedBy::kScheduler};
constexpr int kBinders = 32;

// Inputs that come from files, which may change at run time.
struct Rules {
  SchedulerFile file;
  gpu::Catalogue catalogue;

  std::vector<controllers::SchedulerProfile> Profiles() const {
    std::vector<controllers::SchedulerProfile> profiles;
    for (const scheduling::Profile& profile : file.configuration.profiles) {
      profiles.push_back({profile.scheduler_name, profile.framework.get(), profile.preemption,
                          &profile.Partitioning(), profile.reclaims});
    }
    return profiles;
  }
};

Result<std::unique_ptr<const Rules>> ReadRules(const std::string& path) {
  NOS_ASSIGN(SchedulerFile file, ReadSchedulerFile(path, kUse));
  NOS_ASSIGN(gpu::Catalogue catalogue, ReadCatalogue(file.own.geometries_file));
  return std::make_unique<const Rules>(Rules{std::move(file), std::move(catalogue)});
}

// Names of profiles that partition GPUs, for the Lease. Thread-safe.
class PublishedProfiles {
 public:
  void Set(const scheduling::Configuration& configuration) {
    std::vector<std::string> names;
    for (const scheduling::Profile& profile : configuration.profiles) {
      if (profile.framework->partitioned_by() == scheduling::PartitionedBy::kScheduler) {
        names.push_back(profile.scheduler_name);
      }
    }
    const std::scoped_lock lock(mutex_);
    names_ = Join(names, ",");
  }
  std::map<std::string, std::string> Annotations() const {
    const std::scoped_lock lock(mutex_);
    return {{std::string(kPartitioningProfiles), names_}};
  }

 private:
  mutable std::mutex mutex_;
  std::string names_;
};

// The current scheduler: replaced when the rules change, and absent while another replica leads;
// then only devices are followed. It restores its state from the cluster, except for bindings in
// flight. New rules therefore take effect once the watch shows those bindings. A stalled watch is
// reopened after HttpOptions::watch_silence, and until then the scheduler sees no pod change
// anyway. There is no such wait when this process ends or loses leadership.
class ActiveReplica {
 public:
  ActiveReplica(const std::string& path, std::unique_ptr<const Rules> rules,
                controllers::SchedulerThreads threads, PublishedProfiles& published,
                Metrics& metrics)
      : path_(path),
        rules_(std::move(rules)),
        threads_(std::move(threads)),
        published_(published),
        metrics_(metrics) {}

  void Reload() {
    auto rules = ReadRules(path_);
    metrics_.Count(kReloads, {{"result", rules.ok() ? "ok" : "error"}});
    if (!rules.ok()) {
      Log(LogLevel::kError, "failed to reload configuration files, keeping the previous ones",
          {{"error", rules.status().message()}});
      return;
    }
    const std::string later = NeedsRestart(rules_->file, (*rules)->file);
    if (!later.empty()) {
      Log(LogLevel::kWarn, "ignoring changed settings until a restart", {{"settings", later}});
    }
    next_ = std::move(rules).value();
    if (scheduler_ != nullptr) scheduler_->Retire();
  }
  void Lead(reconcile::Runner& runner, bool lead) {
    if (!lead || (next_ != nullptr && scheduler_ != nullptr && scheduler_->IsQuiet())) {
      Leave(runner);
    }
    if (next_ != nullptr && scheduler_ == nullptr) {
      (void)EndStandby(runner);  // it refers to the catalogue
      rules_ = std::move(next_);
      Log(LogLevel::kInfo, "reloaded configuration files");
    }
    if (!lead) return StandBy(runner);
    prepared_ = true;
    if (scheduler_ != nullptr) return;
    published_.Set(rules_->file.configuration);
    controllers::SchedulerConfig config;
    config.queue = rules_->file.configuration.queue;
    scheduler_ = std::make_unique<controllers::Scheduler>(
        config, rules_->Profiles(), rules_->catalogue, threads_, &metrics_, EndStandby(runner));
    metered_ = std::make_unique<reconcile::MeteredReconciler>(*scheduler_, "scheduler", metrics_);
    runner.Use(metered_.get());
  }
  // OK once this replica has led or could lead without delay. Thread-safe.
  Status Prepared() const {
    return prepared_ ? Status::Ok() : Status(Code::kUnavailable, "devices are not read yet");
  }
  // Before the process ends.
  void Stop(reconcile::Runner& runner) {
    Leave(runner);
    (void)EndStandby(runner);
  }

 private:
  void Leave(reconcile::Runner& runner) {
    if (scheduler_ == nullptr) return;
    runner.Use(nullptr);
    metered_.reset();
    scheduler_.reset();
  }
  void StandBy(reconcile::Runner& runner) {
    if (standby_ != nullptr) {
      if (standby_->ready()) prepared_ = true;
      return;
    }
    standby_ = std::make_unique<StandbyDevices>(rules_->catalogue);
    runner.Use(standby_.get());
  }
  // The devices that it has followed; null without a stand-by.
  std::shared_ptr<dra::DeviceIndex> EndStandby(reconcile::Runner& runner) {
    if (standby_ == nullptr) return nullptr;
    runner.Use(nullptr);
    return std::exchange(standby_, nullptr)->Take();
  }

  const std::string& path_;
  std::unique_ptr<const Rules> rules_, next_;
  controllers::SchedulerThreads threads_;
  PublishedProfiles& published_;
  Metrics& metrics_;
  std::unique_ptr<controllers::Scheduler> scheduler_;
  std::unique_ptr<reconcile::MeteredReconciler> metered_;
  std::unique_ptr<StandbyDevices> standby_;  // while there is no scheduler
  std::atomic<bool> prepared_ = false;
};

Status RunScheduler(const DaemonFlags& flags, std::unique_ptr<const Rules> rules) {
  const SchedulerFile& file = rules->file;
  const DaemonConfig daemon = file.own.daemon;
  const std::string& kubeconfig =
      flags.kubeconfig.empty() ? file.configuration.client.kubeconfig : flags.kubeconfig;
  NOS_ASSIGN(const kube::ConnectionConfig connection,
             kube::LoadConnection(kubeconfig, flags.context));
  WakeSignal bell;
  OutsideEvents events({flags.config, file.own.geometries_file}, [&] { bell.Ring(); });
  Metrics metrics;
  Announce("scheduler", metrics);
  PublishedProfiles published;
  published.Set(file.configuration);
  LeaderConfig election = LeaderConfigOf(file.configuration);
  election.election.annotations = [&] { return published.Annotations(); };
  Leader leader(connection, election, [&] { bell.Ring(); });
  kube::HttpOptions http_options = HttpOptionsOf(file);
  http_options.may_write = [&] { return leader.Leads(); };
  // More than are ever in flight: beyond the limit, connections would be closed and reopened.
  http_options.max_connections = 8 * kBinders;
  kube::HttpTransport http(connection, http_options);
  kube::MeteredTransport metered(http, metrics);
  reconcile::RunnerOptions options;
  options.relist_every = daemon.relist_every;
  options.watch_context = true;
  options.wake = [&] { bell.Ring(); };
  reconcile::Runner runner(metered, options);
  kube::Workers binders(metered, kBinders), reporter(metered, 1);
  const SystemClock clock;
  ActiveReplica replica(flags.config, std::move(rules),
                        {&binders, &reporter,
                         [&] {
                           runner.Poke(clock.Now());
                           bell.Ring();
                         }},
                        published, metrics);
  LoopReport report;
  NOS_ASSIGN(const auto probes, Probes::Serve(
                                    daemon.addresses,
                                    {{"loop", [&] { return report.Alive(); }, true},
                                     {"caches", [&] { return report.Synced(); }},
                                     {"devices", [&] { return replica.Prepared(); }},
                                     {"lease", [&] { return leader.error(); }}},
                                    metrics, [&] { leader.Report(metrics); },
                                    MetricsSecurity::Of(flags.metrics, connection)));
  RunUntil([&] { return events.StopAsked(); }, runner, bell, clock,
           [&] {
             // Reload before Lead, which installs the new rules once no binding is in flight.
             if (events.TakeFilesChanged()) replica.Reload();
             replica.Lead(runner, leader.Leads());
             report.Turn(runner);
           });
  Log(LogLevel::kInfo, "stopping nos", {{"command", "scheduler"}});
  replica.Stop(runner);
  return Status::Ok();
}

int Start(const DaemonFlags& flags, const ExtenderFlags& extender) {
  auto rules = ReadRules(flags.config);
  if (!rules.ok()) return Fail("nos scheduler", rules.status());
  if (flags.print_config) {
    std::cout << PrintSchedulerFile((*rules)->file);
    return 0;
  }
  SetLogLevelByName((*rules)->file.own.daemon.log_level);
  const bool answers = !extender.address.empty();
  const Status ran = answers ? RunExtender(extender, flags, (*rules)->file, (*rules)->catalogue)
                             : RunScheduler(flags, std::move(rules).value());
  return ran.ok() ? 0 : Fail("nos scheduler", ran);
}

}  // namespace

void AddSchedulerCommand(CLI::App& root, Chosen& chosen) {
  CLI::App* command = root.add_subcommand("scheduler", "Bind pods to nodes (runs in the cluster)");
  auto flags = std::make_shared<DaemonFlags>();
  auto extender = std::make_shared<ExtenderFlags>();
  AddDaemonFlags(*command, *flags);
  AddExtenderFlags(*command, *extender);
  command->footer(
      "FILE contains a KubeSchedulerConfiguration as for kube-scheduler, and optionally a document "
      "of kind "
      "SchedulerConfig with the settings of nos.\n"
      "Examples:\n"
      "  nos scheduler --print-config > scheduler.yaml\n"
      "  nos scheduler --config scheduler.yaml --kubeconfig ~/.kube/config");
  command->callback([&chosen, flags, extender] {
    chosen.action = [flags, extender] { return Start(*flags, *extender); };
  });
}

}  // namespace nos::cmd
