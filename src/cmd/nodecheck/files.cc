#include <fmt/format.h>

#include "cmd/nodecheck/topics.h"

namespace nos::cmd {
namespace {

void CheckDriverFiles(const Machine& machine, Findings& findings) {
  if (!machine.files.ok()) {
    return findings.Fail("DriverFiles", machine.files.status().message(),
                         "name the root of the driver's files: --driver-root /run/nvidia/driver if "
                         "the GPU Operator runs the driver");
  }
  findings.Ok("DriverFiles",
              fmt::format("{} for containers, in {}", Count(machine.files->mounts.size(), "file"),
                          machine.files->library_folder));
  if (machine.files->missing_node.empty()) {
    findings.Ok("DeviceNodes", "the kernel has the device nodes that every container needs");
  } else {
    findings.Fail("DeviceNodes", machine.files->missing_node,
                  "load the kernel module on the node: modprobe nvidia-uvm");
  }
  std::vector<std::string> unlisted;
  for (const GpuFacts& gpu : machine.gpus) {
    if (!gpu.nodes.ok()) {
      unlisted.push_back(fmt::format("GPU {}: {}", gpu.described.info.index, gpu.nodes.message()));
    }
  }
  findings.FailIfAny("GpuDeviceNodes", unlisted, "the driver lists no device nodes for GPUs",
                     "is /proc/driver/nvidia of the host visible here?",
                     "the driver lists the device nodes of every GPU");
}

void CheckCapabilities(const Machine& machine, Findings& findings) {
  bool mig = false;
  for (const GpuFacts& gpu : machine.gpus) mig = mig || gpu.described.info.mig_enabled;
  if (!mig) return findings.NotChecked("MigCapabilities", "no GPU is in MIG mode");
  if (machine.has_capabilities) {
    return findings.Ok("MigCapabilities", "/proc/driver/nvidia/capabilities exists");
  }
  findings.Fail("MigCapabilities", "/proc/driver/nvidia/capabilities does not exist",
                "without it containers cannot be limited to an instance: load nvidia with "
                "NVreg_ModifyDeviceFiles=1, or run the check on the host");
}

void CheckFolder(const FolderState& folder, const std::string& code, std::string_view use,
                 const std::string& remedy, Findings& findings) {
  if (folder.usable.ok()) {
    return findings.Ok(code, fmt::format("{} can be written ({})", folder.path, use));
  }
  findings.Fail(code, fmt::format("{} ({})", folder.usable.message(), use), remedy);
}

void CheckKubelet(const Machine& machine, Findings& findings) {
  const bool absent = machine.device_plugins.usable.code() == Code::kNotFound &&
                      machine.pod_resources.usable.code() == Code::kNotFound;
  if (absent) {
    return findings.NotChecked("KubeletSockets",
                               "no kubelet runs here: " + machine.device_plugins.usable.message(),
                               "if it has another folder: --kubelet-dir");
  }
  CheckFolder(machine.device_plugins, "DevicePluginFolder", "the agent's sockets are there",
              "run the check as root, and mount the kubelet's folder", findings);
  std::vector<std::string> without;
  for (const FolderState* folder : {&machine.device_plugins, &machine.pod_resources}) {
    if (!folder->has_socket) without.push_back(folder->path + "/kubelet.sock");
  }
  findings.FailIfAny("KubeletSockets", without, "sockets of the kubelet are missing",
                     "is the kubelet running? --kubelet-dir names another folder",
                     "the kubelet's sockets exist");
}

}  // namespace

void CheckFiles(const Machine& machine, Findings& findings) {
  findings.Begin("Files");
  CheckDriverFiles(machine, findings);
  CheckCapabilities(machine, findings);
  if (machine.cdi.usable.code() == Code::kNotFound) {
    findings.Ok("CdiFolder", machine.cdi.usable.message());
  } else {
    CheckFolder(machine.cdi, "CdiFolder", "CDI specifications",
                "run the check as root; a read-only root needs a writable mount there, or "
                "devicePlugin.handover=devices",
                findings);
  }
  CheckKubelet(machine, findings);
  if (machine.mps_program.empty()) {
    findings.NotChecked("MpsProgram", "nvidia-cuda-mps-control is not in $PATH",
                        "for MPS shares it must be: it comes with the driver's compute utilities");
  } else {
    findings.Ok("MpsProgram", machine.mps_program);
  }
}

}  // namespace nos::cmd
