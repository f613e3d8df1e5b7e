#include <fmt/format.h>

#include "base/text.h"
#include "cmd/clustercheck/topics.h"

namespace nos::cmd {
namespace {

// The chart requires 1.28; tests run on the versions that README lists.
constexpr int64_t kOldestMinor = 28;

// The second number of "v1.34.2"; nullopt for other texts.
std::optional<int64_t> MinorOf(std::string_view version) {
  const auto parts = Split(version, '.');
  if (parts.size() < 2 || parts[0] != "v1") return std::nullopt;
  return ParseInt(parts[1].substr(0, parts[1].find_first_not_of("0123456789")));
}

}  // namespace

void CheckServer(const Snapshot& snapshot, Findings& findings) {
  findings.Begin("API server");
  if (!snapshot.server_version.ok()) {
    return findings.Unread("ApiServerVersion", "the version of the API server",
                           snapshot.server_version.status());
  }
  const std::string& version = *snapshot.server_version;
  const auto minor = MinorOf(version);
  if (!minor) {
    return findings.Warn("ApiServerVersion", "the API server says that it is " + version,
                         "nos is tested with Kubernetes v1.28 and newer");
  }
  if (*minor < kOldestMinor) {
    return findings.Fail("ApiServerVersion", "Kubernetes " + version + " is too old",
                         fmt::format("use Kubernetes v1.{} or newer", kOldestMinor));
  }
  findings.Ok("ApiServerVersion", "Kubernetes " + version);
}

std::vector<Finding> CheckCluster(const Snapshot& snapshot) {
  Findings findings;
  CheckServer(snapshot, findings);
  CheckInstallation(snapshot, findings);
  CheckWebhooks(snapshot, findings);
  CheckAccess(snapshot, findings);
  CheckNodes(snapshot, findings);
  CheckGpuLabels(snapshot, findings);
  CheckRuntime(snapshot, findings);
  CheckDevicePlugins(snapshot, findings);
  CheckScheduling(snapshot, findings);
  CheckTelemetry(snapshot, findings);
  return findings.all();
}

}  // namespace nos::cmd
