#include "agent/device_plugin/handover.h"

#include <optional>
#include <string_view>
#include <utility>

#include "base/text.h"

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

bool ReadsCdi(std::string_view runtime) {
  const auto containerd = VersionOf(runtime, "containerd://");
  const auto crio = VersionOf(runtime, "cri-o://");
  return (containerd && *containerd >= std::pair<int64_t, int64_t>(2, 0)) ||
         (crio && *crio >= std::pair<int64_t, int64_t>(1, 28));
}

bool PassesCdi(std::string_view kubelet) {
  const auto version = VersionOf(kubelet, "v");
  return version && *version >= std::pair<int64_t, int64_t>(1, 29);
}

}  // namespace

std::string WhyNoCdi(const HandoverFacts& facts) {
  const bool reads = ReadsCdi(facts.runtime);
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
