// nos get: what a live cluster's GPUs, GPU pods and plans look like, read through a kubeconfig.
#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>

#include "base/table.h"
#include "cluster/annotations.h"
#include "cluster/objects.h"
#include "cluster/snapshot.h"
#include "cmd/catalogue_flag.h"
#include "cmd/command.h"
#include "kube/client.h"
#include "kube/connection.h"
#include "kube/http_transport.h"

namespace nos::cmd {
namespace {

using cluster::ClusterSnapshot;
using cluster::NodeInfo;

struct GetFlags {
  std::string kubeconfig, context, output = "table", catalogue;
};

struct LiveCluster {
  std::unique_ptr<const gpu::Catalogue> catalogue;  // of the snapshot
  ClusterSnapshot snapshot;
  std::vector<std::shared_ptr<const cluster::Pod>> pods;
};

// Lists and decodes; an object that cannot be read is reported and left out.
template <typename T>
Result<std::vector<std::shared_ptr<const T>>> ListAll(kube::Client& client,
                                                      const kube::Resource& resource,
                                                      Status (*read)(JsonSource, T&)) {
  std::vector<std::shared_ptr<const T>> out;
  std::string warnings;
  const auto add = [&](JsonSource item) {
    auto object = std::make_shared<T>();
    if (const Status status = read(item, *object); status.ok()) {
      out.push_back(std::move(object));
    } else {
      warnings += Printable(
          fmt::format("warning: {} {}: {}", resource.kind, object->meta.name, status.message()));
      warnings += '\n';
    }
  };
  const auto restart = [&] {
    out.clear();
    warnings.clear();
  };
  NOS_RETURN_IF_ERROR(client.ListEach(resource, "", {}, restart, add).status());
  std::cerr << warnings;
  return out;
}

Result<LiveCluster> ReadCluster(const GetFlags& flags) {
  NOS_ASSIGN(kube::ConnectionConfig config, kube::LoadConnection(flags.kubeconfig, flags.context));
  kube::HttpTransport transport(std::move(config));
  kube::Client client(transport);
  NOS_ASSIGN(const auto nodes, ListAll<cluster::Node>(client, kube::kNodes, &cluster::ReadNode));
  LiveCluster live;
  NOS_ASSIGN(gpu::Catalogue catalogue, ReadCatalogue(flags.catalogue));
  live.catalogue = std::make_unique<const gpu::Catalogue>(std::move(catalogue));
  NOS_ASSIGN(live.pods, ListAll<cluster::Pod>(client, kube::kPods, &cluster::ReadPod));
  live.snapshot = ClusterSnapshot::Build(nodes, live.pods, *live.catalogue);
  return live;
}

struct Printout {
  TextTable table;
  JsonArray json;
};

std::string LayoutText(const cluster::Gpu& gpu) {
  std::string text;
  for (const cluster::Instance& instance : gpu.instances) {
    text += fmt::format("{}{}{}", text.empty() ? "" : " ", instance.used ? "*" : "",
                        gpu.model->PlacementName(instance.placement));
  }
  return text.empty() ? "-" : text;
}

Json GpuJson(const NodeInfo& node, const cluster::Gpu& gpu) {
  JsonArray layout;
  for (const cluster::Instance& instance : gpu.instances) {
    JsonObject entry{{"profile", gpu.model->profile(instance.placement.profile).name},
                     {"start", instance.placement.start},
                     {"state", instance.used ? "used" : "free"}};
    if (!instance.pod.empty()) entry["pod"] = instance.pod;
    layout.push_back(std::move(entry));
  }
  return JsonObject{{"node", node.node->meta.name},
                    {"index", gpu.index},
                    {"model", gpu.model->name()},
                    {"managed", node.gpus.managed},
                    {"layout", std::move(layout)}};
}

Printout Gpus(const LiveCluster& live) {
  Printout out{TextTable({"NODE", "GPU", "MODEL", "MANAGED", "LAYOUT (* used, @ first slot)"}), {}};
  for (size_t i = 0; i < live.snapshot.size(); ++i) {
    const NodeInfo& node = live.snapshot.node(i);
    for (const std::string& problem : node.gpus.problems) {
      std::cerr << "warning: node " << Printable(node.node->meta.name + ": " + problem) << "\n";
    }
    for (const cluster::Gpu& gpu : node.gpus.gpus) {
      out.table.AddRow({node.node->meta.name, fmt::to_string(gpu.index), gpu.model->name(),
                        node.gpus.managed ? "yes" : "no", LayoutText(gpu)});
      out.json.push_back(GpuJson(node, gpu));
    }
  }
  return out;
}

bool IsGpuResource(const std::string& name) { return name.starts_with("nvidia.com/"); }

std::string AsksText(const cluster::ResourceList& requests) {
  std::string text;
  for (const auto& [name, quantity] : requests) {
    if (!IsGpuResource(name)) continue;
    text += fmt::format("{}{}x{}", text.empty() ? "" : " ", quantity.Value(),
                        std::string_view(name).substr(std::string_view("nvidia.com/").size()));
  }
  return text;
}

std::string WhyText(const cluster::Pod& pod) {
  const cluster::Condition* scheduled = pod.FindCondition("PodScheduled");
  if (scheduled != nullptr && scheduled->status == "False") return scheduled->message;
  return pod.message;
}

Printout Pods(const LiveCluster& live) {
  Printout out{TextTable({"NAMESPACE", "NAME", "STATUS", "NODE", "ASKS", "AGE", "WHY"}), {}};
  const Time now = SystemClock().Now();
  for (const auto& pod : live.pods) {
    const cluster::ResourceList requests = cluster::PodRequests(*pod);
    const std::string asks = AsksText(requests);
    if (asks.empty()) continue;
    const std::string why = WhyText(*pod);
    out.table.AddRow({pod->meta.ns, pod->meta.name, pod->phase,
                      pod->node_name.empty() ? "-" : pod->node_name, asks,
                      FormatAge(now - pod->meta.created), why.empty() ? "-" : why});
    JsonObject wanted;
    for (const auto& [name, quantity] : requests) {
      if (IsGpuResource(name)) wanted[name] = quantity.Value();
    }
    out.json.push_back(JsonObject{{"namespace", pod->meta.ns},
                                  {"name", pod->meta.name},
                                  {"phase", pod->phase},
                                  {"node", pod->node_name},
                                  {"asks", std::move(wanted)},
                                  {"why", why}});
  }
  return out;
}

std::string Annotation(const cluster::Node& node, std::string_view key) {
  const auto found = node.meta.annotations.find(key);
  return found == node.meta.annotations.end() ? "" : found->second;
}

// What the plan asks of one GPU and whether the node has it.
void AddPlanRow(const NodeInfo& node, const cluster::TargetLayout& target, Printout& out) {
  const auto present =
      std::find_if(node.gpus.gpus.begin(), node.gpus.gpus.end(),
                   [&](const cluster::Gpu& gpu) { return gpu.index == target.index; });
  std::vector<gpu::Placement> have;
  if (present != node.gpus.gpus.end()) {
    for (const cluster::Instance& instance : present->instances) have.push_back(instance.placement);
  }
  std::vector<gpu::Placement> want = target.placements;
  std::sort(want.begin(), want.end());
  std::sort(have.begin(), have.end());
  std::string text;
  JsonArray layout;
  for (const gpu::Placement& placement : want) {
    text += (text.empty() ? "" : " ") + target.model->PlacementName(placement);
    layout.push_back(JsonObject{{"profile", target.model->profile(placement.profile).name},
                                {"start", placement.start}});
  }
  const std::string spec = Annotation(*node.node, cluster::kSpecPlan);
  const std::string status = Annotation(*node.node, cluster::kStatusPlan);
  const std::string_view state = want == have ? "applied" : spec == status ? "partly" : "waiting";
  out.table.AddRow({node.node->meta.name, fmt::to_string(target.index), spec, status,
                    std::string(state), text.empty() ? "-" : text});
  out.json.push_back(JsonObject{{"node", node.node->meta.name},
                                {"index", target.index},
                                {"plan", spec},
                                {"reportedPlan", status},
                                {"state", state},
                                {"layout", std::move(layout)}});
}

Printout Plans(const LiveCluster& live) {
  Printout out{TextTable({"NODE", "GPU", "PLAN", "REPORTED", "STATE", "WANTED LAYOUT"}), {}};
  for (size_t i = 0; i < live.snapshot.size(); ++i) {
    const NodeInfo& node = live.snapshot.node(i);
    for (const auto& target : cluster::ReadSpec(*node.node, node.gpus)) {
      AddPlanRow(node, target, out);
    }
  }
  return out;
}

void AddOne(CLI::App& get, Chosen& chosen, const std::shared_ptr<GetFlags>& flags,
            const std::string& name, const std::string& what, const std::string& none,
            Printout (*print)(const LiveCluster&)) {
  CLI::App* command = get.add_subcommand(name, what);
  command->add_option("-o,--output", flags->output, "table or json")
      ->check(CLI::IsMember({"table", "json"}))
      ->option_text("FORMAT");
  command->add_option("--kubeconfig", flags->kubeconfig, "Default: $KUBECONFIG or ~/.kube/config")
      ->option_text("FILE");
  command->add_option("--context", flags->context, "Default: the file's current context")
      ->option_text("NAME");
  AddCatalogueFlag(*command, flags->catalogue);
  command->footer("Example:\n  nos get " + name + " -o json");
  command->callback([&chosen, flags, name, none, print] {
    chosen.action = [flags, name, none, print] {
      const auto live = ReadCluster(*flags);
      if (!live.ok()) return Fail("nos get " + name, live.status());
      const Printout out = print(*live);
      if (flags->output == "json") {
        std::cout << WriteJsonPretty(out.json) << "\n";
      } else if (out.table.empty()) {
        std::cerr << none << "\n";
      } else {
        std::cout << out.table.ToString();
      }
      return 0;
    };
  });
}

}  // namespace

void AddGetCommand(CLI::App& root, Chosen& chosen) {
  CLI::App* get = root.add_subcommand("get", "Show a live cluster's GPUs, GPU pods or plans");
  get->require_subcommand(1);
  auto flags = std::make_shared<GetFlags>();
  AddOne(*get, chosen, flags, "gpus", "Every GPU and how it is cut",
         "no MIG GPU found; nodes opt in with the label nos.nebuly.com/gpu-partitioning=mig",
         &Gpus);
  AddOne(*get, chosen, flags, "pods", "Pods that ask for GPUs: where they run or why they wait",
         "no pod asks for a GPU", &Pods);
  AddOne(*get, chosen, flags, "plan", "The layouts asked for and how far they are applied",
         "no plan has been written yet", &Plans);
}

}  // namespace nos::cmd
