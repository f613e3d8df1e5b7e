#include "cmd/query/plan_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/table.h"
#include "cluster/device_interface.h"
#include "cmd/cli/gpu_sharing_mode.h"
#include "cmd/cli/layout_text.h"
#include "planning/names.h"
#include "scheduling/reasons.h"
#include "scheduling/summary.h"

namespace nos::cmd {
namespace {

using planning::PlannedGpu;
using planning::PlannedInstance;

// Sharing mode of the GPU after the plan.
std::string_view SharingModeOf(const PlannedGpu& gpu) {
  std::vector<gpu::Placement> there;
  there.reserve(gpu.layout.size());
  for (const PlannedInstance& instance : gpu.layout) there.push_back(instance.placement);
  return gpu::SharingModeOf(*gpu.model, there);
}

Json GpuToJson(const PlannedGpu& gpu) {
  JsonArray layout;
  for (const PlannedInstance& instance : gpu.layout) {
    JsonObject entry{{"profile", gpu.model->profile(instance.placement.profile).name},
                     {"start", instance.placement.start},
                     {"state", planning::NameOf(instance.state)}};
    if (!instance.pod.empty()) entry["pod"] = instance.pod;
    layout.push_back(std::move(entry));
  }
  return JsonObject{{"index", gpu.index},
                    {"model", gpu.model->name()},
                    {"layout", std::move(layout)},
                    {"sharingMode", SharingModeOf(gpu)},
                    {"sharingModes", SharingModesJson(*gpu.model, gpu.alternative)},
                    {"way", SharingModeOf(gpu)},  // the old names
                    {"ways", SharingModesJson(*gpu.model, gpu.alternative)}};
}

Json NodeToJson(const planning::PlannedNode& node) {
  JsonArray gpus;
  for (const PlannedGpu& gpu : node.gpus) gpus.push_back(GpuToJson(gpu));
  return JsonObject{{"name", node.name}, {"gpus", std::move(gpus)}};
}

std::string DevicesText(const planning::PodOutcome& outcome) {
  std::string text;
  for (const planning::AssignedDevice& device : outcome.devices) {
    text += fmt::format("{}gpu {}: {}@{}", text.empty() ? "" : ", ", device.gpu, device.profile,
                        device.placement.start);
  }
  return text;
}

std::string ReasonsText(const planning::PodOutcome& outcome) {
  std::string text;
  for (const planning::Reason& reason : outcome.reasons) {
    text += (text.empty() ? "" : "; ") + reason.message;
  }
  return text;
}

scheduling::PodSummary SummaryOf(const planning::PodOutcome& outcome) {
  const std::string key = outcome.pod->Key(), demand = scheduling::DemandText(*outcome.pod);
  scheduling::PodFacts facts{key, "pending", demand, ReasonsText(outcome), outcome.remedy};
  if (outcome.placed) {
    facts.partitioning = true;
    const std::string devices = DevicesText(outcome);
    facts.progress =
        fmt::format("{} gets node {}{}", key, outcome.node, devices.empty() ? "" : ": " + devices);
  }
  return scheduling::Summarize(facts);
}

Json PodToJson(const planning::PodOutcome& outcome) {
  JsonArray devices, reasons;
  for (const planning::AssignedDevice& device : outcome.devices) {
    devices.push_back(JsonObject{
        {"gpu", device.gpu}, {"profile", device.profile}, {"start", device.placement.start}});
  }
  for (const planning::Reason& reason : outcome.reasons) {
    reasons.push_back(
        JsonObject{{"code", reason.code}, {"message", reason.message}, {"nodes", reason.nodes}});
  }
  return JsonObject{{"namespace", outcome.pod->meta.ns},
                    {"name", outcome.pod->meta.name},
                    {"outcome", planning::NameOfOutcome(outcome)},
                    {"node", outcome.node},
                    {"devices", std::move(devices)},
                    {"reasons", std::move(reasons)},
                    {"remedy", outcome.remedy},
                    {"remedyCode", outcome.remedy_code},
                    {"explanation", scheduling::ToJson(SummaryOf(outcome))}};
}

std::string GpuLayout(const PlannedGpu& gpu) {
  std::vector<LayoutPart> parts;
  for (const PlannedInstance& instance : gpu.layout) {
    const bool fresh = instance.state == PlannedInstance::State::kNew;
    const bool used = instance.state == PlannedInstance::State::kUsed;
    parts.push_back({instance.placement, fresh ? "+" : used ? "*" : ""});
  }
  return LayoutText(*gpu.model, std::move(parts));
}

std::string Summary(const planning::Plan& plan, Duration took) {
  std::string text = fmt::format(
      "{} of {} pending pods can run (no plan can place more than {})\n"
      "changes: {} instances created, {} destroyed, on {} GPUs of {} nodes\n"
      "planned in {:.1f} ms{}\n",
      plan.placed, plan.pods.size(), plan.upper_bound, plan.created, plan.destroyed,
      plan.gpus_touched, plan.nodes_touched, ToSeconds(took) * 1e3,
      plan.complete ? ""
                    : "; not proven to be the best plan: a longer search may find a better one");
  return text;
}

}  // namespace

Json PlanToJson(const planning::Plan& plan, planning::Objective objective, Duration took) {
  JsonArray nodes, pods;
  for (const planning::PlannedNode& node : plan.nodes) nodes.push_back(NodeToJson(node));
  for (const planning::PodOutcome& pod : plan.pods) pods.push_back(PodToJson(pod));
  return JsonObject{{"objective", planning::NameOf(objective)},
                    {"pending", plan.pods.size()},
                    {"placed", plan.placed},
                    {"upperBound", plan.upper_bound},
                    {"complete", plan.complete},
                    {"changes", JsonObject{{"created", plan.created},
                                           {"destroyed", plan.destroyed},
                                           {"gpusTouched", plan.gpus_touched},
                                           {"nodesTouched", plan.nodes_touched}}},
                    {"nodes", std::move(nodes)},
                    {"pods", std::move(pods)},
                    {"planMillis", ToSeconds(took) * 1e3}};
}

std::string PlanToText(const planning::Plan& plan, Duration took, size_t width) {
  std::string text = Summary(plan, took);
  TextTable gpus({"NODE", "GPU", "MODEL", "MODE", "LAYOUT (@ first slots: * used, + new)"});
  for (const planning::PlannedNode& node : plan.nodes) {
    for (const PlannedGpu& gpu : node.gpus) {
      gpus.AddRow({node.name, fmt::to_string(gpu.index),
                   gpu::ProductOf(*gpu.model, gpu.alternative), SharingModeText(SharingModeOf(gpu)),
                   GpuLayout(gpu)});
    }
  }
  if (!gpus.empty()) text += "\n" + gpus.ToString(width);
  TextTable placed({"POD", "NODE", "DEVICES"});
  TextTable waiting({"WAITING POD", "WHY"});
  std::string remedies;
  for (const planning::PodOutcome& pod : plan.pods) {
    if (pod.placed) {
      placed.AddRow({pod.pod->Key(), pod.node, DevicesText(pod)});
    } else {
      waiting.AddRow({pod.pod->Key(), ReasonsText(pod)});
      if (!pod.remedy.empty()) {
        remedies += fmt::format("  {}\n", Printable(pod.pod->Key() + ": " + pod.remedy));
      }
    }
  }
  if (!placed.empty()) text += "\n" + placed.ToString(width);
  if (!waiting.empty()) text += "\n" + waiting.ToString(width);
  if (!remedies.empty()) text += "\nwhat would help:\n" + remedies;
  return text;
}

std::string AuditHint(const planning::Plan& plan, const cluster::ClusterSnapshot& snapshot) {
  for (size_t i = 0; i < snapshot.size(); ++i) {
    const cluster::NodeInfo& node = snapshot.node(i);
    if (node.gpus.managed || node.node->meta.labels.contains(cluster::kInterfaceLabel)) return {};
  }
  size_t pending = 0;
  for (const planning::PodOutcome& pod : plan.pods) {
    if (pod.placed) continue;
    ++pending;
    const bool so = std::ranges::any_of(pod.reasons, [](const planning::Reason& reason) {
      return reason.code == scheduling::codes::kNotPartitioned;
    });
    if (!so) return {};
  }
  if (pending == 0) return {};
  return "nos partitions no node of this cluster yet; add --audit to see how few GPUs its pods "
         "would need if it did";
}

}  // namespace nos::cmd
