// A machine with GPUs as its driver, nvidia-smi and its files show it; read without a change.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/describe.h"
#include "device/driver_files.h"
#include "device/nvml_backend.h"

namespace nos::cmd {

struct MachineOptions {
  device::HostFolders host;
  std::string kubelet_folder = "/var/lib/kubelet", cdi_folder = "/var/run/cdi";
  std::string smi = "nvidia-smi", mps = "nvidia-cuda-mps-control";  // paths, or names in $PATH
};

// A folder that the agent uses.
struct FolderState {
  std::string path;
  Status usable{};          // kNotFound: it does not exist, and its parents could hold it
  bool has_socket = false;  // the kubelet's
};

struct GpuFacts {
  device::GpuDescription described;
  device::Readings readings;
  Status nodes{};  // the error if the driver does not list its device nodes
};

struct Machine {
  std::string driver, cuda, library;
  std::vector<std::string> limits;  // missing features of an old driver
  Status gpus_status{};
  std::vector<GpuFacts> gpus;
  Status events{};  // the error if errors of GPUs cannot be watched
  // Values that nvidia-smi prints, by UUID of the GPU and name of the query.
  Status smi{};
  std::map<std::string, std::map<std::string, std::string>> smi_gpus;
  Result<device::DriverFiles> files = NotFound("not read");
  bool has_capabilities = false;  // /proc/driver/nvidia/capabilities, for MIG
  std::string mps_program;        // the path of the MPS control daemon; "": none
  FolderState cdi, device_plugins, pod_resources;
  std::string agent;  // how an agent of nos was noticed here; "": none was
};

// The program's path, or the path of a name searched in $PATH; "": there is none.
std::string FindProgram(const std::string& name);

// Measures twice with a pause, because some readings are rates.
Machine ReadMachine(device::NvmlBackend& backend, const gpu::Catalogue& catalogue,
                    const MachineOptions& options);

}  // namespace nos::cmd
