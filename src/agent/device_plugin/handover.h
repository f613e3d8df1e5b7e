// Chooses how this node passes devices to containers.
#pragma once

#include <string>

#include "kubelet/device_plugin_server.h"

namespace nos::agent {

// Facts about the node on which the choice depends.
struct HandoverFacts {
  std::string runtime;  // Node.status.nodeInfo.containerRuntimeVersion: "containerd://2.1.4"
  std::string kubelet;  // Node.status.nodeInfo.kubeletVersion: "v1.34.2"
  // The agent sees the driver's files, or the folder of the host in which they will appear.
  bool host_files = false;
};

struct HandoverChoice {
  kubelet::Handover handover = kubelet::Handover::kEnvironment;
  std::string why;  // a sentence
};

// Why containers may not get devices by CDI: "containerd://1.7.27 may ignore CDI specifications";
// "": container runtime and kubelet read them by default. Sources as for ChooseHandover.
std::string WhyNoCdi(const HandoverFacts& facts);

// Chooses a way in which containers get their devices whatever the runtime's configuration is.
// Only what is on by default counts: specifications of other programs do not show that the runtime
// reads them. Sources: containerd 2.0 release notes, CRI-O 1.28; KEP-4009, by which kubelets pass
// on CDI names of device plugins from 1.29 on.
HandoverChoice ChooseHandover(const HandoverFacts& facts);

}  // namespace nos::agent
