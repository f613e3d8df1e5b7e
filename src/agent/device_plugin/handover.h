// Chooses how this node passes devices to containers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "device/driver_files.h"
#include "kubelet/device_plugin_server.h"

namespace nos::agent {

// Facts about the node on which the choice depends.
struct HandoverFacts {
  std::string runtime;  // Node.status.nodeInfo.containerRuntimeVersion: "containerd://2.1.4"
  std::string kubelet;  // Node.status.nodeInfo.kubeletVersion: "v1.34.2"
  // The agent sees the driver's files, or the folder of the host in which they will appear.
  bool host_files = false;
  // True if the runtime is configured to read CDI specifications; nullopt: unknown.
  std::optional<bool> reads_cdi{};
};

struct HandoverChoice {
  kubelet::Handover handover = kubelet::Handover::kEnvironment;
  std::string why;  // a sentence
};

// Sockets on which containerd may serve the kubelet, as this process sees them: `configured` alone
// if that is not empty, else those of distributions, if this process sees the host's root. A
// distribution's own containerd comes first: another one may run beside it.
std::vector<std::string> SocketsOfContainerd(const std::string& configured,
                                             const device::HostFolders& host);

// Asks the node's containerd for enable_cdi, which versions from 1.7 on have. No value: the runtime
// is another one, or none of the sockets answers. Blocks for up to 5 s each.
std::optional<bool> ReadsCdi(const std::string& runtime, const std::vector<std::string>& sockets);

// Why containers may not get devices by CDI: "containerd://1.7.27 may ignore CDI specifications";
// "": container runtime and kubelet read them. Sources as for ChooseHandover.
std::string WhyNoCdi(const HandoverFacts& facts);

// Chooses a way in which containers get their devices. If the runtime's configuration is not known,
// its defaults count: specifications of other programs do not show that the runtime reads them.
// Sources: containerd 2.0 release notes, CRI-O 1.28; KEP-4009, by which kubelets pass on CDI names
// of device plugins from 1.29 on.
HandoverChoice ChooseHandover(const HandoverFacts& facts);

}  // namespace nos::agent
