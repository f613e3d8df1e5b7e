// nos get: GPUs, GPU pods and plans of a live cluster, read through a kubeconfig; and past events,
// read from a telemetry server.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>

#include "base/table.h"
#include "cluster/node_template.h"
#include "cmd/catalogue_flag.h"
#include "cmd/command.h"
#include "cmd/commands.h"
#include "cmd/query/get_report.h"
#include "cmd/query/history.h"
#include "cmd/query/pool_report.h"
#include "cmd/query/quota_report.h"
#include "cmd/telemetry/read_cluster.h"
#include "cmd/terminal.h"
#include "kube/client.h"
#include "kube/connection.h"
#include "kube/http_transport.h"

namespace nos::cmd {
namespace {

struct GetFlags {
  std::string kubeconfig, context, output = "table", catalogue;
  int64_t gpu_memory_gb = quota::ChargeRules().gpu_memory_gb;
  std::vector<std::string> files;  // dumps with pools, in place of a cluster
};

using Report = Printout (*)(const LiveCluster&, Time);

// Inputs of a report.
struct Objects {
  std::unique_ptr<const gpu::Catalogue> catalogue;  // used by `live`
  LiveCluster live;
};

Result<Objects> ReadPoolsOfDump(const GetFlags& flags) {
  NOS_ASSIGN(gpu::Catalogue catalogue, ReadCatalogue(flags.catalogue));
  NOS_ASSIGN(ClusterObjects dump, ReadDump(flags.files));
  auto kept = std::make_unique<const gpu::Catalogue>(std::move(catalogue));
  auto pools = PoolsIn(dump);
  pools.insert(pools.end(), dump.wrong_pools.begin(), dump.wrong_pools.end());
  std::ranges::sort(pools, {}, [](const auto& pool) { return pool->meta.name; });
  LiveCluster live = MakeLiveCluster(std::move(dump.nodes), std::move(dump.pods), *kept);
  live.pools = std::move(pools);
  return Objects{std::move(kept), std::move(live)};
}

// Quotas and pools are read only for their own reports, so that other reports need no rights for
// them.
Result<Objects> ReadCluster(const GetFlags& flags, Report report) {
  NOS_ASSIGN(kube::ConnectionConfig config, kube::LoadConnection(flags.kubeconfig, flags.context));
  kube::HttpTransport transport(std::move(config));
  kube::Client client(transport);
  NOS_ASSIGN(auto nodes, ListNodes(client));
  NOS_ASSIGN(gpu::Catalogue catalogue, ReadCatalogue(flags.catalogue));
  NOS_ASSIGN(auto pods, ListPods(client));
  auto kept = std::make_unique<const gpu::Catalogue>(std::move(catalogue));
  std::vector<std::shared_ptr<const cluster::NodePool>> pools;
  if (report == &ReportPools) {
    NOS_ASSIGN(auto read, ListPools(client));
    pools = cluster::Described(std::move(read), nodes, pods);
  }
  LiveCluster live = MakeLiveCluster(std::move(nodes), std::move(pods), *kept);
  live.pools = std::move(pools);
  live.charges.gpu_memory_gb = flags.gpu_memory_gb;
  if (report == &ReportQuotas) {
    NOS_ASSIGN(live.quotas, ListQuotas(client));
  }
  return Objects{std::move(kept), std::move(live)};
}

CLI::App* AddOne(CLI::App& get, Chosen& chosen, const std::shared_ptr<GetFlags>& flags,
                 const std::string& name, const std::string& what, const std::string& none,
                 Report report) {
  CLI::App* command = get.add_subcommand(name, what);
  command->add_option("-o,--output", flags->output, "Output format: table or json")
      ->check(CLI::IsMember({"table", "json"}))
      ->option_text("FORMAT");
  AddClusterFlags(*command, flags->kubeconfig, flags->context);
  AddCatalogueFlag(*command, flags->catalogue);
  command->footer("Example:\n  nos get " + name + " -o json");
  command->callback([&chosen, flags, name, none, report] {
    chosen.action = [flags, name, none, report] {
      const auto objects =
          flags->files.empty() ? ReadCluster(*flags, report) : ReadPoolsOfDump(*flags);
      if (!objects.ok()) return Fail("nos get " + name, objects.status());
      const Printout out = report(objects->live, SystemClock().Now());
      for (const std::string& warning : out.warnings) {
        std::cerr << "warning: " << Printable(warning) << "\n";
      }
      if (flags->output == "json") {
        std::cout << WriteJsonPretty(out.json) << "\n";
      } else if (out.table.empty()) {
        std::cerr << none << "\n";
      } else {
        std::cout << out.table.ToString(TableWidth());
      }
      return 0;
    };
  });
  return command;
}

}  // namespace

void AddGetCommand(CLI::App& root, Chosen& chosen) {
  CLI::App* get = root.add_subcommand(
      "get", "Show GPUs, GPU pods, plans, quotas, pools or history of a cluster");
  get->require_subcommand(1);
  get->footer(
      "Examples:\n"
      "  nos get gpus\n"
      "  nos get pods -o json\n"
      "  nos get plan --kubeconfig /tmp/nos-sandbox-PORT.yaml");
  auto flags = std::make_shared<GetFlags>();
  AddOne(*get, chosen, flags, "gpus", "List GPUs and how they are partitioned",
         "no MIG GPU found; a node opts in with the label nos.nebuly.com/gpu-partitioning=mig",
         &ReportGpus);
  AddOne(*get, chosen, flags, "pods",
         "List pods that request GPUs, with their node or why they are pending",
         "no pod requests a GPU", &ReportPods);
  AddOne(*get, chosen, flags, "plan", "Show planned layouts and their progress",
         "no plan exists yet", &ReportPlans);
  AddOne(*get, chosen, flags, "quotas", "List elastic quotas with use, borrowing and lending",
         "no elastic quota found", &ReportQuotas)
      ->add_option("--gpu-memory-gb", flags->gpu_memory_gb,
                   "GB charged for a whole GPU whose node has no label nvidia.com/gpu.memory")
      ->check(CLI::Range(0, 1'000'000))
      ->option_text("GB (" + std::to_string(flags->gpu_memory_gb) + ")");
  AddOne(*get, chosen, flags, "pools", "List node pools with their nodes, limits, price and state",
         "no node pool found; docs/autoscaling.md describes how to create one", &ReportPools)
      ->add_option(
          "-f,--file", flags->files,
          "Dump to read in place of a cluster: YAML or JSON of nodes and node pools; - reads stdin")
      ->option_text("FILE");
  AddHistoryCommand(*get, chosen);
}

}  // namespace nos::cmd
