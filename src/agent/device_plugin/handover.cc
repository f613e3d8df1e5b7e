#include "agent/device_plugin/handover.h"

#include <string_view>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "codec/json.h"
#include "kubelet/container_runtime.h"

namespace nos::agent {
namespace {

using kubelet::Handover;

// Major and minor number of "containerd://2.1.4-k3s1" or "v1.34.2"; absent without this prefix.
std::optional<std::pair<int64_t, int64_t>> VersionOf(std::string_view version,
                                                     std::string_view prefix) {
  if (!version.starts_with(prefix)) return std::nullopt;
  version.remove_prefix(prefix.size());
  const auto parts = Split(version, '.');
  if (parts.size() < 2) return std::nullopt;
  const auto major = ParseInt(parts[0]), minor = ParseInt(parts[1]);
  if (!major || !minor) return std::nullopt;
  return std::pair(*major, *minor);
}

bool ReadsCdiByDefault(std::string_view runtime) {
  const auto containerd = VersionOf(runtime, "containerd://");
  const auto crio = VersionOf(runtime, "cri-o://");
  return (containerd && *containerd >= std::pair<int64_t, int64_t>(2, 0)) ||
         (crio && *crio >= std::pair<int64_t, int64_t>(1, 28));
}

bool PassesCdi(std::string_view kubelet) {
  const auto version = VersionOf(kubelet, "v");
  return version && *version >= std::pair<int64_t, int64_t>(1, 29);
}

// Folders below the host's root. Sources: the manuals of k3s, RKE2, k0s, MicroK8s and containerd.
constexpr std::string_view kSockets[] = {
    "run/k3s/containerd/containerd.sock",
    "run/k0s/containerd.sock",
    "var/snap/microk8s/common/run/containerd.sock",
    "run/containerd/containerd.sock",
};

}  // namespace

std::vector<std::string> SocketsOfContainerd(const std::string& configured,
                                             const device::HostFolders& host) {
  if (!configured.empty()) return {configured};
  std::vector<std::string> sockets;
  if (host.driver_host != "/") return sockets;
  for (const std::string_view socket : kSockets) {
    sockets.push_back((host.driver == "/" ? "/" : host.driver + "/") + std::string(socket));
  }
  return sockets;
}

std::optional<bool> ReadsCdi(const std::string& runtime, const std::vector<std::string>& sockets) {
  if (!runtime.starts_with("containerd://")) return std::nullopt;
  for (const std::string& socket : sockets) {
    const Result<std::string> config = kubelet::ReadRuntimeConfig(socket);
    if (!config.ok()) {
      Log(LogLevel::kDebug, "failed to read the configuration of containerd",
          {{"socket", socket}, {"error", config.status().message()}});
      continue;
    }
    const Result<Json> json = ParseJson(*config);
    const Json* enabled = json.ok() ? Find(*json, "enableCDI") : nullptr;
    if (enabled != nullptr && enabled->is_bool()) return enabled->get_bool();
  }
  return std::nullopt;
}

std::string WhyNoCdi(const HandoverFacts& facts) {
  if (facts.reads_cdi == false) return facts.runtime + " has CDI switched off (enable_cdi)";
  const bool reads = facts.reads_cdi == true || ReadsCdiByDefault(facts.runtime);
  if (reads && PassesCdi(facts.kubelet)) return "";
  const auto named = [](const std::string& version, const char* otherwise) {
    return version.empty() ? otherwise : version;
  };
  const std::string who = reads ? "kubelet " + named(facts.kubelet, "of an unknown version")
                                : named(facts.runtime, "the container runtime");
  return who + " may ignore CDI specifications";
}

HandoverChoice ChooseHandover(const HandoverFacts& facts) {
  if (!facts.host_files) {
    return {Handover::kEnvironment,
            "the agent does not see the host's files (driverRoot), so NVIDIA's "
            "container runtime has to add those of the driver"};
  }
  const std::string why_not = WhyNoCdi(facts);
  if (why_not.empty()) return {Handover::kCdi, facts.runtime + " reads CDI specifications"};
  return {Handover::kNodes, why_not + ", so the kubelet passes on device nodes and files"};
}

}  // namespace nos::agent
