// nos status: a live cluster on one screen, with its cost if a telemetry server has prices.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "cmd/catalogue_flag.h"
#include "cmd/command.h"
#include "cmd/commands.h"
#include "cmd/query/status_report.h"
#include "cmd/query/telemetry_client.h"
#include "cmd/telemetry/read_cluster.h"
#include "cmd/terminal.h"
#include "kube/client.h"
#include "kube/connection.h"
#include "kube/http_transport.h"
#include "net/loopback.h"

namespace nos::cmd {
namespace {

constexpr size_t kGroupsShown = 10;
constexpr int64_t kHour = 3'600'000;  // milliseconds

struct StatusFlags {
  TelemetryFlags telemetry;  // of the cluster, too
  std::string output = "text", catalogue;
};

// The answer of GET cost for the last hour.
Result<Json> CostOfLastHour(const TelemetryFlags& flags) {
  NOS_ASSIGN(TelemetryClient client, TelemetryClient::For(flags));
  NOS_ASSIGN(const int64_t now, client.Now());
  return client.Get(
      "cost",
      {{"by", "category"}, {"from", std::to_string(now - kHour)}, {"to", std::to_string(now)}});
}

// The sandbox's API server: others have TLS. Its telemetry server is on this machine.
bool IsSandbox(std::string_view api_server) {
  constexpr std::string_view kPlain = "http://";
  return api_server.starts_with(kPlain) &&
         net::IsLoopbackAuthority(api_server.substr(kPlain.size()));
}

// Without --server only the sandbox's telemetry server is asked: another one on this machine may be
// about another cluster.
std::optional<HourCost> ReadCost(TelemetryFlags flags, std::string_view api_server) {
  const bool named = !flags.server.empty();
  if (!named && !IsSandbox(api_server)) return std::nullopt;
  if (!named) flags.server = kLocalTelemetry;
  const auto answer = CostOfLastHour(flags);
  if (answer.ok()) return HourCostOf(*answer);
  if (named) std::cerr << "note: ignoring costs: " << answer.status().message() << "\n";
  return std::nullopt;
}

Status Run(const StatusFlags& flags) {
  NOS_ASSIGN(kube::ConnectionConfig config,
             kube::LoadConnection(flags.telemetry.kubeconfig, flags.telemetry.context));
  const std::string api_server = config.server;
  NOS_ASSIGN(const gpu::Catalogue catalogue, ReadCatalogue(flags.catalogue));
  kube::HttpTransport transport(std::move(config));
  kube::Client client(transport);
  NOS_ASSIGN(auto nodes, ListNodes(client));
  NOS_ASSIGN(auto pods, ListPods(client));
  LiveCluster live = MakeLiveCluster(std::move(nodes), std::move(pods), catalogue);
  live.server_time = transport.ServerTime();
  if (auto quotas = ListQuotas(client); quotas.ok()) {
    live.quotas = std::move(*quotas);
  } else {
    std::cerr << "note: ignoring quotas: " << quotas.status().message() << "\n";
  }
  ClusterStatus status = StatusOf(live, TimeIn(live));
  status.cost = ReadCost(flags.telemetry, api_server);
  if (flags.output == "json") {
    std::cout << WriteJsonPretty(ToJson(status)) << "\n";
  } else {
    std::cout << ToText(status, TableWidth(), kGroupsShown);
  }
  return nos::Status::Ok();
}

}  // namespace

void AddStatusCommand(CLI::App& root, Chosen& chosen) {
  CLI::App* command =
      root.add_subcommand("status", "Show GPUs, pods, quotas and problems on one screen");
  auto flags = std::make_shared<StatusFlags>();
  command->add_option("-o,--output", flags->output, "Output format: text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->option_text("FORMAT");
  AddCatalogueFlag(*command, flags->catalogue);
  AddTelemetryFlags(*command, flags->telemetry);
  flags->telemetry.server.clear();  // not named
  command->footer(
      "The cost of the last hour comes from a telemetry server with prices. Without --server and\n"
      "$NOS_TELEMETRY only a sandbox's server is asked.\n\n"
      "Examples:\n  nos status\n  nos status -o json\n"
      "  nos status --server https://nos-telemetry.example.com");
  RunWhenChosen(*command, chosen, "nos status", [flags] { return Run(*flags); });
}

}  // namespace nos::cmd
