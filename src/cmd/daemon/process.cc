#include "cmd/daemon/process.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "base/file.h"
#include "base/log.h"
#include "cmd/metrics.h"

namespace nos::cmd {
namespace {

constexpr Duration kHung = std::chrono::minutes(5);
constexpr size_t kMaxConfigBytes = size_t{4} << 20;

}  // namespace

void AddDaemonFlags(CLI::App& command, DaemonFlags& flags) {
  command.add_option("--config", flags.config, "Configuration file (see --print-config)")
      ->option_text("FILE");
  command.add_flag("--print-config", flags.print_config,
                   "Print the effective configuration with explanations and exit");
  command
      .add_option("--kubeconfig", flags.kubeconfig,
                  "Default: $KUBECONFIG, the pod's service account, ~/.kube/config")
      ->option_text("FILE");
  command.add_option("--context", flags.context, "Kubeconfig context to use")->option_text("NAME");
  AddMetricsFlags(command, flags.metrics);
}

void AddMetricsFlags(CLI::App& command, MetricsFlags& flags) {
  command.add_flag("--secure-metrics", flags.secure,
                   "Serve /metrics over TLS, to accounts that may get this path of the API server");
  command
      .add_option("--metrics-cert-file", flags.certificate_file,
                  "Certificate for it (PEM), reloaded when it changes. Default: one of its own")
      ->option_text("FILE");
  command.add_option("--metrics-key-file", flags.key_file, "Private key of that certificate (PEM)")
      ->option_text("FILE");
}

void AddDaemonCommand(CLI::App& root, Chosen& chosen, const std::string& name,
                      const std::string& about, int (*start)(const DaemonFlags& flags)) {
  CLI::App* command = root.add_subcommand(name, about);
  auto flags = std::make_shared<DaemonFlags>();
  AddDaemonFlags(*command, *flags);
  command->footer(
      fmt::format("Examples:\n"
                  "  nos {0} --print-config > {0}.yaml\n"
                  "  nos {0} --config {0}.yaml --kubeconfig ~/.kube/config",
                  name));
  command->callback(
      [&chosen, flags, start] { chosen.action = [flags, start] { return start(*flags); }; });
}

void DescribeDaemon(ConfigFields& f, DaemonConfig& c, Rates rates) {
  f.Group("health", [&] {
    f.Text("healthProbeBindAddress", c.addresses.health,
           "Address that serves /healthz and /readyz; \"0\" disables it.");
    f.Retired("readinessEndpointName", "the endpoint is always /readyz");
    f.Retired("livenessEndpointName", "the endpoint is always /healthz");
  });
  f.Group("metrics", [&] {
    f.Text("bindAddress", c.addresses.metrics, "Address that serves /metrics; \"0\" disables it.");
  });
  f.Word("logLevel", c.log_level, {"debug", "info", "warn", "error"},
         "Minimum level of log lines, which are written to standard error.");
  f.Group("apiServer", [&] {
    if (rates == Rates::kScheduler) {
      f.Number(
          "requestsPerSecond", c.requests_per_second, 1, 10'000,
          "Maximum average rate of requests to the API server per second; more requests wait.");
      f.Renamed("burst", "maxBurst");
      f.Number("maxBurst", c.burst, 1, 100'000, "Maximum burst of requests after a pause.");
    }
    f.Seconds("timeoutSeconds", c.request_timeout, std::chrono::seconds(1),
              std::chrono::minutes(10), "Time limit of one request, including retries.");
    f.Seconds("relistSeconds", c.relist_every, std::chrono::minutes(1), std::chrono::hours(24),
              "Time between full lists of all watched objects.");
  });
  // Keys of controller-runtime's ControllerManagerConfigurationSpec.
  f.Retired("syncPeriod", "see apiServer.relistSeconds");
  f.Retired("cacheNamespace", "all namespaces are watched");
  f.Retired("gracefulShutDown", "the daemon always shuts down gracefully");
  f.Retired("controller", "the daemon has one worker");
}

Status ReadConfigFile(const std::string& path, std::string_view kind, DescribeConfig fields) {
  std::string text;
  if (!path.empty()) {
    NOS_ASSIGN(text, ReadFile(path, kMaxConfigBytes));
  }
  std::vector<std::string> warnings;
  const Status read = ReadConfig(text, kind, fields, warnings);
  for (const std::string& warning : warnings) {
    Log(LogLevel::kWarn, "found deprecated or ignored key in configuration file",
        {{"file", path}, {"note", warning}});
  }
  return read.Within(path);
}

int StartDaemon(const DaemonStart& daemon, const std::string& config, bool print_config) {
  Status status = ReadConfigFile(config, daemon.kind, daemon.describe);
  if (status.ok()) status = daemon.check().Within(config);
  if (!status.ok()) return Fail(daemon.command, status);
  if (print_config) {
    std::cout << PrintConfig(daemon.kind, daemon.describe);
    return 0;
  }
  SetLogLevelByName(daemon.log_level);
  status = daemon.run();
  return status.ok() ? 0 : Fail(daemon.command, status);
}

void SetLogLevelByName(const std::string& name) {
  SetLogLevel(name == "debug"   ? LogLevel::kDebug
              : name == "warn"  ? LogLevel::kWarn
              : name == "error" ? LogLevel::kError
                                : LogLevel::kInfo);
}

kube::HttpOptions HttpOptionsOf(const DaemonConfig& config) {
  kube::HttpOptions options;
  options.timeout = config.request_timeout;
  options.requests_per_second = static_cast<double>(config.requests_per_second);
  options.burst = static_cast<int>(config.burst);
  return options;
}

void Announce(const std::string& command, Metrics& metrics) {
  metrics.Set(kBuildInfo, {{"version", NOS_VERSION}, {"command", command}}, 1);
  Log(LogLevel::kInfo, "starting nos", {{"command", command}, {"version", NOS_VERSION}});
}

void LoopReport::Turn(const reconcile::Runner& runner) {
  const std::scoped_lock lock(mutex_);
  turned_ = clock_.Now();
  const bool synced = runner.synced();
  if (synced && !synced_) Log(LogLevel::kInfo, "synced caches");
  synced_ = synced;
  Status error = runner.ReadError();
  if (!error.ok() && error.message() != error_.message()) {
    Log(LogLevel::kWarn, "failed to list or watch objects", {{"error", error.ToString()}});
  }
  error_ = std::move(error);
  const Status& work = runner.last_error();
  // Conflicts are expected when several clients write the same object.
  if (!work.ok() && work.code() != Code::kConflict && work.message() != work_.message()) {
    Log(LogLevel::kWarn, "failed to reconcile object", {{"error", work.ToString()}});
  }
  work_ = work;
}

void LoopReport::Wait() {
  const std::scoped_lock lock(mutex_);
  turned_ = clock_.Now();
}

Status LoopReport::Alive() const {
  const std::scoped_lock lock(mutex_);
  const Duration age = clock_.Now() - turned_;
  if (age < kHung) return Status::Ok();
  return {Code::kInternal, fmt::format("the last loop iteration was {} ago", FormatAge(age))};
}

Status LoopReport::Synced() const {
  const std::scoped_lock lock(mutex_);
  if (synced_ && error_.ok()) return Status::Ok();
  return error_.ok() ? Status(Code::kUnavailable, "caches are not synced yet") : error_;
}

Status LoopReport::Works() const {
  const std::scoped_lock lock(mutex_);
  return work_;
}

}  // namespace nos::cmd
