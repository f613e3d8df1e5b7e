#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "cmd/clustercheck/topics.h"

namespace nos::cmd {
namespace {

struct ServiceName {
  std::string ns, name;
};

// The Service of "https://nos-telemetry.nos-system.svc:443"; nullopt for a host outside the
// cluster.
std::optional<ServiceName> ServiceOf(std::string_view url) {
  const size_t scheme = url.find("://");
  if (scheme == std::string_view::npos) return std::nullopt;
  std::string_view host = url.substr(scheme + 3);
  host = host.substr(0, host.find_first_of(":/"));
  const auto parts = Split(host, '.');
  if (parts.size() < 3 || parts[2] != "svc") return std::nullopt;
  return ServiceName{std::string(parts[1]), std::string(parts[0])};
}

}  // namespace

void CheckTelemetry(const Snapshot& snapshot, Findings& findings) {
  findings.Begin("Telemetry");
  const auto agents = snapshot.Running("agent");
  if (agents.empty()) return findings.NotChecked("TelemetryReporter", "no agent is installed");
  if (snapshot.ConfigOf(*agents.front()) == nullptr) {
    return findings.NotChecked("TelemetryReporter", "the agent's configuration cannot be read",
                               "run the command with the right to get configmaps in the namespace "
                               "of nos");
  }
  const std::string endpoint = snapshot.AgentConfig("telemetry", "endpoint");
  if (endpoint.empty()) {
    return findings.NotChecked("TelemetryReporter", "agents report to no telemetry server",
                               "if you want the dashboard: "
                               "gpuPartitioner.migAgent.telemetry.endpoint (docs/telemetry.md)");
  }
  findings.Ok("TelemetryReporter", "agents report to " + endpoint);
  const auto service = ServiceOf(endpoint);
  if (!service) {
    return findings.NotChecked(
        "TelemetryServer", "the server is not a Service of this cluster",
        "the agents' metric nos_telemetry_envelopes_total says if it answers");
  }
  if (!snapshot.endpoints.status.ok()) {
    return findings.Unread("TelemetryServer", "EndpointSlices", snapshot.endpoints.status);
  }
  const bool ready = std::ranges::any_of(snapshot.endpoints.items, [&](const auto& slice) {
    return slice.ns == service->ns && slice.service == service->name && slice.ready > 0;
  });
  const std::string name = fmt::format("Service {}/{}", service->ns, service->name);
  if (ready) return findings.Ok("TelemetryServer", "ready pods answer for " + name);
  findings.Fail("TelemetryServer", "no ready pod answers for " + name,
                "start it: telemetry.enabled=true (docs/telemetry-server.md)");
}

}  // namespace nos::cmd
