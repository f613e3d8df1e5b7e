// nos status: a live cluster, or a dump of one, on one screen.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cmd/catalogue_flag.h"
#include "cmd/command.h"
#include "cmd/commands.h"
#include "cmd/query/status_report.h"
#include "cmd/telemetry/read_cluster.h"
#include "cmd/terminal.h"
#include "kube/client.h"
#include "kube/connection.h"
#include "kube/http_transport.h"

namespace nos::cmd {
namespace {

constexpr size_t kGroupsShown = 10;

struct StatusFlags {
  std::string kubeconfig, context, output = "text", catalogue;
};

Status Run(const StatusFlags& flags) {
  NOS_ASSIGN(kube::ConnectionConfig config, kube::LoadConnection(flags.kubeconfig, flags.context));
  NOS_ASSIGN(const gpu::Catalogue catalogue, ReadCatalogue(flags.catalogue));
  kube::HttpTransport transport(std::move(config));
  kube::Client client(transport);
  NOS_ASSIGN(auto nodes, ListNodes(client));
  NOS_ASSIGN(auto pods, ListPods(client));
  LiveCluster live = MakeLiveCluster(std::move(nodes), std::move(pods), catalogue);
  if (auto quotas = ListQuotas(client); quotas.ok()) {
    live.quotas = std::move(*quotas);
  } else {
    std::cerr << "note: ignoring quotas: " << quotas.status().message() << "\n";
  }
  const ClusterStatus status = StatusOf(live, TimeIn(live));
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
  AddClusterFlags(*command, flags->kubeconfig, flags->context);
  AddCatalogueFlag(*command, flags->catalogue);
  command->footer("Examples:\n  nos status\n  nos status -o json");
  RunWhenChosen(*command, chosen, "nos status", [flags] { return Run(*flags); });
}

}  // namespace nos::cmd
