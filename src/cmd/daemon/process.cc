#include "cmd/daemon/process.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/file.h"
#include "base/log.h"
#include "cmd/command.h"

namespace nos::cmd {
namespace {

constexpr MetricFamily kBuild{MetricFamily::Kind::kGauge, "nos_build_info",
                              "1, with the version and the command that runs."};

constexpr Duration kHung = std::chrono::minutes(5);
constexpr size_t kMostConfigBytes = size_t{4} << 20;

}  // namespace

void AddDaemonFlags(CLI::App& command, DaemonFlags& flags) {
  command.add_option("--config", flags.config, "Configuration (see --print-config)")
      ->option_text("FILE");
  command.add_flag("--print-config", flags.print_config,
                   "Print the configuration in force, explained, and end");
  command
      .add_option("--kubeconfig", flags.kubeconfig,
                  "Default: $KUBECONFIG, the pod's service account, ~/.kube/config")
      ->option_text("FILE");
  command.add_option("--context", flags.context, "Context of the kubeconfig")->option_text("NAME");
}

void DescribeDaemon(ConfigFields& f, DaemonConfig& c, Rates rates) {
  f.Group("health", [&] {
    f.Text("healthProbeBindAddress", c.addresses.health,
           "Where /healthz and /readyz are served; \"0\" for nowhere.");
    f.Retired("readinessEndpointName", "it is /readyz");
    f.Retired("livenessEndpointName", "it is /healthz");
  });
  f.Group("metrics", [&] {
    f.Text("bindAddress", c.addresses.metrics, "Where /metrics is served; \"0\" for nowhere.");
  });
  f.Word("logLevel", c.log_level, {"debug", "info", "warn", "error"},
         "Log lines of this level and above are written to standard error.");
  f.Group("apiServer", [&] {
    if (rates == Rates::kHere) {
      f.Number("requestsPerSecond", c.requests_per_second, 1, 10'000,
               "Requests to the API server; more wait.");
      f.Number("burst", c.burst, 1, 100'000, "Requests at once after a pause.");
    }
    f.Seconds("timeoutSeconds", c.request_timeout, std::chrono::seconds(1),
              std::chrono::minutes(10), "Of one request, its repetitions included.");
    f.Seconds("relistSeconds", c.relist_every, std::chrono::minutes(1), std::chrono::hours(24),
              "Everything watched is also listed anew this often.");
  });
  // controller-runtime's ControllerManagerConfigurationSpec.
  f.Retired("syncPeriod", "see apiServer.relistSeconds");
  f.Retired("cacheNamespace", "all namespaces are looked at");
  f.Retired("gracefulShutDown", "what is under way is ended in order");
  f.Retired("controller", "there is one worker");
}

Status ReadConfigFile(const std::string& path, std::string_view kind, DescribeConfig fields) {
  std::string text;
  if (!path.empty()) {
    NOS_ASSIGN(text, ReadFile(path, kMostConfigBytes));
  }
  std::vector<std::string> warnings;
  const Status read = ReadConfig(text, kind, fields, warnings);
  for (const std::string& warning : warnings) {
    Log(LogLevel::kWarn, "configuration", {{"file", path}, {"note", warning}});
  }
  return read.Within(path);
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
  metrics.Set(kBuild, {{"version", NOS_VERSION}, {"command", command}}, 1);
  Log(LogLevel::kInfo, "nos starts", {{"command", command}, {"version", NOS_VERSION}});
}

void LoopReport::Turn(const reconcile::Runner& runner) {
  const std::scoped_lock lock(mutex_);
  turned_ = clock_.Now();
  const bool synced = runner.synced();
  if (synced && !synced_) Log(LogLevel::kInfo, "the cluster has been read");
  synced_ = synced;
  Status error = runner.ReadError();
  if (!error.ok() && error.message() != error_.message()) {
    Log(LogLevel::kWarn, "cannot read the cluster", {{"error", error.ToString()}});
  }
  error_ = std::move(error);
  const Status& work = runner.last_error();
  // Conflicts are the ordinary fate of writes by several hands.
  if (!work.ok() && work.code() != Code::kConflict && work.message() != work_.message()) {
    Log(LogLevel::kWarn, "the work is held up", {{"error", work.ToString()}});
  }
  work_ = work;
}

Status LoopReport::Alive() const {
  const std::scoped_lock lock(mutex_);
  const Duration age = clock_.Now() - turned_;
  if (age < kHung) return Status::Ok();
  return {Code::kInternal, fmt::format("the last turn was {} ago", FormatAge(age))};
}

Status LoopReport::Synced() const {
  const std::scoped_lock lock(mutex_);
  if (synced_ && error_.ok()) return Status::Ok();
  return error_.ok() ? Status(Code::kUnavailable, "the cluster has not been read yet") : error_;
}

Status LoopReport::Works() const {
  const std::scoped_lock lock(mutex_);
  return work_;
}

}  // namespace nos::cmd
