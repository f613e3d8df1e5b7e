#include "cmd/query/get_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "cluster/annotations.h"
#include "cmd/cli/gpu_sharing_mode.h"
#include "cmd/cli/layout_text.h"
#include "controllers/pod_facts.h"
#include "scheduling/summary.h"

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

std::vector<std::string> TextsOf(const std::vector<std::string_view>& views) {
  return {views.begin(), views.end()};
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
                    {"sharingModes", SharingModesJson(*gpu.model, gpu.alternative)},
                    {"way", SharingModeOf(gpu)},  // the old names
                    {"ways", SharingModesJson(*gpu.model, gpu.alternative)}};
}

std::string Counted(size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
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
  out.Add({fmt::format("plan/{}/{}", node.node->meta.name, target.index),
           {{node.node->meta.name, fmt::to_string(target.index), spec, status, std::string(state),
             SharingModeText(mode), LayoutText(*target.model, std::move(parts))}},
           JsonObject{{"node", node.node->meta.name},
                      {"index", target.index},
                      {"plan", spec},
                      {"reportedPlan", status},
                      {"state", state},
                      {"layout", std::move(layout)},
                      {"sharingMode", mode},
                      {"way", mode}}});  // the old name
}

}  // namespace

std::string GpuRequestsText(const cluster::Pod& pod) { return AsksText(cluster::PodRequests(pod)); }

void GpuSums::Add(const cluster::Gpu& gpu) {
  ++gpus;
  const std::optional<int> slots = UsedSlots(gpu);
  if (!slots || gpu.model->slots() == 0) {
    known = false;
    return;
  }
  if (*slots > 0) ++with_pods;
  used += static_cast<double>(*slots) / gpu.model->slots();
}

std::string GpuSums::UsedText() const {
  return known && gpus > 0 ? fmt::format("{:.0f} %", used * 100 / static_cast<double>(gpus)) : "-";
}

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

bool Selection::Takes(const cluster::ObjectMeta& meta) const {
  if (!ns.empty() && !meta.ns.empty() && meta.ns != ns) return false;
  if (!names.empty() && !names.contains(meta.name) && !names.contains(meta.ns + "/" + meta.name)) {
    return false;
  }
  return cluster::Matches(labels, meta.labels);
}

bool Selection::TakesGpu(const cluster::ObjectMeta& node, int index) const {
  const bool named = names.empty() || names.contains(node.name) ||
                     names.contains(fmt::format("{}/{}", node.name, index));
  return named && cluster::Matches(labels, node.labels);
}

Time TimeIn(const LiveCluster& live) {
  Time now = live.server_time.value_or(SystemClock().Now());
  for (const auto& pod : live.pods) {
    now = std::max(now, pod->meta.created);
    for (const cluster::Condition& condition : pod->conditions) {
      now = std::max(now, condition.last_transition);
    }
  }
  return now;
}

std::optional<Time> CreatedOf(const cluster::ObjectMeta& meta) {
  return meta.created == Time() ? std::nullopt : std::optional(meta.created);
}

std::optional<int> UsedSlots(const cluster::Gpu& gpu) {
  const std::optional<gpu::Occupancy> used = gpu.Used();
  return used ? std::optional(used->taken_slots()) : std::nullopt;
}

std::vector<ListedGpu> ListedGpus(const LiveCluster& live) {
  std::vector<ListedGpu> listed;
  for (size_t i = 0; i < live.snapshot.size(); ++i) {
    const NodeInfo& node = live.snapshot.node(i);
    const bool managed = !live.unmanaged.contains(node.node->meta.name);
    for (const cluster::Gpu& gpu : node.gpus.gpus) {
      if (!managed && !gpu.reported && gpu.instances.empty()) continue;  // it was never partitioned
      listed.push_back({i, &gpu, managed});
    }
  }
  return listed;
}
Printout ReportGpus(const LiveCluster& live, Time) {
  Printout out({{"NODE"},
                {"GPU"},
                {"MODEL"},
                {"MODE"},
                {"USED"},
                {"LAYOUT (@ first slots: * used)"},
                {"MANAGED", Width::kWide},
                {"MODES", Width::kWide}});
  for (size_t i = 0; i < live.snapshot.size(); ++i) {
    const NodeInfo& node = live.snapshot.node(i);
    if (live.unmanaged.contains(node.node->meta.name)) continue;
    for (const std::string& problem : node.gpus.problems) {
      out.warnings.push_back(fmt::format("node {}: {}", node.node->meta.name, problem));
    }
  }
  GpuSums sums;
  std::set<size_t> nodes;
  for (const ListedGpu& listed : ListedGpus(live)) {
    const NodeInfo& node = live.snapshot.node(listed.node);
    const cluster::Gpu& gpu = *listed.gpu;
    const std::string& name = node.node->meta.name;
    if (!live.selection.TakesGpu(node.node->meta, gpu.index)) continue;
    const std::optional<int> used = UsedSlots(gpu);
    sums.Add(gpu);
    nodes.insert(listed.node);
    out.Add({fmt::format("gpu/{}/{}", name, gpu.index),
             {{name, fmt::to_string(gpu.index),
               gpu::ProductOf(*gpu.model, gpu.alternative, ProductOf(*node.node, live.catalogue)),
               SharingModeText(SharingModeOf(gpu)),
               used ? fmt::format("{}/{}", *used, gpu.model->slots()) : "-", GpuLayout(gpu),
               listed.managed ? "yes" : "no",
               Join(TextsOf(gpu::SharingModesOf(*gpu.model, gpu.alternative)), ", ")}},
             GpuJson(node, gpu, listed.managed)});
  }
  out.total =
      fmt::format("{} on {}: {} without pods, {} of the slots used", Counted(sums.gpus, "GPU"),
                  Counted(nodes.size(), "node"), sums.gpus - sums.with_pods, sums.UsedText());
  return out;
}

Printout ReportNodes(const LiveCluster& live, Time now) {
  Printout out({{"NAME"},
                {"GPUS"},
                {"MODEL"},
                {"MODES"},
                {"MANAGED"},
                {"WITHOUT PODS"},
                {"SLOTS USED"},
                {"GPU PODS"},
                {"AGE"},
                {"PARTITIONING", Width::kWide}});
  std::map<size_t, GpuSums> sums;
  std::map<size_t, std::set<std::string>> models, modes;
  std::map<size_t, bool> managed;
  GpuSums all;
  for (const ListedGpu& listed : ListedGpus(live)) {
    const NodeInfo& node = live.snapshot.node(listed.node);
    if (!live.selection.Takes(node.node->meta)) continue;
    sums[listed.node].Add(*listed.gpu);
    all.Add(*listed.gpu);
    managed[listed.node] = listed.managed;
    models[listed.node].insert(gpu::ProductOf(*listed.gpu->model, listed.gpu->alternative,
                                              ProductOf(*node.node, live.catalogue)));
    if (const std::string_view mode = SharingModeOf(*listed.gpu); !mode.empty()) {
      modes[listed.node].emplace(mode);
    }
  }
  std::map<std::string_view, size_t> pods;
  for (const auto& pod : live.pods) {
    if (!pod->node_name.empty() && !pod->Finished() &&
        !AsksText(cluster::PodRequests(*pod)).empty()) {
      ++pods[pod->node_name];
    }
  }
  for (const auto& [index, sum] : sums) {
    const cluster::Node& node = *live.snapshot.node(index).node;
    const std::string& name = node.meta.name;
    const auto joined = [](const std::set<std::string>& texts) {
      return Join(std::vector<std::string>(texts.begin(), texts.end()), ", ");
    };
    const std::string mode_text = modes[index].empty() ? "free" : joined(modes[index]);
    const auto label = node.meta.labels.find(cluster::kPartitioningLabel);
    const std::string partitioning =
        managed[index] && label != node.meta.labels.end() ? label->second : "-";
    const size_t without = sum.gpus - sum.with_pods;
    const std::optional<Time> created = CreatedOf(node.meta);
    out.Add(
        {"node/" + name,
         {{name, fmt::to_string(sum.gpus), joined(models[index]), mode_text,
           managed[index] ? "yes" : "no", fmt::to_string(without), sum.UsedText(),
           fmt::to_string(pods[name]), created ? FormatAge(now - *created) : "-", partitioning}},
         JsonObject{{"name", name},
                    {"gpus", sum.gpus},
                    {"model", joined(models[index])},
                    {"modes", JsonArray(modes[index].begin(), modes[index].end())},
                    {"managed", managed[index]},
                    {"gpusWithoutPods", without},
                    {"used", sum.known ? Json(sum.used / static_cast<double>(sum.gpus)) : Json()},
                    {"gpuPods", pods[name]}},
         CreatedOf(node.meta)});
  }
  out.total = fmt::format("{} with {}: {} without pods, {} of the slots used",
                          Counted(sums.size(), "node"), Counted(all.gpus, "GPU"),
                          Counted(all.gpus - all.with_pods, "GPU"), all.UsedText());
  return out;
}

Printout ReportPods(const LiveCluster& live, Time now) {
  Printout out({{"NAMESPACE"},
                {"NAME"},
                {"STATUS"},
                {"NODE"},
                {"ASKS"},
                {"AGE"},
                {"SCHEDULER", Width::kWide},
                {"PRIORITY", Width::kWide},
                {"WHY"}});
  std::map<std::string, size_t> by_status;
  for (const auto& pod : live.pods) {
    const cluster::ResourceList requests = cluster::PodRequests(*pod);
    const std::string asks = AsksText(requests);
    if (asks.empty() || !live.selection.Takes(pod->meta)) continue;
    const controllers::Why why = controllers::WhyOf(*pod);
    ++by_status[pod->phase];
    JsonObject wanted;
    for (const auto& [name, quantity] : requests) {
      if (IsGpuResource(name)) wanted[name] = quantity.Value();
    }
    JsonObject json{{"namespace", pod->meta.ns}, {"name", pod->meta.name},
                    {"phase", pod->phase},       {"node", pod->node_name},
                    {"asks", std::move(wanted)}, {"reason", why.reason},
                    {"why", why.message}};
    json["explanation"] =
        scheduling::ToJson(scheduling::Summarize(controllers::FactsOf(*pod, live.pods)));
    out.Add(
        {"pod/" + pod->Key(),
         {{pod->meta.ns, pod->meta.name, pod->phase, pod->node_name.empty() ? "-" : pod->node_name,
           asks, FormatAge(now - pod->meta.created), pod->scheduler_name,
           fmt::to_string(pod->priority), why.message.empty() ? "-" : why.message}},
         std::move(json),
         CreatedOf(pod->meta)});
  }
  std::vector<std::string> counts;
  for (const auto& [status, count] : by_status) {
    counts.push_back(fmt::format("{} {}", count, status));
  }
  out.total = fmt::format("{}: {}", Counted(out.objects().size(), "pod"), Join(counts, ", "));
  return out;
}

Printout ReportPlans(const LiveCluster& live, Time) {
  Printout out({{"NODE"}, {"GPU"}, {"PLAN"}, {"REPORTED"}, {"STATE"}, {"MODE"}, {"WANTED LAYOUT"}});
  for (size_t i = 0; i < live.snapshot.size(); ++i) {
    const NodeInfo& node = live.snapshot.node(i);
    if (live.unmanaged.contains(node.node->meta.name)) continue;  // no agent acts on it
    for (const auto& target : cluster::ReadSpec(*node.node, node.gpus)) {
      if (live.selection.TakesGpu(node.node->meta, target.index)) AddPlanRow(node, target, out);
    }
  }
  std::map<std::string, size_t> by_state;
  for (const PrintedObject& plan : out.objects())
    ++by_state[std::string(FindString(plan.json, "state"))];
  std::vector<std::string> counts;
  for (const auto& [state, count] : by_state) counts.push_back(fmt::format("{} {}", count, state));
  out.total = fmt::format("{}: {}", Counted(out.objects().size(), "GPU"), Join(counts, ", "));
  return out;
}

}  // namespace nos::cmd
