// Device nodes and files by which containers get this node's GPUs, and the CDI specification that
// lists them for container runtimes.
//
//   HostDevices devices(backend, {.driver = "/host"}, "/var/run/cdi");
//   NOS_RETURN_IF_ERROR(devices.Update(offer));        // before the kubelet hears of the devices
//   Result<kubelet::ContainerGrant> grant = devices.FilesOf({"MIG-..."});
//
// FilesOf is called by the plugin server's threads, all else by the agent's.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "device/backend.h"
#include "device/cdi_spec.h"
#include "device/driver_files.h"
#include "kubelet/device_plugin.h"
#include "kubelet/device_plugin_server.h"

namespace nos::agent {

// The kind of the specification that nos writes. Any other kind is another program's.
inline constexpr const char* kCdiKind = "nos.nebuly.com/gpu";

class HostDevices {
 public:
  // The backend must outlive this. `cdi_folder` "": no specification is written, and device nodes
  // that are missing on the host are created there, where the kubelet needs them.
  HostDevices(device::Backend& backend, device::HostFolders host, std::string cdi_folder);

  // Reads the GPUs and instances of the node again and writes the specification if it changes.
  // Marks devices of the offer as unhealthy that could not be handed over, and logs why. Keeps what
  // the last call had if `keep`: the kubelet may still hand it out. Errors: kNotFound (no driver
  // files), kUnavailable (GPUs or folder).
  Status Update(std::vector<kubelet::OfferedDevice>& offer, bool keep);
  // True if Update has to be called again: the specification is no longer in the folder as it was
  // written, the driver's files have changed, or a device has no nodes.
  bool IsStale() const { return !lacks_.empty() || IsLost() || IsOutdated(); }
  // The problem of the last Update; no value: every device can be handed over.
  struct Problem {
    std::string reason;  // a CamelCase noun
    std::string message;
  };
  const std::optional<Problem>& problem() const { return problem_; }

  // Errors: kUnavailable (the device is not on the node, or its nodes are unknown).
  Result<kubelet::ContainerGrant> FilesOf(const std::vector<std::string>& visible) const;

 private:
  using Nodes = std::map<std::string, std::vector<device::DeviceNode>>;  // by UUID

  Result<Nodes> ReadNodes();
  Result<std::vector<device::DeviceNode>> NodesOf(const std::string& gpu,
                                                  std::optional<uint32_t> instance) const;
  bool IsLost() const;
  bool IsOutdated() const;
  Status Prepare(std::vector<kubelet::OfferedDevice>& offer, bool keep);
  Status Failed(std::string reason, Status error);

  device::Backend& backend_;
  const device::HostFolders host_;
  const std::string cdi_folder_;
  std::map<std::string, std::string> lacks_;  // UUID -> why it has no device nodes
  std::optional<Problem> problem_;
  std::string written_;       // the specification in the folder; "": none
  mutable std::mutex mutex_;  // guards the rest
  device::CdiSpec spec_;
};

}  // namespace nos::agent
