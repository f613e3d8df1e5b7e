// nos operator: publishes the status of elastic quotas and rejects invalid ones.
#include "controllers/operator.h"
#include "cmd/metrics.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "cmd/catalogue_flag.h"
#include "cmd/command.h"
#include "cmd/commands.h"
#include "cmd/daemon/delivery.h"
#include "cmd/daemon/leader.h"
#include "cmd/daemon/outside_events.h"
#include "cmd/daemon/process.h"
#include "cmd/daemon/webhook.h"
#include "controllers/collector.h"
#include "controllers/quota_admission.h"
#include "controllers/slice_admission.h"
#include "kube/metered_transport.h"
#include "reconcile/metrics.h"

namespace nos::cmd {
namespace {

constexpr std::string_view kKind = "OperatorConfig";

struct Config {
  DaemonConfig daemon;
  LeaderConfig leader{.lease_name = "operator.nos.nebuly.com"};
  controllers::OperatorConfig quotas;
  WebhookConfig webhook;
  DeliveryConfig telemetry;
  std::string geometries_file;
  bool events = true;  // also report Kubernetes Events
  controllers::SliceAdmissionOptions slices;
};

// Runs the operator and the telemetry collector on the same caches.
class Both final : public reconcile::Reconciler {
 public:
  Both(reconcile::Reconciler& first, controllers::Collector* second)
      : first_(first), second_(second) {}
  reconcile::ReconcileResult Reconcile(const std::string& key, const reconcile::Listers& view,
                                       kube::Client& client, const Clock& clock) override {
    if (second_ != nullptr) (void)second_->Reconcile(key, view, client, clock);  // never fails
    return first_.Reconcile(key, view, client, clock);
  }

 private:
  reconcile::Reconciler& first_;
  controllers::Collector* second_;
};

void DescribeOperator(ConfigFields& f, Config& c) {
  f.Number("nvidiaGpuResourceMemoryGB", c.quotas.charges.gpu_memory_gb, 1, 1'000'000,
           "GB of nos.nebuly.com/gpu-memory charged for a whole GPU whose node has no "
           "label nvidia.com/gpu.memory.");
  f.Flag(
      "deleteOverlappingElasticQuotas", c.quotas.delete_overlapping,
      "If true, delete ElasticQuotas in namespaces of a CompositeElasticQuota, as the Go version "
      "did. If false, report in their conditions that they have no effect.");
  f.Text(
      "compositeNamespacesConfigMap", c.quotas.namespaces_map,
      "ConfigMap that lists the namespaces of CompositeElasticQuotas, for the admission policy on "
      "their pods: NAMESPACE/NAME, or NAME in the namespace of this pod. Empty: none.");
  f.Text("knownMigGeometriesFile", c.geometries_file,
         "File with additional or overridden GPU models (docs/catalogue.md), the same as the "
         "partitioner's, for slices by GPU requirements.");
  f.Flag("sharesNeedHostIPC", c.slices.shares_need_host_ipc,
         "Choose MPS shares by GPU requirements only for pods with hostIPC. False if agents have "
         "mps.shmFolder.");
  f.Group("webhook", [&] { DescribeWebhook(f, c.webhook); });
  f.Group("telemetry", [&] {
    DescribeDelivery(f, c.telemetry);
    f.Flag("events", c.events,
           "Also report Kubernetes Events about pods that request GPUs, their Jobs, nodes that "
           "have GPUs, quotas, and node pools.");
  });
  f.Group("leaderElection", [&] { DescribeLeader(f, c.leader); });
  DescribeDaemon(f, c.daemon);
}

// Collects records of the cluster and delivers them to the telemetry server.
struct ClusterTelemetry {
  explicit ClusterTelemetry(controllers::CollectorOptions options)
      : collector(
            gpu::Catalogue::Builtin(),
            [this](const std::vector<Json>& records) { Deliver(records); }, std::move(options)) {}

  std::unique_ptr<Delivery> delivery;
  controllers::Collector collector;
  bool missed = false;  // some records were not stored

  void Deliver(const std::vector<Json>& records) {
    std::vector<std::string> texts;
    texts.reserve(records.size());
    for (const Json& record : records) texts.push_back(WriteJson(record));
    const Status kept = delivery->Add(texts);
    if (kept.ok()) {
      if (std::exchange(missed, false)) collector.ReportAgain();
      return;
    }
    missed = true;
    Log(LogLevel::kWarn, "failed to store cluster records for telemetry",
        {{"records", std::to_string(records.size())}, {"error", kept.ToString()}});
  }
};

// The ConfigMap of covered namespaces as namespace and name; without one, the operator's own.
controllers::OperatorConfig QuotaConfigOf(const Config& config) {
  controllers::OperatorConfig quotas = config.quotas;
  const size_t slash = quotas.namespaces_map.find('/');
  quotas.namespaces_map_ns =
      slash == std::string::npos ? OwnNamespace() : quotas.namespaces_map.substr(0, slash);
  quotas.namespaces_map.erase(0, slash == std::string::npos ? 0 : slash + 1);
  return quotas;
}

// Both must outlive the routes.
std::vector<WebhookRoute> RoutesOf(const Config& config, controllers::QuotaAdmission& admission,
                                   controllers::SliceAdmission& slices) {
  std::vector<WebhookRoute> routes{{"/validate-quotas",
                                    [&](std::string_view body) { return admission.Review(body); },
                                    [&] { return admission.Ready(); }}};
  if (config.webhook.slices) {
    routes.push_back({"/choose-slices", [&](std::string_view body) { return slices.Review(body); },
                      [&] { return slices.Ready(); }});
  }
  return routes;
}

Status RunOperator(const DaemonFlags& flags, bool serves, const Config& config) {
  NOS_ASSIGN(const kube::ConnectionConfig connection,
             kube::LoadConnection(flags.kubeconfig, flags.context));
  NOS_ASSIGN(const gpu::Catalogue catalogue, ReadCatalogue(config.geometries_file));
  WakeSignal bell;
  OutsideEvents events({}, [&] { bell.Ring(); });
  Metrics metrics;
  Announce("operator", metrics);
  Leader leader(connection, config.leader, [&] { bell.Ring(); });
  kube::HttpOptions http_options = HttpOptionsOf(config.daemon);
  http_options.may_write = [&] { return leader.Leads(); };
  kube::HttpTransport http(connection, http_options);
  kube::MeteredTransport metered(http, metrics);
  controllers::QuotaAdmission admission;
  controllers::Operator quotas(QuotaConfigOf(config), &admission, &metrics);
  std::unique_ptr<ClusterTelemetry> telemetry;
  if (!config.telemetry.endpoint.empty()) {
    telemetry = std::make_unique<ClusterTelemetry>(controllers::CollectorOptions{
        .events = config.events,
        .watch = {.relist_every = config.daemon.relist_every, .wake = [&] { bell.Ring(); }}});
    NOS_ASSIGN(telemetry->delivery, Delivery::For(config.telemetry, "cluster", metrics));
    NOS_RETURN_IF_ERROR(telemetry->delivery->Open().Within("telemetry.spoolFolder"));
  }
  Both both(quotas, telemetry ? &telemetry->collector : nullptr);
  reconcile::MeteredReconciler reconciler(both, "operator", metrics);
  reconcile::RunnerOptions options;
  options.relist_every = config.daemon.relist_every;
  options.watch_context = true;
  options.context_kinds = controllers::OperatorKinds();
  options.wake = [&] { bell.Ring(); };
  reconcile::Runner runner(reconciler, metered, options);
  const SteadyClock steady;
  LoopReport report;
  const kube::Cache<cluster::Node>& nodes = runner.view().nodes;
  const kube::Cache<cluster::Pod>& pods = runner.view().pods;
  controllers::SliceAdmission slices(
      catalogue, steady,
      [&] {
        using Cluster = controllers::SliceAdmission::Cluster;
        return report.Synced().ok() ? Cluster{nodes.Snapshot(), pods.Snapshot()} : Cluster();
      },
      config.slices);
  std::unique_ptr<Webhook> webhook;
  if (serves) {
    NOS_ASSIGN(webhook, Webhook::Start(
                            config.webhook, RoutesOf(config, admission, slices), metered,
                            [&] { return leader.Leads(); }, metrics));
  }
  std::vector<Check> checks{{"loop", [&] { return report.Alive(); }, true},
                            {"caches", [&] { return report.Synced(); }},
                            {"lease", [&] { return leader.error(); }}};
  if (serves) checks.push_back({"webhook", [&] { return webhook->Ready(); }});
  NOS_ASSIGN(const auto probes,
             Probes::Serve(
                 config.daemon.addresses, std::move(checks), metrics,
                 [&] { leader.Report(metrics); }, MetricsSecurity::Of(flags.metrics, connection)));
  const SystemClock clock;
  kube::Client client(metered);
  RunUntil([&] { return events.StopAsked(); }, runner, bell, clock,
           [&] {
             if (telemetry) {
               telemetry->collector.Lead(leader.Leads());
               telemetry->collector.Follow(runner.view(), client, clock);
               metrics.CountTo(kEventsDropped, {},
                               static_cast<double>(telemetry->collector.events_dropped()));
             }
             if (quotas.Lead(leader.Leads())) {
               runner.Poke(clock.Now());
               if (webhook != nullptr) webhook->Wake();
             }
             report.Turn(runner);
           });
  Log(LogLevel::kInfo, "stopping nos", {{"command", "operator"}});
  return Status::Ok();
}

int Start(const DaemonFlags& flags, bool serves) {
  Config config;
  const auto describe = [&](ConfigFields& fields) { DescribeOperator(fields, config); };
  return StartDaemon({.command = "nos operator",
                      .kind = kKind,
                      .describe = describe,
                      .check = [&] { return CheckLeader(config.leader); },
                      .log_level = config.daemon.log_level,
                      .run = [&] { return RunOperator(flags, serves, config); }},
                     flags.config, flags.print_config);
}

}  // namespace

void AddOperatorCommand(CLI::App& root, Chosen& chosen) {
  CLI::App* command =
      root.add_subcommand("operator", "Publish the status of elastic quotas (runs in the cluster)");
  auto flags = std::make_shared<DaemonFlags>();
  auto serves = std::make_shared<bool>(false);
  AddDaemonFlags(*command, *flags);
  command->add_flag("--webhook", *serves, "Also serve the admission webhook that validates quotas");
  command->footer(
      "Examples:\n"
      "  nos operator --print-config > operator.yaml\n"
      "  nos operator --config operator.yaml --kubeconfig ~/.kube/config");
  command->callback([&chosen, flags, serves] {
    chosen.action = [flags, serves] { return Start(*flags, *serves); };
  });
}

}  // namespace nos::cmd
