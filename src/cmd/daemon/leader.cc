#include "cmd/daemon/leader.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>

#include "base/file.h"
#include "base/text.h"
#include "base/uuid.h"

namespace nos::cmd {
namespace {

constexpr MetricFamily kLeader{MetricFamily::Kind::kGauge, "nos_leader",
                               "1 while this replica leads, by lease."};

std::string Identity() {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  // Never used again: not even by a container that restarts under the same name.
  const auto now = SystemClock().Now().time_since_epoch().count();
  return fmt::format("{}_{}", host.data(),
                     NameBasedUuid(fmt::format("{} {} {}", host.data(), getpid(), now)));
}

kube::LeaderElectionOptions OptionsOf(const LeaderConfig& config) {
  kube::LeaderElectionOptions options = config.election;
  options.ns = config.lease_namespace.empty() ? OwnNamespace() : config.lease_namespace;
  options.name = config.lease_name;
  options.identity = Identity();
  return options;
}

}  // namespace

// Source: Kubernetes documentation, "Accessing the Kubernetes API from a Pod".
std::string OwnNamespace() {
  const auto text = ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace", 1000);
  return text.ok() ? std::string(Trim(*text)) : "default";
}

void DescribeLeader(ConfigFields& f, LeaderConfig& c) {
  using std::chrono::hours, std::chrono::milliseconds, std::chrono::seconds;
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
}

Status CheckLeader(const LeaderConfig& config) {
  if (config.election.renew >= config.election.lease) {
    return Invalid("leaderElection: renewDeadline must be shorter than leaseDuration");
  }
  if (config.election.retry >= config.election.renew) {
    return Invalid("leaderElection: retryPeriod must be shorter than renewDeadline");
  }
  return Status::Ok();
}

Leader::Leader(const kube::ConnectionConfig& connection, const LeaderConfig& config,
               std::function<void()> on_change)
    : lease_name_(config.lease_name),
      transport_(connection, {.timeout = config.election.lease - config.election.renew}) {
  if (!config.elect) return;
  leadership_ =
      std::make_unique<kube::Leadership>(transport_, OptionsOf(config), std::move(on_change));
}

void Leader::Report(Metrics& metrics) const {
  metrics.Set(kLeader, {{"lease", lease_name_}}, Leads() ? 1 : 0);
}

}  // namespace nos::cmd
