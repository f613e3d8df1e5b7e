#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "agent/conditions.h"
#include "cluster/annotations.h"
#include "cmd/clustercheck/topics.h"

namespace nos::cmd {
namespace {

std::vector<const NodeFacts*> Labelled(const Snapshot& snapshot) {
  std::vector<const NodeFacts*> nodes;
  for (const NodeFacts& node : snapshot.nodes.items) {
    if (node.Labelled()) nodes.push_back(&node);
  }
  return nodes;
}

template <typename Predicate>
std::vector<std::string> NamesOf(const std::vector<const NodeFacts*>& nodes, Predicate chosen) {
  std::vector<std::string> names;
  for (const NodeFacts* node : nodes) {
    if (chosen(*node)) names.push_back(node->name);
  }
  return names;
}

void CheckLabels(const Snapshot& snapshot, const std::vector<const NodeFacts*>& labelled,
                 Findings& findings) {
  std::vector<std::string> unknown, old, without_gpu;
  for (const NodeFacts& node : snapshot.nodes.items) {
    const std::string mode = node.Label(cluster::kPartitioningLabel);
    if (!mode.empty() && mode != "none" && !node.Labelled()) {
      unknown.push_back(fmt::format("{}={}", node.name, mode));
    }
    const bool has_old = std::ranges::any_of(node.labels, [](const auto& label) {
      return label.first.starts_with(cluster::kOldPrefix);
    });
    if (has_old && mode.empty()) old.push_back(node.name);
    if (node.Labelled() && !node.HasGpu()) without_gpu.push_back(node.name);
  }
  if (labelled.empty()) {
    findings.Warn("NodesLabelled",
                  fmt::format("no node of {} is labelled, so nos partitions nothing",
                              snapshot.nodes.items.size()),
                  "kubectl label node NODE nos.nebuly.com/gpu-partitioning=mig");
  } else {
    std::map<std::string, size_t> modes;
    for (const NodeFacts* node : labelled) ++modes[node->Mode()];
    std::string text;
    for (const auto& [mode, count] : modes) {
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, mode);
    }
    findings.Ok("NodesLabelled",
                fmt::format("{} labelled: {}", Count(labelled.size(), "node"), text));
  }
  findings.FailIfAny("PartitioningLabel", unknown,
                     "the label nos.nebuly.com/gpu-partitioning has a value that nos does not know",
                     "set it to mig, mps, hybrid or none", "labels have known values");
  findings.WarnIfAny("OldLabel", old, "labels of the older prefix n8s.nebuly.ai are used",
                     "they still work; set nos.nebuly.com/gpu-partitioning instead",
                     "no node has labels of the older prefix only");
  findings.WarnIfAny(
      "LabelledWithoutGpu", without_gpu,
      "labelled nodes show no GPU: neither labels nvidia.com/gpu.product nor devices",
      "check the driver there, and GPU feature discovery; or set the labels by hand",
      "labelled nodes have GPUs");
}

// Pods of agents by node.
std::map<std::string, bool> AgentsByNode(const Snapshot& snapshot) {
  std::set<std::string> agents;
  for (const WorkloadFacts* one : snapshot.Running("agent")) agents.insert(one->Key());
  std::map<std::string, bool> ready;
  for (const PodFacts& pod : snapshot.pods.items) {
    if (!pod.owner.starts_with("DaemonSet/")) continue;
    if (!agents.contains(pod.ns + pod.owner.substr(pod.owner.find('/')))) continue;
    ready[pod.node] = ready[pod.node] || pod.ready;
  }
  return ready;
}

void CheckAgents(const Snapshot& snapshot, const std::vector<const NodeFacts*>& labelled,
                 Findings& findings) {
  if (!snapshot.pods.status.ok()) {
    return findings.Unread("AgentOnNode", "pods", snapshot.pods.status);
  }
  const std::map<std::string, bool> agents = AgentsByNode(snapshot);
  const auto absent =
      NamesOf(labelled, [&](const NodeFacts& node) { return !agents.contains(node.name); });
  findings.FailIfAny(
      "AgentOnNode", absent,
      fmt::format("{} without an agent", Count(absent.size(), "labelled node")),
      "check taints of the node against migAgent.tolerations, and the label's mode: mps and hybrid "
      "need migAgent.mps.enabled",
      "every labelled node has an agent");
  const auto unready = NamesOf(labelled, [&](const NodeFacts& node) {
    const auto found = agents.find(node.name);
    return found != agents.end() && !found->second;
  });
  findings.FailIfAny("AgentOnNodeReady", unready,
                     fmt::format("{} not ready", Count(unready.size(), "agent")),
                     "kubectl -n NAMESPACE logs of the agent's pod has the reason; "
                     "docs/troubleshooting.md, Nodes and agents",
                     "agents on labelled nodes are ready");
}

bool Reports(const NodeFacts& node) {
  return std::ranges::any_of(node.annotations, [](const auto& annotation) {
    return annotation.first.find("/status-") != std::string::npos;
  });
}

std::string Annotation(const NodeFacts& node, std::string_view key) {
  const auto found = node.annotations.find(key);
  return found == node.annotations.end() ? "" : found->second;
}

void CheckReports(const std::vector<const NodeFacts*>& labelled, Findings& findings) {
  const auto silent = NamesOf(labelled, [](const NodeFacts& node) { return !Reports(node); });
  findings.FailIfAny(
      "AgentReports", silent,
      fmt::format("{} without a report of GPUs", Count(silent.size(), "labelled node")),
      "the agent writes annotations status-gpu-*: read its log",
      "agents report GPUs of every labelled node");
  const auto behind = NamesOf(labelled, [](const NodeFacts& node) {
    const std::string spec = Annotation(node, cluster::kSpecPlan);
    return !spec.empty() && spec != Annotation(node, cluster::kStatusPlan);
  });
  findings.WarnIfAny(
      "PlanAcknowledged", behind,
      fmt::format("{} with a plan that is not acknowledged yet", Count(behind.size(), "node")),
      "if this lasts longer than a minute: kubectl describe node NODE, Events "
      "PlanNotAcknowledged and PartitioningIncomplete",
      "every plan is acknowledged");
}

void CheckConditions(const std::vector<const NodeFacts*>& labelled, Findings& findings) {
  const auto having = [&](std::string_view type, std::string_view status) {
    std::vector<std::string> names;
    for (const NodeFacts* node : labelled) {
      if (node->Condition(type) != status) continue;
      names.push_back(fmt::format("{} ({})", node->name, node->Reason(type)));
    }
    return names;
  };
  findings.FailIfAny("GpusHealthy", having(agent::kGpusHealthy, "False"),
                     "agents report errors of GPUs",
                     "kubectl describe node NODE: condition nos.nebuly.com/GpusHealthy",
                     "no agent reports errors of GPUs");
  findings.WarnIfAny("RebootRequired", having(agent::kRebootRequired, "True"),
                     "GPUs change their MIG mode at the next reboot only",
                     "drain and reboot the node; until then its GPUs keep their mode",
                     "no node waits for a reboot");
  findings.FailIfAny("NodeReady",
                     NamesOf(labelled,
                             [](const NodeFacts& node) {
                               const std::string ready = node.Condition("Ready");
                               return !ready.empty() && ready != "True";
                             }),
                     "labelled nodes are not Ready", "kubectl describe node NODE",
                     "labelled nodes are Ready");
}

// docs/troubleshooting.md has the same advice.
std::string HandoverRemedy(const std::string& reason) {
  if (reason == "DriverFilesNotFound") {
    return "is the driver being installed or replaced? Otherwise name its folder in "
           "migAgent.driverRoot";
  }
  if (reason == "DriverNotLoaded") {
    return "load the kernel module on the node (modprobe nvidia-uvm)";
  }
  if (reason == "SpecificationNotRead") {
    return "set devicePlugin.handover=auto, or use Kubernetes 1.29 with containerd 2.0 or CRI-O "
           "1.28";
  }
  if (reason == "SpecificationNotWritten") {
    return "make /var/run/cdi on the node writable, or set devicePlugin.handover=devices; the "
           "condition's message has the cause";
  }
  if (reason == "DeviceNodesNotFound") {
    return "check the driver's entries below /proc/driver/nvidia and the node's /dev; the "
           "condition's message names the device";
  }
  return "kubectl describe node NODE: condition nos.nebuly.com/DeviceHandover";
}

void CheckHandover(const Snapshot& snapshot, const std::vector<const NodeFacts*>& labelled,
                   Findings& findings) {
  const std::string code = "DeviceHandover";
  // Conditions of an earlier configuration stay.
  if (snapshot.AgentConfig("devicePlugin", "mode") == "nvidia") {
    return findings.NotChecked(code, "NVIDIA's device plugin gives devices to containers");
  }
  std::map<std::string, std::vector<std::string>> broken;
  std::vector<std::string> by_variable;
  std::map<std::string, size_t> ways;
  for (const NodeFacts* node : labelled) {
    const std::string status = node->Condition(agent::kDeviceHandover);
    const std::string reason = node->Reason(agent::kDeviceHandover);
    if (status.empty()) continue;
    if (status != "True") {
      broken[reason].push_back(node->name);
    } else if (reason == "EnvironmentVariable") {
      by_variable.push_back(node->name);
    } else {
      ++ways[reason];
    }
  }
  for (const auto& [reason, nodes] : broken) {
    findings.Fail(code,
                  fmt::format("{} cannot give devices to containers: {}",
                              Count(nodes.size(), "node"), reason),
                  HandoverRemedy(reason), nodes);
  }
  if (!by_variable.empty()) {
    findings.Warn(code,
                  "containers get devices by NVIDIA_VISIBLE_DEVICES (EnvironmentVariable): only "
                  "NVIDIA's container runtime as the default one, not in CDI mode, reads it, and "
                  "any pod can name all GPUs",
                  "set migAgent.driverRoot to the folder of the driver (default /), and "
                  "devicePlugin.handover=auto",
                  by_variable);
  }
  if (!ways.empty()) {
    std::string text;
    for (const auto& [reason, count] : ways) {
      text += fmt::format("{}{} on {}", text.empty() ? "" : ", ", reason, Count(count, "node"));
    }
    findings.Ok(code, "containers get devices: " + text);
  } else if (broken.empty() && by_variable.empty()) {
    findings.NotChecked(code, "no agent reports how containers get devices");
  }
}

}  // namespace

void CheckNodes(const Snapshot& snapshot, Findings& findings) {
  findings.Begin("Nodes");
  if (!snapshot.nodes.status.ok()) {
    return findings.Unread("NodesLabelled", "nodes", snapshot.nodes.status);
  }
  const auto labelled = Labelled(snapshot);
  CheckLabels(snapshot, labelled, findings);
  if (labelled.empty()) return;
  CheckAgents(snapshot, labelled, findings);
  CheckReports(labelled, findings);
  CheckConditions(labelled, findings);
  CheckHandover(snapshot, labelled, findings);
}

}  // namespace nos::cmd
