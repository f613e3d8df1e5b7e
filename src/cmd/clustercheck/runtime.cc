// How containers get their devices: the container runtime, RuntimeClass, NVIDIA's container
// toolkit.
#include <fmt/format.h>

#include <map>
#include <optional>
#include <utility>

#include "agent/conditions.h"
#include "base/text.h"
#include "cmd/clustercheck/topics.h"

namespace nos::cmd {
namespace {

// "containerd://1.7.27-k3s1" after "://", "v1.34.2" after "v": {1, 7}, {1, 34}
std::optional<std::pair<int64_t, int64_t>> VersionOf(std::string_view text,
                                                     std::string_view before) {
  const size_t at = text.find(before);
  if (at == std::string_view::npos) return std::nullopt;
  const auto parts = Split(text.substr(at + before.size()), '.');
  if (parts.size() < 2) return std::nullopt;
  const auto major = ParseInt(parts[0]), minor = ParseInt(parts[1]);
  if (!major || !minor) return std::nullopt;
  return std::pair{*major, *minor};
}

enum class Cdi { kOn, kOptional, kNone, kUnknown };
// Sources: containerd 1.7 reads CDI specifications if its configuration enables them, 2.0 by
// default; CRI-O by default from 1.28 on. Kubelets pass on CDI names of device plugins from 1.29 on
// (KEP-4009).
Cdi CdiOf(const NodeFacts& node) {
  const std::string_view runtime = node.runtime;
  const auto version = VersionOf(runtime, "://");
  if (!version) return Cdi::kUnknown;
  const auto kubelet = VersionOf(node.kubelet, "v");
  if (kubelet && *kubelet < std::pair<int64_t, int64_t>{1, 29}) return Cdi::kNone;
  if (runtime.starts_with("containerd://")) {
    if (*version >= std::pair<int64_t, int64_t>{2, 0}) return Cdi::kOn;
    return *version >= std::pair<int64_t, int64_t>{1, 7} ? Cdi::kOptional : Cdi::kNone;
  }
  if (runtime.starts_with("cri-o://")) {
    return *version >= std::pair<int64_t, int64_t>{1, 28} ? Cdi::kOn : Cdi::kOptional;
  }
  return Cdi::kUnknown;
}

// Their agents ask them, and say what they found in condition kDeviceHandover, which is a finding
// of its own.
void WarnOfOptionalCdi(const std::vector<std::string>& nodes, Findings& findings) {
  if (nodes.empty()) return;
  findings.Warn("ContainerRuntime", "runtimes read CDI specifications only if configured to",
                "look at the condition " + std::string(agent::kDeviceHandover) +
                    " of these nodes: it says how containers get their devices there",
                nodes);
}

// The agent offers no device there with handover cdi (agent/device_plugin/handover.h).
void WarnOfOldRuntimes(const std::string& message, bool needs_cdi,
                       const std::vector<std::string>& nodes, Findings& findings) {
  if (nodes.empty()) return;
  if (!needs_cdi) {
    return findings.Warn("ContainerRuntime", message,
                         "the agent hands over device nodes there (handover auto or devices)",
                         nodes);
  }
  findings.Fail("ContainerRuntime", message + ", and handover is cdi: no device is offered there",
                "use Kubernetes 1.29 with containerd 2.0 or CRI-O 1.28, or "
                "devicePlugin.handover=auto",
                nodes);
}

void CheckCdi(const Snapshot& snapshot, Findings& findings) {
  if (!snapshot.nodes.status.ok()) {
    return findings.Unread("ContainerRuntime", "nodes", snapshot.nodes.status);
  }
  const bool needs_cdi = snapshot.AgentConfig("devicePlugin", "handover") == "cdi";
  std::vector<std::string> without, optional, unknown;
  std::map<std::string, size_t> on;
  for (const NodeFacts& node : snapshot.nodes.items) {
    if (!node.Labelled()) continue;
    const std::string name =
        fmt::format("{} ({}, kubelet {})", node.name, node.runtime, node.kubelet);
    const Cdi cdi = CdiOf(node);
    if (cdi == Cdi::kOn) ++on[node.runtime];
    if (cdi == Cdi::kNone) without.push_back(name);
    if (cdi == Cdi::kOptional) optional.push_back(name);
    if (cdi == Cdi::kUnknown) unknown.push_back(name);
  }
  std::string fine;
  for (const auto& [runtime, count] : on) {
    fine += fmt::format("{}{} on {}", fine.empty() ? "" : ", ", runtime, Count(count, "node"));
  }
  if (on.empty() && without.empty() && optional.empty() && unknown.empty()) {
    return findings.NotChecked("ContainerRuntime", "no node is labelled");
  }
  WarnOfOldRuntimes("runtimes or kubelets do not read CDI specifications", needs_cdi, without,
                    findings);
  WarnOfOptionalCdi(optional, findings);
  if (!unknown.empty()) {
    findings.Warn("ContainerRuntime", "runtimes that nos does not know",
                  "set devicePlugin.handover by hand (docs/install.md)", unknown);
  }
  if (!on.empty()) findings.Ok("ContainerRuntime", fine + " read CDI specifications");
}

void CheckRuntimeClass(const Snapshot& snapshot, Findings& findings) {
  if (!snapshot.runtime_classes.status.ok()) {
    return findings.Unread("RuntimeClass", "RuntimeClasses", snapshot.runtime_classes.status);
  }
  const auto exists = [&](const std::string& name) {
    for (const std::string& one : snapshot.runtime_classes.items) {
      if (one.starts_with(name + "=")) return true;
    }
    return false;
  };
  std::vector<std::string> missing;
  for (const WorkloadFacts* agent : snapshot.Running("agent")) {
    if (!agent->runtime_class.empty() && !exists(agent->runtime_class)) {
      missing.push_back(agent->runtime_class);
    }
  }
  findings.FailIfAny("RuntimeClass", missing, "the agent names a RuntimeClass that does not exist",
                     "install the GPU Operator's toolkit, or clear migAgent.runtimeClassName",
                     exists("nvidia")
                         ? "RuntimeClass nvidia exists"
                         : "there is no RuntimeClass nvidia, and the agent needs none");
}

const char* const kVariable = "ACCEPT_NVIDIA_VISIBLE_DEVICES_ENVVAR_WHEN_UNPRIVILEGED";

const WorkloadFacts* FindToolkit(const Snapshot& snapshot) {
  const WorkloadFacts* toolkit = nullptr;
  for (const WorkloadFacts& one : snapshot.daemon_sets.items) {
    if (one.name.find("nvidia-container-toolkit") != std::string::npos ||
        one.HasImage("nvidia/container-toolkit")) {
      toolkit = &one;
    }
  }
  return toolkit;
}

// Reads a variable as Go's strconv.ParseBool does, which the toolkit uses.
bool IsFalse(std::string_view value) {
  const std::string lower = ToLower(value);
  return lower == "false" || lower == "f" || lower == "0";
}

// The programs of the driver that the agent runs, by its configuration.
std::string ProgramsOf(const Json& config) {
  const Json* mps = Find(config, "mps", "enabled");
  const bool shares = mps != nullptr && mps->is_bool() && mps->get_bool() &&
                      FindString(config, "mps", "plugin") != "nebuly";
  std::string programs = shares ? "nvidia-cuda-mps-control" : "";
  if (FindString(config, "hybrid", "reset") == "gpu") {
    programs += shares ? " and nvidia-smi" : "nvidia-smi";
  }
  return programs;
}

// The GPU Operator leaves the nodes' default runtime as it is. Source: nvidia-ctk-installer, whose
// --set-as-default takes the first of these variables that is set; the operator sets the second to
// false with CDI, which is on since 25.10.
bool KeepsDefaultRuntime(const WorkloadFacts& toolkit) {
  for (const char* name : {"CONTAINERD_SET_AS_DEFAULT", "NVIDIA_RUNTIME_SET_AS_DEFAULT"}) {
    if (const auto value = toolkit.Environment(name)) return IsFalse(*value);
  }
  return false;
}

// Labelled nodes that report this reason of the condition.
std::vector<std::string> NodesThatReport(const Snapshot& snapshot, std::string_view condition,
                                         std::string_view reason) {
  std::vector<std::string> names;
  for (const NodeFacts& node : snapshot.nodes.items) {
    if (node.Labelled() && node.Reason(condition) == reason) names.push_back(node.name);
  }
  return names;
}

// Adds a finding only where the agent runs such programs.
void CheckDriverPrograms(const Snapshot& snapshot, Findings& findings) {
  const std::string code = "DriverPrograms";
  for (const WorkloadFacts* agent : snapshot.Running("agent")) {
    const Json* config = snapshot.ConfigOf(*agent);
    const std::string programs = config == nullptr ? "" : ProgramsOf(*config);
    if (programs.empty()) continue;
    if (!agent->runtime_class.empty()) {
      findings.Ok(code, fmt::format("RuntimeClass {} brings {}", agent->runtime_class, programs));
      continue;
    }
    const std::string message = fmt::format(
        "the agent names no RuntimeClass, so it has {} only where NVIDIA's container runtime is "
        "the node's default",
        programs);
    const std::string remedy = "gpuPartitioner.migAgent.runtimeClassName=nvidia";
    const auto unserved = NodesThatReport(snapshot, agent::kGpusHealthy, "MpsNotServed");
    const WorkloadFacts* toolkit = FindToolkit(snapshot);
    if (!unserved.empty()) {
      findings.Fail(code, message, remedy, unserved);
    } else if (toolkit != nullptr && KeepsDefaultRuntime(*toolkit)) {
      findings.Fail(code, message + ", and the GPU Operator does not make it that", remedy,
                    {toolkit->Key()});
    } else {
      findings.Warn(code, message, remedy);
    }
  }
}

// Labelled nodes on which nos hands devices over with this reason.
std::vector<std::string> NodesWith(const Snapshot& snapshot, std::string_view reason) {
  // Conditions of an earlier configuration stay.
  if (snapshot.AgentConfig("devicePlugin", "mode") == "nvidia") return {};
  return NodesThatReport(snapshot, agent::kDeviceHandover, reason);
}

// The plugin of nos hands devices over without the variable, at least on some nodes.
bool NeedsNoVariable(const Snapshot& snapshot) {
  if (snapshot.AgentConfig("devicePlugin", "mode") == "nvidia") return false;
  const std::string handover = snapshot.AgentConfig("devicePlugin", "handover");
  return handover == "cdi" || handover == "devices" ||
         !NodesWith(snapshot, "ContainerDeviceInterface").empty() ||
         !NodesWith(snapshot, "DeviceNodes").empty();
}

void CheckClosedVariable(const Snapshot& snapshot, const std::string& code, Findings& findings) {
  findings.FailIfAny(code, NodesWith(snapshot, "EnvironmentVariable"),
                     "nos gives containers their devices by NVIDIA_VISIBLE_DEVICES, which NVIDIA's "
                     "runtime does not accept from them",
                     "devicePlugin.handover=auto, with migAgent.driverRoot (default /)",
                     "pods get no GPU by setting NVIDIA_VISIBLE_DEVICES");
}

// Source: NVIDIA container toolkit, accept-nvidia-visible-devices-envvar-when-unprivileged
// (default true): any pod may then name all GPUs.
void CheckVisibleDevices(const Snapshot& snapshot, Findings& findings) {
  const std::string code = "VisibleDevicesVariable";
  if (!snapshot.daemon_sets.status.ok()) {
    return findings.Unread(code, "DaemonSets", snapshot.daemon_sets.status);
  }
  const WorkloadFacts* toolkit = FindToolkit(snapshot);
  if (toolkit == nullptr) {
    return findings.NotChecked(
        code, "the nodes' /etc/nvidia-container-runtime/config.toml cannot be seen from here",
        "on nodes with NVIDIA's runtime, set "
        "accept-nvidia-visible-devices-envvar-when-unprivileged = false, so that no pod reaches a "
        "GPU that it was not given");
  }
  const std::string accepts = toolkit->Environment(kVariable).value_or("true");
  if (IsFalse(accepts)) return CheckClosedVariable(snapshot, code, findings);
  const std::string message =
      "a pod that sets NVIDIA_VISIBLE_DEVICES=all and uses NVIDIA's runtime (its RuntimeClass is "
      "enough) reaches every GPU of its node";
  const std::string remedy =
      fmt::format("set {}=false in toolkit.env of the GPU Operator", kVariable);
  // A variable from elsewhere has no value here.
  if (!accepts.empty() && NeedsNoVariable(snapshot)) {
    return findings.Fail(code, message, remedy, {toolkit->Key()});
  }
  findings.Warn(code, message,
                "hand devices over without this variable (devicePlugin.handover=auto, or NVIDIA's "
                "plugin with another DEVICE_LIST_STRATEGY), then " +
                    remedy,
                {toolkit->Key()});
}

}  // namespace

void CheckRuntime(const Snapshot& snapshot, Findings& findings) {
  findings.Begin("Container runtime");
  CheckCdi(snapshot, findings);
  CheckRuntimeClass(snapshot, findings);
  CheckDriverPrograms(snapshot, findings);
  CheckVisibleDevices(snapshot, findings);
}

}  // namespace nos::cmd
