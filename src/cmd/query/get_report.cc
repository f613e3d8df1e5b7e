#include "cmd/query/get_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "cluster/annotations.h"
#include "cmd/cli/gpu_sharing_mode.h"
#include "cmd/cli/layout_text.h"
#include "controllers/verdicts.h"

namespace nos::cmd {
namespace {

using cluster::NodeInfo;

std::string GpuLayout(const cluster::Gpu& gpu) {
  std::vector<LayoutPart> parts;
  parts.reserve(gpu.instances.size());
  for (const cluster::Instance& instance : gpu.instances) {
    parts.push_back({instance.placement, instance.used ? "*" : ""});
  }
  return LayoutText(*gpu.model, std::move(parts));
}

std::string_view SharingModeOf(const cluster::Gpu& gpu) {
  std::vector<gpu::Placement> there;
  there.reserve(gpu.instances.size());
  for (const cluster::Instance& instance : gpu.instances) there.push_back(instance.placement);
  return gpu::SharingModeOf(*gpu.model, there);
}

// The GPU model named by the node's product label; null if the catalogue does not have it.
const gpu::Model* ProductOf(const cluster::Node& node, const gpu::Catalogue* catalogue) {
  const auto label = node.meta.labels.find(cluster::kProductLabel);
  if (catalogue == nullptr || label == node.meta.labels.end()) return nullptr;
  return catalogue->FindByProduct(label->second);
}

Json GpuJson(const NodeInfo& node, const cluster::Gpu& gpu, bool managed) {
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
                    {"managed", managed},
                    {"layout", std::move(layout)},
                    {"sharingMode", SharingModeOf(gpu)},
                    {"sharingModes", SharingModesJson(*gpu.model, gpu.other)},
                    {"way", SharingModeOf(gpu)},  // the old names
                    {"ways", SharingModesJson(*gpu.model, gpu.other)}};
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

// The partitioner's message with its remedy; else the scheduler's; else the pod status.
struct Why {
  std::string reason, message;
};
Why WhyOf(const cluster::Pod& pod) {
  if (!pod.node_name.empty()) return {"", pod.message};
  for (const std::string_view type :
       {controllers::kPartitionedCondition, std::string_view("PodScheduled")}) {
    const cluster::Condition* condition = pod.FindCondition(type);
    if (condition == nullptr || condition->status != "False") continue;
    return {condition->reason, condition->message};
  }
  return {"", pod.message};
}

std::string Annotation(const cluster::Node& node, std::string_view key) {
  const auto found = node.meta.annotations.find(key);
  return found == node.meta.annotations.end() ? "" : found->second;
}

// Planned layout of one GPU, and whether the node has it.
void AddPlanRow(const NodeInfo& node, const cluster::TargetLayout& target, Printout& out) {
  const auto present =
      std::find_if(node.gpus.gpus.begin(), node.gpus.gpus.end(),
                   [&](const cluster::Gpu& gpu) { return gpu.index == target.index; });
  std::vector<gpu::Placement> have;
  if (present != node.gpus.gpus.end() && present->model == target.model) {
    for (const cluster::Instance& instance : present->instances) have.push_back(instance.placement);
  }
  std::vector<gpu::Placement> want = target.placements;
  std::sort(want.begin(), want.end());
  std::sort(have.begin(), have.end());
  std::vector<LayoutPart> parts;
  JsonArray layout;
  for (const gpu::Placement& placement : want) {
    parts.push_back({placement});
    layout.push_back(JsonObject{{"profile", target.model->profile(placement.profile).name},
                                {"start", placement.start}});
  }
  const std::string spec = Annotation(*node.node, cluster::kSpecPlan);
  const std::string status = Annotation(*node.node, cluster::kStatusPlan);
  const bool is_so = present == node.gpus.gpus.end() || present->model == target.model;
  const std::string_view state = is_so && want == have ? "applied"
                                 : spec == status      ? "partly"
                                                       : "waiting";
  const std::string_view mode = gpu::SharingModeOf(*target.model, want);
  out.table.AddRow({node.node->meta.name, fmt::to_string(target.index), spec, status,
                    std::string(state), SharingModeText(mode),
                    LayoutText(*target.model, std::move(parts))});
  out.json.push_back(JsonObject{{"node", node.node->meta.name},
                                {"index", target.index},
                                {"plan", spec},
                                {"reportedPlan", status},
                                {"state", state},
                                {"layout", std::move(layout)},
                                {"sharingMode", mode},
                                {"way", mode}});  // the old name
}

}  // namespace

LiveCluster MakeLiveCluster(std::vector<std::shared_ptr<const cluster::Node>> nodes,
                            std::vector<std::shared_ptr<const cluster::Pod>> pods,
                            const gpu::Catalogue& catalogue) {
  LiveCluster live;
  for (auto& node : nodes) {
    if (cluster::ReadNodeGpus(*node, catalogue).managed) continue;
    live.unmanaged.insert(node->meta.name);
    auto as_if = std::make_shared<cluster::Node>(*node);
    as_if->meta.labels[std::string(cluster::kPartitioningLabel)] = "mig";
    node = std::move(as_if);
  }
  live.snapshot = cluster::ClusterSnapshot::Build(nodes, pods, catalogue);
  live.pods = std::move(pods);
  live.catalogue = &catalogue;
  return live;
}

Printout ReportGpus(const LiveCluster& live, Time) {
  Printout out{
      TextTable({"NODE", "GPU", "MODEL", "MODE", "MANAGED", "LAYOUT (@ first slots: * used)"})};
  for (size_t i = 0; i < live.snapshot.size(); ++i) {
    const NodeInfo& node = live.snapshot.node(i);
    const std::string& name = node.node->meta.name;
    const bool managed = !live.unmanaged.contains(name);
    const gpu::Model* product = ProductOf(*node.node, live.catalogue);
    for (const std::string& problem : node.gpus.problems) {
      if (managed) out.warnings.push_back(fmt::format("node {}: {}", name, problem));
    }
    for (const cluster::Gpu& gpu : node.gpus.gpus) {
      if (!managed && !gpu.reported && gpu.instances.empty()) continue;  // it was never partitioned
      out.table.AddRow(
          {name, fmt::to_string(gpu.index), gpu::ProductOf(*gpu.model, gpu.other, product),
           SharingModeText(SharingModeOf(gpu)), managed ? "yes" : "no", GpuLayout(gpu)});
      out.json.push_back(GpuJson(node, gpu, managed));
    }
  }
  return out;
}

Printout ReportPods(const LiveCluster& live, Time now) {
  Printout out{TextTable({"NAMESPACE", "NAME", "STATUS", "NODE", "ASKS", "AGE", "WHY"})};
  for (const auto& pod : live.pods) {
    const cluster::ResourceList requests = cluster::PodRequests(*pod);
    const std::string asks = AsksText(requests);
    if (asks.empty()) continue;
    const Why why = WhyOf(*pod);
    out.table.AddRow({pod->meta.ns, pod->meta.name, pod->phase,
                      pod->node_name.empty() ? "-" : pod->node_name, asks,
                      FormatAge(now - pod->meta.created), why.message.empty() ? "-" : why.message});
    JsonObject wanted;
    for (const auto& [name, quantity] : requests) {
      if (IsGpuResource(name)) wanted[name] = quantity.Value();
    }
    out.json.push_back(JsonObject{{"namespace", pod->meta.ns},
                                  {"name", pod->meta.name},
                                  {"phase", pod->phase},
                                  {"node", pod->node_name},
                                  {"asks", std::move(wanted)},
                                  {"reason", why.reason},
                                  {"why", why.message}});
  }
  return out;
}

Printout ReportPlans(const LiveCluster& live, Time) {
  Printout out{TextTable({"NODE", "GPU", "PLAN", "REPORTED", "STATE", "MODE", "WANTED LAYOUT"})};
  for (size_t i = 0; i < live.snapshot.size(); ++i) {
    const NodeInfo& node = live.snapshot.node(i);
    if (live.unmanaged.contains(node.node->meta.name)) continue;  // no agent acts on it
    for (const auto& target : cluster::ReadSpec(*node.node, node.gpus)) {
      AddPlanRow(node, target, out);
    }
  }
  return out;
}

}  // namespace nos::cmd
