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

// The value of a line 'nos_telemetry_nodes{cluster="prod",state="silent"} 2'; 0: there is none.
int64_t NodesIn(std::string_view metrics, std::string_view cluster, std::string_view state) {
  const std::string labels =
      fmt::format(R"(nos_telemetry_nodes{{cluster="{}",state="{}"}} )", cluster, state);
  for (const std::string_view line : Split(metrics, '\n')) {
    if (line.starts_with(labels)) return ParseInt(line.substr(labels.size())).value_or(0);
  }
  return 0;
}

// Checks by the server's own metrics that the records of agents arrive.
void CheckRecords(const Snapshot& snapshot, Findings& findings) {
  const std::string code = "TelemetryRecords";
  const Result<std::string>& metrics = snapshot.telemetry_metrics;
  if (metrics.status().code() == Code::kNotFound) {
    return findings.NotChecked(code, "the server is not one of nos in this cluster");
  }
  if (!metrics.ok()) {
    return findings.NotChecked(
        code,
        "the server's metrics cannot be read through the API server: " + metrics.status().message(),
        "run the command with the right to get services/proxy in the namespace of nos");
  }
  const std::string cluster = snapshot.AgentConfig("telemetry", "cluster");
  const int64_t reporting = NodesIn(*metrics, cluster, "reporting");
  const int64_t silent = NodesIn(*metrics, cluster, "silent");
  const char* const kRemedy =
      "the agents' metric nos_telemetry_envelopes_total and their logs say why, and the server's "
      "nos_telemetry_received_envelopes_total if it refuses them";
  if (reporting + silent == 0) {
    return findings.Fail(code, "no record of an agent has arrived for cluster " + cluster, kRemedy);
  }
  if (reporting == 0) {
    return findings.Fail(code, "no record of an agent arrives any more", kRemedy);
  }
  const std::string arrive =
      "records of " + Count(static_cast<size_t>(reporting), "node") + " arrive";
  if (silent == 0) return findings.Ok(code, arrive);
  findings.Warn(code,
                fmt::format("{}; {} stopped", arrive, Count(static_cast<size_t>(silent), "node")),
                "the dashboard names the nodes; " + std::string(kRemedy));
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
  findings.Ok("TelemetryReporter", "agents are configured to report to " + endpoint);
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
  if (ready) {
    findings.Ok("TelemetryServer", "ready pods answer for " + name);
    return CheckRecords(snapshot, findings);
  }
  findings.Fail("TelemetryServer", "no ready pod answers for " + name,
                "start it: telemetry.enabled=true (docs/telemetry-server.md)");
}

}  // namespace nos::cmd
