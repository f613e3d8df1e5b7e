// What the daemons have in common: flags, configuration shared by all, how they
// reach the API server.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/bell.h"
#include "base/metrics.h"
#include "cmd/daemon/config_file.h"
#include "cmd/daemon/probes.h"
#include "reconcile/runner.h"
#include "kube/http_transport.h"

namespace CLI {
class App;
}

namespace nos::cmd {

inline constexpr MetricFamily kReloads{MetricFamily::Kind::kCounter, "nos_config_reloads_total",
                                       "Times that changed files were read anew, by result."};

struct DaemonFlags {
  std::string config, kubeconfig, context;
  bool print_config = false;
};
void AddDaemonFlags(CLI::App& command, DaemonFlags& flags);

struct DaemonConfig {
  ProbeAddresses addresses{":8081", ":8080"};
  std::string log_level = "info";
  int64_t requests_per_second = 50, burst = 100;
  Duration request_timeout = std::chrono::seconds(30);
  Duration relist_every = std::chrono::hours(1);
};
// `rates`: of requests to the API server, where no other file says them.
enum class Rates { kHere, kElsewhere };
void DescribeDaemon(ConfigFields& fields, DaemonConfig& config, Rates rates = Rates::kHere);

// The file's configuration, with warnings logged. No file: defaults. Error: with the file's name.
Status ReadConfigFile(const std::string& path, std::string_view kind, DescribeConfig fields);

void SetLogLevelByName(const std::string& name);
kube::HttpOptions HttpOptionsOf(const DaemonConfig& config);
// Announces version and command, once, in logs and metrics.
void Announce(const std::string& command, Metrics& metrics);

// What the thread that steps a runner tells the others. Thread-safe.
class LoopReport {
 public:
  // After each turn of the loop.
  void Turn(const reconcile::Runner& runner);
  // A turn was taken lately: a loop that hangs is helped by a restart only.
  Status Alive() const;
  // The caches have been read from the API server.
  Status Synced() const;
  // The last look at the world came to its end.
  Status Works() const;

 private:
  mutable std::mutex mutex_;
  const SteadyClock clock_;
  Time turned_ = clock_.Now();
  bool synced_ = false;
  Status error_, work_;
};

}  // namespace nos::cmd
