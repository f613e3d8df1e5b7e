// nos telemetry: receives records from agents, stores them, and serves the API and the dashboard.
#include <malloc.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/log.h"
#include "cmd/catalogue_flag.h"
#include "cmd/command.h"
#include "cmd/commands.h"
#include "cmd/daemon/outside_events.h"
#include "cmd/daemon/process.h"
#include "cmd/telemetry/backup.h"
#include "cmd/telemetry/server.h"
#include "cmd/telemetry/server_probes.h"

namespace nos::cmd {
namespace {

constexpr std::string_view kKind = "TelemetryConfig";
// File changes wake the loop; certificates that expire do not.
constexpr Duration kMaxWait = std::chrono::minutes(1);

struct Config {
  ProbeAddresses addresses{":8081", ":8080"};
  std::string log_level = "info", geometries_file;
  TelemetryServerConfig server;
};

struct Flags {
  std::string config;
  bool print_config = false, sandbox = false;
  MetricsFlags metrics;
};

void DescribeTelemetry(ConfigFields& f, Config& c) {
  DescribeTelemetryServer(f, c.server);
  f.Text("knownMigGeometriesFile", c.geometries_file,
         "File with additional or overridden GPU models (docs/catalogue.md); the same as the "
         "partitioner's.");
  f.Group("health", [&] {
    f.Text("healthProbeBindAddress", c.addresses.health,
           "Address that serves /healthz and /readyz; \"0\" disables it.");
  });
  f.Group("metrics", [&] {
    f.Text("bindAddress", c.addresses.metrics, "Address that serves /metrics; \"0\" disables it.");
  });
  f.Word("logLevel", c.log_level, {"debug", "info", "warn", "error"},
         "Minimum level of log lines, which are written to standard error.");
}

void ReloadTokens(TelemetryServer& server, Metrics& metrics) {
  const Status read = server.ReadTokens();
  metrics.Count(kReloads, {{"result", read.ok() ? "ok" : "error"}});
  if (read.ok()) {
    Log(LogLevel::kInfo, "reloaded tokens");
  } else {
    Log(LogLevel::kError, "failed to reload tokens, keeping the previous ones",
        {{"error", read.ToString()}});
  }
}

// Limits malloc arenas: each server thread would otherwise keep its peak memory in its own arena.
void ShareMemory() {
  mallopt(M_ARENA_MAX, 2);  // NOLINT(concurrency-mt-unsafe): before any thread starts
}

Result<MetricsSecurity> SecurityOf(const MetricsFlags& flags, const Config& config) {
  if (!flags.secure || config.server.sandbox) return MetricsSecurity();
  NOS_ASSIGN(const kube::ConnectionConfig connection,
             kube::LoadConnection(config.server.readers.kubeconfig, ""));
  return MetricsSecurity::Of(flags, connection);
}

Status RunTelemetry(const Config& config, const MetricsFlags& flags) {
  ShareMemory();
  NOS_ASSIGN(const gpu::Catalogue catalogue, ReadCatalogue(config.geometries_file));
  WakeSignal bell;
  std::vector<std::string> files;
  for (const std::string* file : {&config.server.token_file, &config.server.alerts_token_file}) {
    if (!file->empty()) files.push_back(*file);
  }
  OutsideEvents events(files, [&] { bell.Ring(); });
  Metrics metrics;
  Announce("telemetry", metrics);
  const SystemClock clock;
  std::unique_ptr<TelemetryServer> server;
  // A sandbox opens no port beyond this machine: probes are served on the API's address.
  const ProbeAddresses nowhere{"0", "0"};
  NOS_ASSIGN(MetricsSecurity security, SecurityOf(flags, config));
  NOS_ASSIGN(const auto probes,
             ServerProbes::Serve(config.server.sandbox ? nowhere : config.addresses, metrics,
                                 std::move(security)));
  NOS_ASSIGN(server, TelemetryServer::Start(config.server, catalogue, clock, metrics));
  probes->Show(*server);
  if (config.server.sandbox) server->Show(probes->probes());
  while (!events.StopAsked()) {
    bell.Wait(kMaxWait);
    server->CountCosts();
    if (events.TakeFilesChanged()) ReloadTokens(*server, metrics);
  }
  server->HangUp();
  Log(LogLevel::kInfo, "stopping nos", {{"command", "telemetry"}});
  return Status::Ok();
}

int Start(const Flags& flags) {
  Config config;
  config.server.sandbox = flags.sandbox;
  const auto describe = [&](ConfigFields& fields) { DescribeTelemetry(fields, config); };
  return StartDaemon({.command = "nos telemetry",
                      .kind = kKind,
                      .describe = describe,
                      .check = [] { return Status::Ok(); },
                      .log_level = config.log_level,
                      .run = [&] { return RunTelemetry(config, flags.metrics); }},
                     flags.config, flags.print_config);
}

// The database that a server with this configuration file uses.
Result<std::string> StoreOf(const std::string& file) {
  Config config;
  const auto describe = [&](ConfigFields& fields) { DescribeTelemetry(fields, config); };
  NOS_RETURN_IF_ERROR(ReadConfigFile(file, kKind, describe));
  return config.server.recorder.store.path;
}

}  // namespace

void AddTelemetryCommand(CLI::App& root, Chosen& chosen) {
  CLI::App* command = root.add_subcommand(
      "telemetry", "Store and show telemetry from agents (runs in the cluster)");
  auto flags = std::make_shared<Flags>();
  command->add_option("--config", flags->config, "Configuration file (see --print-config)")
      ->option_text("FILE");
  command->add_flag("--print-config", flags->print_config,
                    "Print the effective configuration with explanations and exit");
  command->add_flag(
      "--sandbox", flags->sandbox,
      "Grant full read and write access to all users of this machine, and to no other machine");
  AddMetricsFlags(*command, flags->metrics);
  command->footer(
      "Examples:\n"
      "  nos telemetry --sandbox                       serve the dashboard on "
      "http://127.0.0.1:8090\n"
      "  nos telemetry --print-config > telemetry.yaml\n"
      "  nos telemetry --config telemetry.yaml\n"
      "  nos telemetry backup backup.db --config telemetry.yaml\n"
      "Help for backups: nos telemetry backup --help");
  AddBackupCommands(*command, chosen, StoreOf);
  command->callback([command, &chosen, flags] {
    if (!command->get_subcommands().empty()) return;
    chosen.action = [flags] { return Start(*flags); };
  });
}

}  // namespace nos::cmd
