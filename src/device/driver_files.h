// Finds the libraries, programs and device nodes of the host's NVIDIA driver that containers need.
//
//   NOS_ASSIGN(const DriverFiles files, FindDriverFiles({.driver = "/host"}));
//   NOS_ASSIGN(const auto nodes, DeviceNodesOf("GPU-...", 3, {}));
//
// Sources: the driver's README ("Installed Components"); /proc/driver/nvidia of driver 450 and
// later, in which a MIG instance has one capability for its GPU instance and one for its compute
// instance (CUDA documentation, "MIG User Guide", "Device Nodes and Capabilities").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace nos::device {

// Paths under which this process sees the host's files.
struct HostFolders {
  std::string driver = "/";       // root of the driver's files, as this process sees it
  std::string driver_host = "/";  // the same, as the host sees it
  std::string proc = "/proc", dev = "/dev";
};

// A file of the host that is mounted into containers, read-only.
struct DriverFile {
  std::string host_path, container_path;
  friend auto operator<=>(const DriverFile&, const DriverFile&) = default;
};

// A character device in containers, at the path of its node on the host.
struct DeviceNode {
  std::string path;           // "/dev/nvidia0"
  uint32_t major = 0;         // of the driver; 0: unknown, so the node has to be on the host
  uint32_t minor = 0;         // of the device
  uint32_t host_mode = 0666;  // of the host's node, which containers need not have
  friend auto operator<=>(const DeviceNode&, const DeviceNode&) = default;
};

struct DriverFiles {
  std::string version;         // "550.54.15"
  std::string library_folder;  // in containers: "/usr/lib/x86_64-linux-gnu"
  // Libraries under every name that programs load them by, programs, firmware and sockets.
  std::vector<DriverFile> mounts;
  // Device nodes that every container with a GPU needs: "/dev/nvidiactl", "/dev/nvidia-uvm". They
  // need not be on the host if the kernel lists their numbers.
  std::vector<DeviceNode> device_nodes;
  std::string missing_node;  // why one of them cannot be made; "": it can
  // A program of NVIDIA's container toolkit that updates a container's cache of libraries, as the
  // host sees it; "": none is installed.
  std::string hook;

  friend bool operator==(const DriverFiles&, const DriverFiles&) = default;
};

// Below the host's root, a driver that a container or a cloud installed in a folder of its own is
// found too. Its libraries are those of the loaded kernel module, if /proc says which that is.
// Error: kNotFound (there is no libcuda.so of such a driver below the root).
Result<DriverFiles> FindDriverFiles(const HostFolders& host);

// The path by which this process sees the file that containers find by this name
// ("libnvidia-ml.so.1"); "": there is none.
std::string PathOf(std::string_view name, const DriverFiles& driver, const HostFolders& host);

// The mounts of a container. Without a hook that updates the container's cache of libraries, these
// also appear in the folders in which the loaders of common distributions look.
std::vector<DriverFile> MountsOf(const DriverFiles& driver);

// Device nodes of one GPU, or of the MIG instance on it with this GPU instance id, which has one
// compute instance; without those of DriverFiles. They have numbers, as the nodes need not be on
// the host: a program in a container that creates an instance gets the node in the container only.
// Error: kNotFound (the driver does not list the GPU or the instance, or has no number).
Result<std::vector<DeviceNode>> DeviceNodesOf(const std::string& gpu_uuid,
                                              std::optional<uint32_t> gpu_instance,
                                              const HostFolders& host);

// The address of a GPU on the PCI bus: "0000:17:00.0"; "": the driver does not list it.
std::string PciBusIdOf(const std::string& gpu_uuid, const HostFolders& host);

// The minor number of the GPU's device node: 0 for /dev/nvidia0. Empty: the driver does not list
// it.
std::optional<int64_t> MinorOf(const std::string& gpu_uuid, const HostFolders& host);

// Creates the node on the host if it is missing. Error: kUnavailable, with the path and the cause.
Status MakeOnHost(const DeviceNode& node, const HostFolders& host);

}  // namespace nos::device
