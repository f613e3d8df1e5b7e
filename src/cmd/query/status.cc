// nos status: a live cluster on one screen, with the cost and the decisions of the last hour if a
// telemetry server has them.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
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
constexpr int kStoriesShown = 5;
constexpr int64_t kHour = 3'600'000;  // milliseconds

struct StatusFlags {
  TelemetryFlags telemetry;  // of the cluster, too
  std::string output = "text", catalogue;
};

// Adds what a telemetry server knows of the last hour: the cost if it has prices, and the
// decisions.
Status AddLastHour(const TelemetryFlags& flags, ClusterStatus& status) {
  NOS_ASSIGN(TelemetryClient client, TelemetryClient::For(flags));
  NOS_ASSIGN(const int64_t now, client.Now());
  const std::string from = std::to_string(now - kHour), to = std::to_string(now);
  NOS_ASSIGN(const Json cost, client.Get("cost", {{"by", "category"}, {"from", from}, {"to", to}}));
  status.cost = HourCostOf(cost);
  NOS_ASSIGN(const Json stories, client.Get("stories", {{"since", from},
                                                        {"before", to},
                                                        {"limit", std::to_string(kStoriesShown)}}));
  status.stories = RecentStoriesOf(stories, now);
  return nos::Status::Ok();
}

// The sandbox's API server: others have TLS. Its telemetry server is on this machine.
bool IsSandbox(std::string_view api_server) {
  constexpr std::string_view kPlain = "http://";
  return api_server.starts_with(kPlain) &&
         net::IsLoopbackAuthority(api_server.substr(kPlain.size()));
}

// Without --server only the sandbox's telemetry server is asked: another one on this machine may be
// about another cluster.
void AddLastHourIfKnown(TelemetryFlags flags, std::string_view api_server, ClusterStatus& status) {
  const bool named = !flags.server.empty();
  if (!named && !IsSandbox(api_server)) return;
  if (!named) flags.server = kLocalTelemetry;
  const nos::Status added = AddLastHour(flags, status);
  if (named && !added.ok()) {
    std::cerr << "note: ignoring cost and decisions: " << added.message() << "\n";
  }
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
    NOS_ASSIGN(live.claims, ListClaims(client));
  } else {
    std::cerr << "note: ignoring quotas: " << quotas.status().message() << "\n";
  }
  ClusterStatus status = StatusOf(live, TimeIn(live));
  AddLastHourIfKnown(flags.telemetry, api_server, status);
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
      "Decisions and the cost of the last hour come from a telemetry server. Without --server and\n"
      "$NOS_TELEMETRY only a sandbox's server is asked.\n\n"
      "Examples:\n  nos status\n  nos status -o json\n"
      "  nos status --server https://nos-telemetry.example.com");
  RunWhenChosen(*command, chosen, "nos status", [flags] { return Run(*flags); });
}

}  // namespace nos::cmd
