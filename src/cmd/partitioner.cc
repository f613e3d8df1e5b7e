// nos partitioner: decides how the GPUs of a cluster are cut.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <iostream>
#include <memory>

#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "base/uuid.h"
#include "cmd/catalogue_flag.h"
#include "cmd/command.h"
#include "cmd/daemon.h"
#include "cmd/outside_events.h"
#include "codec/yaml.h"
#include "controllers/measures.h"
#include "controllers/partitioner.h"
#include "kube/leadership.h"
#include "kube/metered_transport.h"
#include "planning/names.h"
#include "scheduling/profile.h"

namespace nos::cmd {
namespace {

constexpr std::string_view kKind = "GpuPartitionerConfig";
constexpr size_t kMostFileBytes = size_t{4} << 20;

constexpr MetricFamily kLeader{MetricFamily::Kind::kGauge, "nos_leader",
                               "1 while this replica leads, by lease."};
constexpr MetricFamily kReloads{MetricFamily::Kind::kCounter, "nos_config_reloads_total",
                                "Times that changed files were read anew, by result."};

struct Config {
  DaemonConfig daemon;
  bool elect = true;
  std::string lease_name = "gpu-partitioner.nebuly.com", lease_namespace;
  kube::LeaderElectionOptions election;
  std::string scheduler_file, scheduler_name, geometries_file, objective = "pods";
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
  f.Text("schedulerConfigFile", c.scheduler_file,
         "A KubeSchedulerConfiguration: pods are placed as that scheduler would. Empty: as "
         "kube-scheduler does by default. Read anew when it changes.");
  f.Text("schedulerName", c.scheduler_name, "The profile of that file. Empty: the first one.");
  f.Text("knownMigGeometriesFile", c.geometries_file,
         "Further or changed GPU models (docs/catalogue.md). Read anew when it changes.");
  f.Seconds("planBudgetSeconds", p.plan_budget, milliseconds(10), minutes(10),
            "The best plan found by then counts.");
  f.Seconds("answerDeadlineSeconds", p.ack_deadline, seconds(1), hours(1),
            "A node whose agent has not answered by then is left alone for a while.");
  f.Seconds("claimDeadlineSeconds", p.claim_deadline, seconds(1), hours(1),
            "Slices cut for a pod are kept for it so long.");
  f.Seconds("holdAfterSeconds", p.starvation_after, seconds(1), hours(24 * 30),
            "For a pod that has waited so long slices are kept free as they fall free.");
  f.Group("leaderElection", [&] {
    f.Flag("leaderElect", c.elect, "One of several replicas acts; false: this one always does.");
    f.Text("resourceName", c.lease_name, "Name of the Lease.");
    f.Text("resourceNamespace", c.lease_namespace,
           "Namespace of the Lease. Empty: that of this pod, else default.");
    f.Seconds("leaseDuration", c.election.lease, seconds(2), hours(1),
              "Others take over when the Lease has not been renewed for so long.");
    f.Seconds("renewDeadline", c.election.renew, seconds(1), hours(1),
              "A leader that could not renew for so long stops.");
    f.Seconds("retryPeriod", c.election.retry, milliseconds(100), hours(1),
              "Between attempts to get or renew it.");
    f.Retired("resourceLock", "it is a Lease");
    f.Retired("leaderElectionReleaseOnCancel", "the Lease is always released at the end");
  });
  DescribeDaemon(f, c.daemon);
  f.Retired("devicePluginConfigMap", "it belongs to MPS partitioning");
  f.Retired("devicePluginDelaySeconds", "it belongs to MPS partitioning");
}

Status CheckConfig(const Config& config) {
  if (config.election.renew >= config.election.lease) {
    return Invalid("leaderElection: renewDeadline must be shorter than leaseDuration");
  }
  if (config.election.retry >= config.election.renew) {
    return Invalid("leaderElection: retryPeriod must be shorter than renewDeadline");
  }
  return Status::Ok();
}

// What is read from files that may change.
struct Rules {
  gpu::Catalogue catalogue;
  scheduling::Framework framework;
};

Result<scheduling::Framework> ReadFramework(const Config& config) {
  if (config.scheduler_file.empty()) return scheduling::Framework::Default();
  NOS_ASSIGN(const std::string text, ReadFile(config.scheduler_file, kMostFileBytes));
  const auto documents = ParseYaml(text);
  if (!documents.ok()) return documents.status().Within(config.scheduler_file);
  if (documents->size() != 1) return Invalid(config.scheduler_file + ": expected one document");
  std::vector<std::string> notes;
  auto framework = scheduling::ReadProfile(documents->front(), config.scheduler_name, notes);
  for (const std::string& note : notes) {
    Log(LogLevel::kInfo, "scheduler configuration", {{"note", note}});
  }
  if (!framework.ok()) return framework.status().Within(config.scheduler_file);
  return framework;
}

Result<std::unique_ptr<const Rules>> ReadRules(const Config& config) {
  NOS_ASSIGN(gpu::Catalogue catalogue, ReadCatalogue(config.geometries_file));
  NOS_ASSIGN(scheduling::Framework framework, ReadFramework(config));
  return std::make_unique<const Rules>(Rules{std::move(catalogue), std::move(framework)});
}

// The partitioner of the moment: made anew when the rules change, and absent while another replica
// leads. What it remembers can be told from the cluster.
class Seat {
 public:
  Seat(const Config& config, std::unique_ptr<const Rules> rules, Metrics& metrics)
      : config_(config), rules_(std::move(rules)), metrics_(metrics) {}

  void Reload(controllers::Runner& runner) {
    auto rules = ReadRules(config_);
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
        config_.partitioner, rules_->framework, rules_->catalogue, &metrics_);
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
  std::unique_ptr<const Rules> rules_;
  Metrics& metrics_;
  std::unique_ptr<controllers::Partitioner> partitioner_;
  std::unique_ptr<controllers::MeteredReconciler> metered_;
};

// Source: Kubernetes documentation, "Accessing the Kubernetes API from a Pod".
std::string OwnNamespace() {
  const auto text = ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace", 1000);
  return text.ok() ? std::string(Trim(*text)) : "default";
}

std::string Identity() {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  // Never used again: not even by a container that restarts under the same name.
  const auto now = SystemClock().Now().time_since_epoch().count();
  return fmt::format("{}_{}", host.data(),
                     NameBasedUuid(fmt::format("{} {} {}", host.data(), getpid(), now)));
}

Status RunPartitioner(const DaemonFlags& flags, Config& config) {
  NOS_ASSIGN(std::unique_ptr<const Rules> rules, ReadRules(config));
  NOS_ASSIGN(const kube::ConnectionConfig connection,
             kube::LoadConnection(flags.kubeconfig, flags.context));
  Bell bell;
  OutsideEvents events({config.scheduler_file, config.geometries_file}, [&] { bell.Ring(); });
  Metrics metrics;
  Announce("partitioner", metrics);

  kube::HttpTransport lease_transport(connection,
                                      {.timeout = config.election.lease - config.election.renew});
  std::unique_ptr<kube::Leadership> leadership;
  if (config.elect) {
    config.election.ns = config.lease_namespace.empty() ? OwnNamespace() : config.lease_namespace;
    config.election.name = config.lease_name;
    config.election.identity = Identity();
    leadership =
        std::make_unique<kube::Leadership>(lease_transport, config.election, [&] { bell.Ring(); });
  }
  const auto leads = [&] { return leadership == nullptr || leadership->Leads(); };
  kube::HttpOptions http_options = HttpOptionsOf(config.daemon);
  http_options.may_write = leads;
  kube::HttpTransport http(connection, http_options);
  kube::MeteredTransport metered(http, metrics);
  controllers::RunnerOptions options;
  options.relist_every = config.daemon.relist_every;
  options.wake = [&] { bell.Ring(); };
  controllers::Runner runner(metered, options);
  LoopReport report;
  NOS_ASSIGN(const auto probes,
             Probes::Serve(config.daemon.addresses,
                           {{"loop", [&] { return report.Alive(); }, true},
                            {"caches", [&] { return report.Synced(); }},
                            {"lease", [&] { return leadership ? leadership->error() : Status(); }}},
                           metrics, [&] {
                             metrics.Set(kLeader, {{"lease", config.lease_name}}, leads() ? 1 : 0);
                           }));
  Seat seat(config, std::move(rules), metrics);
  RunUntil([&] { return events.StopAsked(); }, runner, bell, SystemClock(),
           [&] {
             if (events.TakeFilesChanged()) seat.Reload(runner);
             seat.Sit(runner, leads());
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
  if (status.ok()) status = CheckConfig(config).Within(flags.config);
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
