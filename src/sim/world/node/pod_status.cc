#include "sim/world/node/pod_status.h"

#include <map>

namespace nos::sim {
namespace {

std::string_view Phase(PodStage stage) {
  switch (stage) {
    case PodStage::kStarting:
      return "Pending";
    case PodStage::kRunning:
      return "Running";
    case PodStage::kSucceeded:
      return "Succeeded";
    case PodStage::kFailed:
      return "Failed";
  }
  return "Unknown";
}

Json Condition(const cluster::Pod& pod, std::string_view type, bool holds,
               const PodStatusInput& input) {
  const std::string_view status = holds ? "True" : "False";
  const cluster::Condition* before = pod.FindCondition(type);
  const bool stays = before != nullptr && before->status == status;
  JsonObject condition = {
      {"type", type},
      {"status", status},
      {"lastTransitionTime", FormatTime(stays ? before->last_transition : input.now)}};
  if (!holds && input.stage == PodStage::kSucceeded) condition["reason"] = "PodCompleted";
  return condition;
}

// A failed pod whose containers never ran has no finish time.
JsonObject ContainerState(const PodStatusInput& input) {
  switch (input.stage) {
    case PodStage::kStarting:
      return {{"waiting", JsonObject{{"reason", "ContainerCreating"}}}};
    case PodStage::kRunning:
      return {{"running", JsonObject{{"startedAt", FormatTime(input.started)}}}};
    case PodStage::kSucceeded:
    case PodStage::kFailed:
      break;
  }
  const bool success = input.stage == PodStage::kSucceeded;
  return {{"terminated", JsonObject{{"exitCode", success ? 0 : 137},
                                    {"reason", success ? "Completed" : "Error"},
                                    {"startedAt", FormatTime(input.started)},
                                    {"finishedAt", FormatTime(input.finished)}}}};
}

// allocatedResourcesStatus: the devices of a container, by resource (KEP 4680).
JsonArray DevicesOf(const std::string& container, const PodStatusInput& input) {
  std::map<std::string, JsonArray> by_resource;
  for (const kubelet::DeviceAssignment& device : input.devices) {
    if (device.container != container) continue;
    by_resource[device.resource].push_back(
        JsonObject{{"resourceID", device.device_id}, {"health", "Healthy"}});
  }
  JsonArray out;
  for (auto& [resource, devices] : by_resource) {
    out.push_back(JsonObject{{"name", resource}, {"resources", std::move(devices)}});
  }
  return out;
}

JsonArray ContainerStatuses(const cluster::Pod& pod, const PodStatusInput& input) {
  JsonArray out;
  const bool running = input.stage == PodStage::kRunning;
  for (const auto& container : pod.containers) {
    JsonObject status{{"name", container.name},
                      {"image", "registry.k8s.io/pause:3.9"},
                      {"imageID", ""},
                      {"ready", running},
                      {"started", running},
                      {"restartCount", 0},
                      {"state", ContainerState(input)}};
    JsonArray devices = DevicesOf(container.name, input);
    if (!devices.empty()) status["allocatedResourcesStatus"] = std::move(devices);
    out.push_back(std::move(status));
  }
  return out;
}

}  // namespace

Json PodStatusPatch(const cluster::Pod& pod, const PodStatusInput& input) {
  const bool running = input.stage == PodStage::kRunning;
  JsonArray conditions = {Condition(pod, "PodScheduled", true, input),
                          Condition(pod, "Initialized", input.initialized, input),
                          Condition(pod, "ContainersReady", running, input),
                          Condition(pod, "Ready", running, input)};
  JsonObject status = {{"phase", Phase(input.stage)},
                       {"conditions", std::move(conditions)},
                       {"hostIP", input.node_ip}};
  if (!input.reason.empty()) {
    status["reason"] = input.reason;
    status["message"] = input.message;
  }
  const bool admitted = input.started != Time{} || input.stage != PodStage::kFailed;
  if (admitted) status["containerStatuses"] = ContainerStatuses(pod, input);
  if (input.started != Time{}) {
    status["startTime"] = FormatTime(input.started);
    status["podIP"] = input.pod_ip;
  }
  return JsonObject{{"metadata", JsonObject{{"uid", pod.meta.uid}}}, {"status", std::move(status)}};
}

}  // namespace nos::sim
