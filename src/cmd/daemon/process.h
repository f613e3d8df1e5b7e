// Parts that all daemons share: flags, common configuration, and access to the API server.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/wake_signal.h"
#include "cmd/command.h"
#include "cmd/daemon/config_file.h"
#include "cmd/daemon/probes.h"
#include "cmd/metrics.h"
#include "kube/http_transport.h"
#include "reconcile/runner.h"

namespace nos::cmd {

struct DaemonFlags {
  std::string config, kubeconfig, context;
  bool print_config = false;
  MetricsFlags metrics;
};
void AddDaemonFlags(CLI::App& command, DaemonFlags& flags);
void AddMetricsFlags(CLI::App& command, MetricsFlags& flags);
// The subcommand `name` of a daemon with no other flags. `start` returns the exit code.
void AddDaemonCommand(CLI::App& root, Chosen& chosen, const std::string& name,
                      const std::string& about, int (*start)(const DaemonFlags& flags));

struct DaemonConfig {
  ProbeAddresses addresses{":8081", ":8080"};
  std::string log_level = "info";
  int64_t requests_per_second = 50, burst = 100;
  Duration request_timeout = std::chrono::seconds(30);
  Duration relist_every = std::chrono::hours(1);
};
// `rates`: whether the client's request rates are part of this file, or of another one.
enum class Rates { kScheduler, kPartitioner };
void DescribeDaemon(ConfigFields& fields, DaemonConfig& config, Rates rates = Rates::kScheduler);

// Reads the file's configuration and logs its warnings. Empty path: defaults. Error: with the
// file's name.
Status ReadConfigFile(const std::string& path, std::string_view kind, DescribeConfig fields);

// A daemon, as its command starts it.
struct DaemonStart {
  std::string command;    // "nos operator"
  std::string_view kind;  // of its configuration
  std::function<void(ConfigFields&)> describe;
  std::function<Status()> check;  // of the configuration as read
  const std::string& log_level;
  std::function<Status()> run;
};
// Reads the configuration, and prints it or runs the daemon. Returns the exit code.
int StartDaemon(const DaemonStart& daemon, const std::string& config, bool print_config);

void SetLogLevelByName(const std::string& name);
kube::HttpOptions HttpOptionsOf(const DaemonConfig& config);
// Publishes version and command, once, in the log and in metrics.
void Announce(const std::string& command, Metrics& metrics);

// Health of the loop that steps a runner, published to other threads. Thread-safe.
class LoopReport {
 public:
  // Called after each iteration of the loop.
  void Turn(const reconcile::Runner& runner);
  // The loop is waiting for something that has a limit: its iteration counts as begun now.
  void Wait();
  // OK if an iteration ended recently: only a restart can fix a loop that hangs.
  Status Alive() const;
  // OK once the caches have been read from the API server.
  Status Synced() const;
  // OK if the last reconciliation succeeded.
  Status Works() const;

 private:
  mutable std::mutex mutex_;
  const SteadyClock clock_;
  Time turned_ = clock_.Now();
  bool synced_ = false;
  Status error_, work_;
};

}  // namespace nos::cmd
