// Chooses how this node passes devices to containers.
#pragma once

#include <string>

#include "kubelet/device_plugin_server.h"

namespace nos::agent {

// Facts about the node on which the choice depends.
struct HandoverFacts {
  std::string runtime;        // Node.status.nodeInfo.containerRuntimeVersion: "containerd://2.1.4"
  bool driver_files = false;  // the agent sees the driver's files
  bool other_specs = false;   // other programs write CDI specifications here
};

struct HandoverChoice {
  kubelet::Handover handover = kubelet::Handover::kEnvironment;
  std::string why;  // a sentence
};

// Chooses a way in which containers get their devices whatever the runtime's configuration is.
// Sources: containerd 2.0 release notes (CDI is enabled by default), CRI-O 1.28.
HandoverChoice ChooseHandover(const HandoverFacts& facts);

// True if the folder has specifications of other programs.
bool HasSpecsOfOthers(const std::string& cdi_folder);

}  // namespace nos::agent
