// A Container Device Interface (CDI) specification: how a container runtime gives devices to a
// container.
//
//   CdiSpec spec{.kind = "nos.nebuly.com/gpu", .driver = files};
//   spec.devices["MIG-..."] = nodes;
//   NOS_RETURN_IF_ERROR(WriteCdiSpec("/var/run/cdi", spec));
//
// Source: the CDI specification, version 0.5.0, which containerd since 1.7 and CRI-O since 1.26
// read.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "codec/json.h"
#include "device/driver_files.h"

namespace nos::device {

// Further changes of a container that gets a device.
struct ContainerEdits {
  std::map<std::string, std::string> environment;
  std::vector<DriverFile> folders;  // mounted, read and write
  friend bool operator==(const ContainerEdits&, const ContainerEdits&) = default;
};

struct CdiSpec {
  std::string kind;  // "VENDOR/CLASS"; a device's full name is then "VENDOR/CLASS=NAME"
  DriverFiles driver;
  std::map<std::string, std::vector<DeviceNode>> devices;  // by name
  std::map<std::string, std::vector<DriverFile>> files{};  // mounted with a device, by its name
  std::map<std::string, ContainerEdits> edits{};           // by name of the device
};

Json ToJson(const CdiSpec& spec);

// The file that WriteCdiSpec writes for this kind: "nos.nebuly.com-gpu.json".
std::string CdiFileName(const std::string& kind);

// Writes the specification as a whole: a runtime reads the old one or the new one. Errors:
// kUnavailable, with the path and the cause (missing folder, read-only, no space left).
Status WriteCdiSpec(const std::string& folder, const CdiSpec& spec);
// OK if there is none.
Status RemoveCdiSpec(const std::string& folder, const std::string& kind);

}  // namespace nos::device
