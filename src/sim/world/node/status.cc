#include "sim/world/node/status.h"

#include <fmt/format.h>

#include "base/text.h"

namespace nos::sim {
namespace {

// Format of metav1.MicroTime: "2026-01-02T03:04:05.000006Z".
std::string MicroTime(Time t) {
  const auto whole = std::chrono::floor<std::chrono::seconds>(t);
  const auto micros = std::chrono::floor<std::chrono::microseconds>(t - whole);
  std::string text = FormatTime(t);
  text.insert(text.size() - 1, fmt::format(".{:06}", micros.count()));
  return text;
}

std::optional<Duration> TimeIn(const cluster::Pod& pod, std::string_view annotation) {
  const auto found = pod.meta.annotations.find(std::string(annotation));
  if (found == pod.meta.annotations.end()) return std::nullopt;
  const std::optional<double> seconds = ParseDouble(found->second);
  if (!seconds || !(*seconds >= 0 && *seconds < 1e9)) return std::nullopt;
  return FromSeconds(*seconds);
}

}  // namespace

Json NodeStatusPatch(const NodeSpec& spec, const std::map<std::string, DeviceCount>& devices,
                     Time now, Time ready_since) {
  JsonObject capacity = {{"cpu", spec.cpu.ToString()},
                         {"memory", spec.memory.ToBinaryString()},
                         {"pods", fmt::to_string(spec.max_pods)}};
  JsonObject allocatable = capacity;
  for (const auto& [resource, count] : devices) {
    capacity[resource] = fmt::to_string(count.all);
    allocatable[resource] = fmt::to_string(count.healthy);
  }
  JsonArray conditions = {JsonObject{{"type", "Ready"},
                                     {"status", "True"},
                                     {"reason", "KubeletReady"},
                                     {"message", "kubelet is posting ready status"},
                                     {"lastHeartbeatTime", FormatTime(now)},
                                     {"lastTransitionTime", FormatTime(ready_since)}}};
  return JsonObject{
      {"status", JsonObject{{"capacity", std::move(capacity)},
                            {"allocatable", std::move(allocatable)},
                            {"conditions", std::move(conditions)},
                            {"addresses",
                             JsonArray{JsonObject{{"type", "Hostname"}, {"address", spec.name}}}},
                            {"nodeInfo", JsonObject{{"kubeletVersion", "v1.31.0"},
                                                    {"osImage", "nos sandbox"},
                                                    {"containerRuntimeVersion", "none://0"},
                                                    {"architecture", ArchitectureOf(spec)},
                                                    {"operatingSystem", "linux"}}}}}};
}

Json NodeLease(const std::string& node, std::string_view node_uid, Time now) {
  const JsonObject owner{{"apiVersion", "v1"}, {"kind", "Node"}, {"name", node}, {"uid", node_uid}};
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(kLeaseDuration).count();
  return JsonObject{{"metadata", JsonObject{{"name", node}, {"ownerReferences", JsonArray{owner}}}},
                    {"spec", JsonObject{{"holderIdentity", node},
                                        {"leaseDurationSeconds", seconds},
                                        {"renewTime", MicroTime(now)}}}};
}

Json LeaseRenewal(Time now) {
  return JsonObject{{"spec", JsonObject{{"renewTime", MicroTime(now)}}}};
}

std::string PodIp(uint32_t number) {
  return fmt::format("10.244.{}.{}", (number >> 8) & 0xff, number & 0xff);
}

std::optional<Duration> RunTime(const cluster::Pod& pod) { return TimeIn(pod, kRunSeconds); }

std::string EndsOf(const cluster::Pod& pod) {
  const auto ends = pod.meta.annotations.find(kEnds);
  return ends == pod.meta.annotations.end() ? "" : ends->second;
}

Duration InitTime(const cluster::Pod& pod) {
  return EndingContainers(pod).empty() ? Duration{}
                                       : TimeIn(pod, kInitSeconds).value_or(Duration{});
}

std::vector<std::string> EndingContainers(const cluster::Pod& pod) {
  std::vector<std::string> names;
  for (const cluster::Container& container : pod.init_containers) {
    if (!container.restart_always) names.push_back(container.name);
  }
  return names;
}

void AssignToContainers(const cluster::Pod& pod, const std::string& resource,
                        const std::vector<std::string>& device_ids,
                        std::vector<kubelet::DeviceAssignment>& assignments) {
  size_t next = 0;
  const auto give = [&](const std::string& container, size_t count) {
    for (; count > 0 && next < device_ids.size(); --count) {
      assignments.push_back({pod.meta.ns, pod.meta.name, container, resource, device_ids[next++]});
    }
  };
  const auto give_asked = [&](const cluster::Container& container) {
    const auto& asked =
        container.requests.contains(resource) ? container.requests : container.limits;
    const auto found = asked.find(resource);
    if (found != asked.end()) give(container.name, static_cast<size_t>(found->second.Value()));
  };
  for (const auto& container : pod.containers) give_asked(container);
  for (const auto& container : pod.init_containers) {
    if (container.restart_always) give_asked(container);
  }
  const std::vector<std::string> ending = EndingContainers(pod);
  if (!ending.empty()) give(ending[0], device_ids.size());
}

}  // namespace nos::sim
