#include "agent/device_plugin/handover.h"

#include <fmt/core.h>

#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "agent/device_plugin/host_devices.h"
#include "base/text.h"
#include "device/cdi_spec.h"

namespace nos::agent {
namespace {

using kubelet::Handover;

// Major and minor number of "containerd://2.1.4-k3s1"; absent for another runtime.
std::optional<std::pair<int64_t, int64_t>> VersionOf(std::string_view runtime,
                                                     std::string_view name) {
  if (!runtime.starts_with(name)) return std::nullopt;
  runtime.remove_prefix(name.size());
  const auto parts = Split(runtime, '.');
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

}  // namespace

HandoverChoice ChooseHandover(const HandoverFacts& facts) {
  if (!facts.driver_files) {
    return {Handover::kEnvironment,
            "the agent does not see the driver's files (driverRoot), so NVIDIA's "
            "container runtime has to add them"};
  }
  if (ReadsCdi(facts.runtime)) {
    return {Handover::kCdi, facts.runtime + " reads CDI specifications"};
  }
  if (facts.other_specs) {
    return {Handover::kCdi, "other programs write CDI specifications on this node"};
  }
  return {Handover::kNodes,
          fmt::format("{} may ignore CDI specifications, so the kubelet passes on device nodes and "
                      "files",
                      facts.runtime.empty() ? "the container runtime" : facts.runtime)};
}

bool HasSpecsOfOthers(const std::string& cdi_folder) {
  std::error_code error;
  for (std::filesystem::directory_iterator it(cdi_folder, error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    const bool spec = name.ends_with(".json") || name.ends_with(".yaml");
    if (spec && !name.starts_with('.') && name != device::CdiFileName(kCdiKind)) return true;
  }
  return false;
}

}  // namespace nos::agent
