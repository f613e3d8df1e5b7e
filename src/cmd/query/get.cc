// nos get: GPUs, nodes, GPU pods, plans, quotas and pools of a live cluster, read through a
// kubeconfig, with kubectl's flags; and past events, read from a telemetry server.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <map>
#include <memory>

#include "base/text.h"
#include "cluster/node_template.h"
#include "cmd/catalogue_flag.h"
#include "cmd/command.h"
#include "cmd/commands.h"
#include "cmd/query/get_report.h"
#include "cmd/query/history.h"
#include "cmd/query/live_objects.h"
#include "cmd/query/pool_report.h"
#include "cmd/query/quota_report.h"
#include "cmd/telemetry/read_cluster.h"
#include "cmd/terminal.h"
#include "codec/yaml.h"
#include "kube/client.h"
#include "kube/connection.h"
#include "kube/http_transport.h"

namespace nos::cmd {
namespace {

struct GetFlags {
  std::string kubeconfig, context, output = "table", catalogue, ns, selector, sort_by;
  std::vector<std::string> names;
  bool watch = false, no_headers = false;
  int64_t gpu_memory_gb = quota::ChargeRules().gpu_memory_gb;
  std::vector<std::string> files;  // dumps with pools, in place of a cluster
};

using Report = Printout (*)(const LiveCluster&, Time);

struct Kind {
  std::string name;                  // as in "nos get pods"
  std::vector<std::string> aliases;  // as kubectl accepts them
  std::string about, none;
  Report report;
  bool namespaced = false;
  WantedKinds wanted{};
  // Key of the JSON by which tables are sorted as a reader counts, "node-2" before "node-10". "":
  // they have the API server's order, as output for programs always has.
  std::string key{};
};

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

Result<Objects> ReadCluster(const GetFlags& flags, const Kind& kind) {
  NOS_ASSIGN(kube::ConnectionConfig config, kube::LoadConnection(flags.kubeconfig, flags.context));
  kube::HttpTransport transport(std::move(config));
  kube::Client client(transport);
  NOS_ASSIGN(auto nodes, ListNodes(client));
  NOS_ASSIGN(gpu::Catalogue catalogue, ReadCatalogue(flags.catalogue));
  NOS_ASSIGN(auto pods, ListPods(client));
  auto kept = std::make_unique<const gpu::Catalogue>(std::move(catalogue));
  std::vector<std::shared_ptr<const cluster::NodePool>> pools;
  if (kind.wanted.pools) {
    NOS_ASSIGN(auto read, ListPools(client));
    pools = cluster::Described(std::move(read), nodes, pods);
  }
  LiveCluster live = MakeLiveCluster(std::move(nodes), std::move(pods), *kept);
  live.pools = std::move(pools);
  live.server_time = transport.ServerTime();
  if (kind.wanted.quotas) {
    NOS_ASSIGN(live.quotas, ListQuotas(client));
    NOS_ASSIGN(live.claims, ListClaims(client));
  }
  return Objects{std::move(kept), std::move(live)};
}

Result<Selection> SelectionOf(const GetFlags& flags) {
  Selection selection;
  selection.ns = flags.ns;
  selection.names.insert(flags.names.begin(), flags.names.end());
  NOS_ASSIGN(selection.labels, cluster::ParseLabelSelector(flags.selector));
  return selection;
}

// True if `printed`, as -o name prints it, is the object that the user calls `name`: "pod/a/x" is
// "x" and "a/x", "gpu/node-1/0" is "node-1" and "node-1/0".
bool IsNamed(std::string_view printed, std::string_view name) {
  printed.remove_prefix(printed.find('/') + 1);
  return printed == name || printed.ends_with("/" + std::string(name)) ||
         printed.starts_with(std::string(name) + "/");
}

// The report in the order and of the objects that the flags want. Error: kNotFound for a name that
// no object has.
Result<Printout> Make(const Kind& kind, LiveCluster& live, const GetFlags& flags,
                      const Selection& selection) {
  live.charges.gpu_memory_gb = flags.gpu_memory_gb;
  live.selection = selection;
  Printout out = kind.report(live, TimeIn(live));
  const bool table = flags.output == "table" || flags.output == "wide";
  const std::string& key = flags.sort_by.empty() && table ? kind.key : flags.sort_by;
  if (!key.empty()) NOS_RETURN_IF_ERROR(out.SortBy(key));
  for (const std::string& name : flags.names) {
    const bool found = std::ranges::any_of(
        out.objects(), [&](const PrintedObject& object) { return IsNamed(object.name, name); });
    if (!found) return NotFound(kind.name + ": '" + name + "' not found");
  }
  return out;
}

Width WidthOf(const GetFlags& flags) {
  return flags.output == "wide" ? Width::kWide : Width::kNarrow;
}

// One object in a format for programs. False for a table.
bool PrintForPrograms(const PrintedObject& object, const std::string& output) {
  if (output == "name") {
    std::cout << Printable(object.name) << "\n";
  } else if (output == "json") {
    std::cout << WriteJsonPretty(object.json) << "\n";
  } else if (output == "yaml") {
    std::cout << "---\n" << WriteYaml(object.json);
  } else {
    return false;
  }
  return true;
}

void Print(const Kind& kind, const Printout& out, const GetFlags& flags) {
  for (const std::string& warning : out.warnings) {
    std::cerr << "warning: " << Printable(warning) << "\n";
  }
  if (flags.output == "json") {
    std::cout << WriteJsonPretty(out.ToJson()) << "\n";
  } else if (flags.output == "yaml") {
    std::cout << WriteYaml(out.ToJson());
  } else if (flags.output == "name") {
    for (const PrintedObject& object : out.objects()) PrintForPrograms(object, flags.output);
  } else if (out.objects().empty()) {
    std::cerr << kind.none << "\n";
  } else {
    const std::string table = out.Table(WidthOf(flags)).ToString(TableWidth());
    std::cout << (flags.no_headers ? table.substr(table.find('\n') + 1) : table);
    if (!flags.no_headers && !out.total.empty()) std::cout << "\n" << Printable(out.total) << "\n";
  }
}

// Prints objects when they have changed, in the columns of all objects.
class ChangePrinter {
 public:
  explicit ChangePrinter(const GetFlags& flags) : flags_(flags) {}

  void Print(const Printout& out) {
    std::map<std::string, std::vector<std::vector<std::string>>> now;
    const std::string table = out.Table(WidthOf(flags_)).ToString(TableWidth());
    std::vector<std::string_view> lines = Split(table, '\n');
    size_t line = 1;
    for (const PrintedObject& object : out.objects()) {
      const auto before = shown_.find(object.name);
      const bool changed = before == shown_.end() || before->second != object.lines;
      if (changed && !PrintForPrograms(object, flags_.output)) {
        if (!std::exchange(header_printed_, true) && !flags_.no_headers)
          std::cout << lines[0] << "\n";
        for (size_t i = 0; i < object.lines.size(); ++i) std::cout << lines[line + i] << "\n";
      }
      line += object.lines.size();
      now[object.name] = object.lines;
    }
    shown_ = std::move(now);
    std::cout.flush();
  }

 private:
  const GetFlags& flags_;
  bool header_printed_ = false;
  std::map<std::string, std::vector<std::vector<std::string>>> shown_;  // lines by object
};

// Until Ctrl-C.
Status Watch(const Kind& kind, const GetFlags& flags, const Selection& selection) {
  NOS_ASSIGN(kube::ConnectionConfig config, kube::LoadConnection(flags.kubeconfig, flags.context));
  NOS_ASSIGN(const gpu::Catalogue catalogue, ReadCatalogue(flags.catalogue));
  kube::HttpTransport transport(std::move(config));
  kube::Client client(transport);
  const Interrupt interrupt("");
  Keys keys;
  LiveObjects objects(client, kind.wanted, [&keys] { keys.Wake(); });
  ChangePrinter printer(flags);
  std::string problem;
  for (bool first = true; !interrupt.Requested() && std::cout.good();) {
    if (objects.Pump(SystemClock().Now())) {
      LiveCluster live = objects.Collect(catalogue);
      live.server_time = transport.ServerTime();
      GetFlags named = flags;
      if (!first) named.names.clear();  // an object may go, and come back
      NOS_ASSIGN(const Printout out, Make(kind, live, named, selection));
      printer.Print(out);
      first = false;
    }
    const Status error = objects.Error();
    if (first) NOS_RETURN_IF_ERROR(error);
    if (!error.ok() && error.message() != problem) {
      std::cerr << "warning: " << Printable(error.message()) << "; trying again\n";
    }
    problem = error.ok() ? "" : error.message();
    keys.Wait(std::max(Duration::zero(), objects.NextDue() - SystemClock().Now()));
  }
  return Status::Ok();
}

Status Run(const Kind& kind, const GetFlags& flags) {
  NOS_ASSIGN(const Selection selection, SelectionOf(flags));
  if (flags.watch) {
    if (!flags.files.empty()) return Invalid("--watch follows a cluster; a file does not change");
    return Watch(kind, flags, selection);
  }
  NOS_ASSIGN(Objects objects,
             flags.files.empty() ? ReadCluster(flags, kind) : ReadPoolsOfDump(flags));
  NOS_ASSIGN(const Printout out, Make(kind, objects.live, flags, selection));
  Print(kind, out, flags);
  return Status::Ok();
}

CLI::App* AddKind(CLI::App& get, Chosen& chosen, const std::shared_ptr<GetFlags>& flags,
                  const Kind& kind) {
  CLI::App* command = get.add_subcommand(kind.name, kind.about);
  for (const std::string& alias : kind.aliases) command->alias(alias);
  const auto text = [&](const char* name, std::string& value, const char* about, const char* type) {
    return command->add_option(name, value, about)->option_text(type);
  };
  OfferNames(*command->add_option("name", flags->names, "Show only these"), kind.name, "NAME...");
  text("-o,--output", flags->output, "Output format: table, wide, json, yaml or name", "FORMAT")
      ->check(CLI::IsMember({"table", "wide", "json", "yaml", "name"}));
  CLI::Option* ns = text("-n,--namespace", flags->ns, "Show only this namespace", "NAME");
  CLI::Option* all = command->add_flag("-A,--all-namespaces")->excludes(ns);
  all->description("Show all namespaces, as without -n");
  if (!kind.namespaced) {  // accepted and without effect, as kubectl does
    ns->group("");
    all->group("");
  }
  text("-l,--selector", flags->selector,
       kind.namespaced || kind.wanted.pools ? "Show only objects with these labels"
                                            : "Show only nodes with these labels",
       "LABELS");
  command->add_flag("-w,--watch", flags->watch, "Go on, and print what changes, until Ctrl-C");
  text("--sort-by", flags->sort_by, "Sort by age or by a key of the JSON output", "KEY");
  command->add_flag("--no-headers", flags->no_headers, "Print neither header nor totals");
  AddClusterFlags(*command, flags->kubeconfig, flags->context);
  AddCatalogueFlag(*command, flags->catalogue);
  command->footer("Examples:\n  nos get " + kind.name + " -o wide --sort-by age\n  nos get " +
                  kind.name + " -o json");
  RunWhenChosen(*command, chosen, "nos get " + kind.name,
                [flags, kind] { return Run(kind, *flags); });
  return command;
}

}  // namespace

void AddGetCommand(CLI::App& root, Chosen& chosen) {
  CLI::App* get = root.add_subcommand(
      "get", "Show GPUs, nodes, GPU pods, plans, quotas, pools or history of a cluster");
  get->require_subcommand(1);
  get->footer(
      "Examples:\n"
      "  nos get gpus\n"
      "  nos get pods -n team-a -w\n"
      "  nos get nodes -l nvidia.com/gpu.product=NVIDIA-H100-80GB-HBM3 -o wide\n"
      "  nos get plan --kubeconfig /tmp/nos-sandbox-PORT.yaml");
  auto flags = std::make_shared<GetFlags>();
  const std::string no_gpu =
      "no GPU found; a node opts in with the label nos.nebuly.com/gpu-partitioning=mig";
  AddKind(*get, chosen, flags,
          {"gpus",
           {"gpu"},
           "List GPUs and how they are partitioned",
           no_gpu,
           &ReportGpus,
           false,
           {},
           "node"});
  AddKind(*get, chosen, flags,
          {"nodes",
           {"node", "no"},
           "List nodes with GPUs and how much of them is used",
           no_gpu,
           &ReportNodes,
           false,
           {},
           "name"});
  AddKind(*get, chosen, flags,
          {"pods",
           {"pod", "po"},
           "List pods that request GPUs, with their node or why they wait",
           "no pod requests a GPU",
           &ReportPods,
           true});
  AddKind(*get, chosen, flags,
          {"plan",
           {"plans"},
           "Show planned layouts and their progress",
           "no plan exists yet",
           &ReportPlans,
           false,
           {},
           "node"});
  AddKind(*get, chosen, flags,
          {"quotas",
           {"quota", "elasticquotas", "elasticquota", "eq"},
           "List elastic quotas with use, borrowing and lending",
           "no elastic quota found",
           &ReportQuotas,
           true,
           {.quotas = true}})
      ->add_option("--gpu-memory-gb", flags->gpu_memory_gb,
                   "GB charged for a whole GPU whose node has no label nvidia.com/gpu.memory")
      ->check(CLI::Range(0, 1'000'000))
      ->option_text("GB (" + std::to_string(flags->gpu_memory_gb) + ")");
  AddKind(*get, chosen, flags,
          {"pools",
           {"pool", "nodepools", "nodepool"},
           "List node pools with their nodes, limits, price and state",
           "no node pool found; docs/autoscaling.md describes how to create one",
           &ReportPools,
           false,
           {.pools = true}})
      ->add_option(
          "-f,--file", flags->files,
          "Dump to read in place of a cluster: YAML or JSON of nodes and node pools; - reads stdin")
      ->option_text("FILE");
  AddHistoryCommand(*get, chosen);
}

}  // namespace nos::cmd
