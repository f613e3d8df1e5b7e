#include "cmd/daemon/leader.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>

#include "base/file.h"
#include "base/text.h"
#include "base/uuid.h"
#include "cmd/metrics.h"

namespace nos::cmd {
namespace {

std::string Identity() {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  // Unique for every process, even if a container restarts under the same name.
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
  f.Flag(
      "leaderElect", c.elect,
      "If true, only the replica that holds the Lease acts. If false, this replica always acts.");
  f.Text("resourceName", c.lease_name, "Name of the Lease.");
  f.Text("resourceNamespace", c.lease_namespace,
         "Namespace of the Lease. Empty: the namespace of this pod, else default.");
  f.Seconds("leaseDuration", c.election.lease, seconds(2), hours(1),
            "Time after the last renewal when another replica may take over the Lease.");
  f.Seconds("renewDeadline", c.election.renew, seconds(1), hours(1),
            "A leader that fails to renew the Lease for this long stops leading.");
  f.Seconds("retryPeriod", c.election.retry, milliseconds(100), hours(1),
            "Time between attempts to acquire or renew the Lease.");
  f.Retired("resourceLock", "the lock is always a Lease");
  f.Retired("leaderElectionReleaseOnCancel", "the Lease is always released on shutdown");
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
               const std::function<void()>& on_change)
    : lease_name_(config.lease_name),
      transport_(connection, {.timeout = config.election.lease - config.election.renew}) {
  if (!config.elect) return;
  leadership_ = std::make_unique<kube::Leadership>(transport_, OptionsOf(config), on_change);
}

void Leader::Report(Metrics& metrics) const {
  metrics.Set(kLeader, {{"lease", lease_name_}}, Leads() ? 1 : 0);
}

}  // namespace nos::cmd
