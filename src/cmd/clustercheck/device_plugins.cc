// Device plugins, operators and monitors that act on the same GPUs.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "cluster/annotations.h"
#include "cmd/clustercheck/topics.h"
#include "gpu/product.h"

namespace nos::cmd {
namespace {

enum class Plugin { kNvidia, kNebuly, kGke, kHami, kNvidiaDra, kNone };

// Device plugins reach the kubelet by sockets in a folder of its directory, and drivers of
// ResourceClaims in another. Other programs come in
// the image of NVIDIA's plugin too: GPU feature discovery, the MPS control daemon, the config
// manager. Source: NVIDIA/gpu-operator, assets.
bool Registers(const WorkloadFacts& workload) {
  return std::ranges::any_of(workload.containers, [](const ContainerFacts& container) {
    return std::ranges::any_of(container.host_folders, [](std::string_view folder) {
      while (folder.ends_with('/')) folder.remove_suffix(1);
      return folder.ends_with("/device-plugins") || folder.ends_with("/plugins_registry") ||
             folder.ends_with("/kubelet");
    });
  });
}

Plugin PluginOf(const WorkloadFacts& workload) {
  if (!Registers(workload)) return Plugin::kNone;
  if (workload.HasImage("nebuly") && workload.HasImage("device-plugin")) return Plugin::kNebuly;
  if (workload.HasImage("nvidia-gpu-device-plugin") ||
      workload.name.starts_with("nvidia-gpu-device-plugin")) {
    return Plugin::kGke;
  }
  if (workload.HasImage("k8s-dra-driver")) return Plugin::kNvidiaDra;
  if (workload.HasImage("projecthami/") || workload.name.starts_with("hami-device-plugin")) {
    return Plugin::kHami;
  }
  if (workload.HasImage("k8s-device-plugin") || workload.name.starts_with("nvidia-device-plugin")) {
    return Plugin::kNvidia;
  }
  return Plugin::kNone;
}

struct Found {
  const WorkloadFacts* workload;
  Plugin plugin;
  std::set<std::string> nodes;  // labelled ones with a pod of it
};

std::vector<Found> FindPlugins(const Snapshot& snapshot) {
  std::vector<Found> plugins;
  std::map<std::string, size_t> by_key;
  for (const WorkloadFacts& one : snapshot.daemon_sets.items) {
    const Plugin plugin = PluginOf(one);
    if (plugin == Plugin::kNone) continue;
    by_key[one.Key()] = plugins.size();
    plugins.push_back({&one, plugin, {}});
  }
  std::set<std::string> labelled;
  for (const NodeFacts& node : snapshot.nodes.items) {
    if (node.Labelled()) labelled.insert(node.name);
  }
  for (const PodFacts& pod : snapshot.pods.items) {
    if (!pod.owner.starts_with("DaemonSet/") || !labelled.contains(pod.node)) continue;
    const auto found = by_key.find(pod.ns + pod.owner.substr(pod.owner.find('/')));
    if (found != by_key.end()) plugins[found->second].nodes.insert(pod.node);
  }
  return plugins;
}

std::vector<std::string> NodesOf(const Found& found) {
  return {found.nodes.begin(), found.nodes.end()};
}

// The agent offers the devices itself: no other plugin may, on the same nodes.
void CheckBuiltin(const std::vector<Found>& plugins, Findings& findings) {
  bool competes = false;
  for (const Found& found : plugins) {
    if (found.nodes.empty() || found.plugin == Plugin::kNebuly) continue;
    competes = true;
    const std::string name = found.workload->Key();
    const std::string strategy = found.workload->Environment("MIG_STRATEGY").value_or("");
    if (found.plugin == Plugin::kGke) {
      findings.Fail("DevicePlugin",
                    fmt::format("GKE's device plugin {} runs on labelled nodes and offers the same "
                                "GPUs",
                                name),
                    "create the node pool with the label "
                    "gke-no-default-nvidia-gpu-device-plugin=true and "
                    "gpu-driver-version=disabled (docs/platforms.md)",
                    NodesOf(found));
    } else if (found.plugin == Plugin::kHami) {
      findings.Fail(
          "DevicePlugin",
          fmt::format("HAMi's device plugin {} runs on labelled nodes and shares the same "
                      "GPUs",
                      name),
          "kubectl label node NODE gpu-, or another label that its nodeSelector wants",
          NodesOf(found));
    } else if (found.plugin == Plugin::kNvidiaDra) {
      findings.Warn("DevicePlugin",
                    fmt::format("NVIDIA's driver for ResourceClaims {} runs on labelled nodes: it "
                                "may give away the same GPUs",
                                name),
                    "keep its kubelet plugin off these nodes by its affinity, or switch off its "
                    "GPUs (gpus.enabled=false)",
                    NodesOf(found));
    } else if (strategy == "none") {
      findings.Warn("DevicePlugin",
                    fmt::format("NVIDIA's device plugin {} runs on labelled nodes without MIG: it "
                                "offers nvidia.com/gpu",
                                name),
                    "kubectl label node NODE nvidia.com/gpu.deploy.device-plugin=false --overwrite",
                    NodesOf(found));
    } else {
      findings.Fail(
          "DevicePlugin",
          fmt::format("NVIDIA's device plugin {} runs on labelled nodes, and the agent "
                      "offers the same devices",
                      name),
          "kubectl label node NODE nvidia.com/gpu.deploy.device-plugin=false --overwrite, "
          "or devicePlugin.mode=nvidia",
          NodesOf(found));
    }
  }
  if (competes) return;
  findings.Ok("DevicePlugin", "no device plugin of NVIDIA, GKE or HAMi runs on labelled nodes");
}

// NVIDIA's plugin offers what the agent partitions.
void CheckNvidia(const Snapshot& snapshot, const std::vector<Found>& plugins, Findings& findings) {
  std::set<std::string> served;
  std::vector<std::string> wrong;
  for (const Found& found : plugins) {
    if (found.plugin != Plugin::kNvidia) continue;
    served.insert(found.nodes.begin(), found.nodes.end());
    const std::string strategy = found.workload->Environment("MIG_STRATEGY").value_or("");
    if (!found.nodes.empty() && strategy != "mixed" && !strategy.empty()) {
      wrong.push_back(fmt::format("{} ({})", found.workload->Key(), strategy));
    }
  }
  std::vector<std::string> without;
  for (const NodeFacts& node : snapshot.nodes.items) {
    if (node.Mode() == "mig" && !served.contains(node.name)) without.push_back(node.name);
  }
  findings.FailIfAny("DevicePlugin", without,
                     "devicePlugin.mode is nvidia, and NVIDIA's device plugin does not run there",
                     "kubectl label node NODE nvidia.com/gpu.deploy.device-plugin-, or "
                     "devicePlugin.mode=builtin",
                     "NVIDIA's device plugin runs on every node labelled mig");
  findings.FailIfAny("DevicePluginStrategy", wrong,
                     "NVIDIA's device plugin does not name MIG devices by their profile",
                     "set mig.strategy=mixed in the GPU Operator", "its MIG strategy fits");
}

void CheckNebuly(const Snapshot& snapshot, const std::vector<Found>& plugins, Findings& findings) {
  std::set<std::string> served;
  for (const Found& found : plugins) {
    if (found.plugin == Plugin::kNebuly) served.insert(found.nodes.begin(), found.nodes.end());
  }
  const bool wanted = snapshot.AgentConfig("mps", "plugin") == "nebuly";
  if (!wanted) {
    return findings.WarnIfAny("NebulyPlugin", {served.begin(), served.end()},
                              "Nebuly's device plugin runs on labelled nodes, and nos does not use "
                              "it",
                              "remove it, or set migAgent.mps.plugin=nebuly",
                              "Nebuly's device plugin does not run on labelled nodes");
  }
  std::vector<std::string> without;
  for (const NodeFacts& node : snapshot.nodes.items) {
    if (node.Mode() == "mps" && !served.contains(node.name)) without.push_back(node.name);
  }
  findings.FailIfAny("NebulyPlugin", without,
                     "mps.plugin is nebuly, and its device plugin does not run there",
                     "install it there, or set migAgent.mps.plugin=builtin",
                     "Nebuly's device plugin runs on every node labelled mps");
}

// The operator takes a part as on if its policy does not say. Source: NVIDIA/gpu-operator,
// api/nvidia/v1/clusterpolicy_types.go, IsEnabled.
bool Enabled(const Json& policy, std::string_view part) {
  const Json* enabled = Find(policy, "spec", part, "enabled");
  return enabled == nullptr || !enabled->is_bool() || enabled->get_bool();
}

// The default differs between versions.
std::string_view CdiText(const Json& policy) {
  const Json* enabled = Find(policy, "spec", "cdi", "enabled");
  if (enabled == nullptr || !enabled->is_bool()) return "as its version has it";
  return enabled->get_bool() ? "on" : "off";
}

void CheckPolicy(const Snapshot& snapshot, Findings& findings) {
  const auto& policies = snapshot.cluster_policies;
  if (!policies.served()) {
    return findings.NotChecked("GpuOperator", "the GPU Operator is not installed");
  }
  if (!policies.status.ok()) {
    return findings.Unread("GpuOperator", "ClusterPolicies", policies.status);
  }
  for (const Json& policy : policies.items) {
    const std::string name(FindString(policy, "metadata", "name"));
    const std::string state(FindString(policy, "status", "state"));
    const std::string parts =
        fmt::format("device plugin {}, CDI {}", Enabled(policy, "devicePlugin") ? "on" : "off",
                    CdiText(policy));
    if (state == "ready") {
      findings.Ok("GpuOperator", fmt::format("ClusterPolicy {} is ready: {}", name, parts));
    } else {
      findings.Warn("GpuOperator",
                    fmt::format("ClusterPolicy {} is {}: {}", name,
                                state.empty() ? "without a state" : state, parts),
                    "kubectl get pods -A -l app.kubernetes.io/part-of=gpu-operator");
    }
    if (Enabled(policy, "migManager")) {
      findings.Fail("MigManager", "the GPU Operator's MIG manager is on: it partitions GPUs too",
                    fmt::format("kubectl patch clusterpolicy {} --type merge -p "
                                "'{{\"spec\":{{\"migManager\":{{\"enabled\":false}}}}}}'",
                                name));
    } else {
      findings.Ok("MigManager", "the GPU Operator's MIG manager is off");
    }
  }
  if (policies.items.empty()) {
    findings.Warn("GpuOperator", "the GPU Operator has no ClusterPolicy, so it does nothing",
                  "create one, or uninstall it");
  }
}

void CheckMigConfig(const Snapshot& snapshot, Findings& findings) {
  std::vector<std::string> nodes;
  for (const NodeFacts& node : snapshot.nodes.items) {
    const std::string config = node.Label("nvidia.com/mig.config");
    if (node.Labelled() && !config.empty())
      nodes.push_back(fmt::format("{}={}", node.name, config));
  }
  findings.WarnIfAny(
      "MigConfigLabel", nodes,
      "labelled nodes have nvidia.com/mig.config, by which mig-parted partitions them",
      "kubectl label node NODE nvidia.com/mig.config-, once the MIG manager is off",
      "no labelled node has nvidia.com/mig.config");
}

// Nodes with a pod of DCGM or its exporter. Their DaemonSets are nvidia-dcgm and
// nvidia-dcgm-exporter in the GPU Operator, dcgm-exporter in GKE.
std::set<std::string> NodesWithMonitor(const Snapshot& snapshot) {
  std::set<std::string> monitors, nodes;
  for (const WorkloadFacts& one : snapshot.daemon_sets.items) {
    if (one.name.find("dcgm") != std::string::npos || one.HasImage("dcgm")) {
      monitors.insert(one.Key());
    }
  }
  for (const PodFacts& pod : snapshot.pods.items) {
    if (!pod.owner.starts_with("DaemonSet/")) continue;
    if (monitors.contains(pod.ns + pod.owner.substr(pod.owner.find('/')))) nodes.insert(pod.node);
  }
  return nodes;
}

// True if the agent reports a MIG instance on each GPU, so that their MIG mode is on. Annotations
// do not have the mode of a GPU without instances.
bool HasMigModeOn(const NodeFacts& node, const gpu::Catalogue& catalogue) {
  cluster::Node object;
  object.meta.labels.insert(node.labels.begin(), node.labels.end());
  object.meta.annotations.insert(node.annotations.begin(), node.annotations.end());
  const std::vector<cluster::Gpu> gpus = cluster::ReadNodeGpus(object, catalogue).gpus;
  return !gpus.empty() && std::ranges::all_of(gpus, [](const cluster::Gpu& gpu) {
    if (gpu.instances.empty()) return false;
    const gpu::ProfileId profile = gpu.instances.front().placement.profile;
    return gpu::SharingModeOfProfile(gpu.model->profile(profile).name) == gpu::kMigMode;
  });
}

// Source: nvml.h, nvmlDeviceSetMigMode: NVML_ERROR_IN_USE while other clients have the GPU open.
void CheckMonitors(const Snapshot& snapshot, Findings& findings) {
  const std::set<std::string> watched = NodesWithMonitor(snapshot);
  std::vector<std::string> nodes;
  for (const NodeFacts& node : snapshot.nodes.items) {
    const std::string mode = node.Mode();
    if ((mode != "mig" && mode != "hybrid") || !watched.contains(node.name)) continue;
    if (!HasMigModeOn(node, *snapshot.catalogue)) nodes.push_back(node.name);
  }
  findings.WarnIfAny(
      "GpuMonitor", nodes,
      "DCGM runs on nodes with GPUs whose MIG mode may have to change, which the driver can refuse "
      "while DCGM has them open",
      "if the node has Events DeviceOperationFailed: kubectl label node NODE --overwrite "
      "nvidia.com/gpu.deploy.dcgm-exporter=false nvidia.com/gpu.deploy.dcgm=false, and "
      "migAgent.telemetry.gpuMetrics=true (docs/install.md)",
      "DCGM runs on no partitioned node that has a GPU without MIG instances");
}

}  // namespace

void CheckDevicePlugins(const Snapshot& snapshot, Findings& findings) {
  findings.Begin("Device plugins and operators");
  CheckPolicy(snapshot, findings);
  const Status& read = !snapshot.daemon_sets.status.ok() ? snapshot.daemon_sets.status
                       : !snapshot.pods.status.ok()      ? snapshot.pods.status
                                                         : snapshot.nodes.status;
  if (!read.ok()) return findings.Unread("DevicePlugin", "DaemonSets, pods and nodes", read);
  const std::vector<Found> plugins = FindPlugins(snapshot);
  if (snapshot.AgentConfig("devicePlugin", "mode") == "nvidia") {
    CheckNvidia(snapshot, plugins, findings);
  } else {
    CheckBuiltin(plugins, findings);
  }
  CheckNebuly(snapshot, plugins, findings);
  CheckMigConfig(snapshot, findings);
  CheckMonitors(snapshot, findings);
}

}  // namespace nos::cmd
