#include <fmt/format.h>

#include "base/text.h"
#include "sim/apiserver/printing/columns_core.h"

namespace nos::sim {
namespace {

const JsonArray& ListAt(const Json& object, std::string_view a, std::string_view b) {
  static const JsonArray kNone;
  const Json* list = Find(object, a, b);
  return list != nullptr && list->is_array() ? list->get_array() : kNone;
}

int64_t IntAt(const Json* value) {
  return value != nullptr && value->is_int64() ? value->get_int64() : 0;
}

bool IsTrue(const Json* value) { return value != nullptr && *value == true; }

// The reason of a waiting or terminated container.
std::string StateReason(const Json& status) {
  if (const Json* waiting = Find(status, "state", "waiting")) {
    return std::string(FindString(*waiting, "reason"));
  }
  const Json* ended = Find(status, "state", "terminated");
  if (ended == nullptr) return "";
  if (const auto reason = FindString(*ended, "reason"); !reason.empty()) {
    return std::string(reason);
  }
  const int64_t signal = IntAt(Find(*ended, "signal"));
  if (signal != 0) return fmt::format("Signal:{}", signal);
  return fmt::format("ExitCode:{}", IntAt(Find(*ended, "exitCode")));
}

// "Init:1/3" or "Init:Error" while init containers run; "" after they have completed.
std::string InitReason(const Json& pod) {
  const JsonArray& statuses = ListAt(pod, "status", "initContainerStatuses");
  const size_t all = ListAt(pod, "spec", "initContainers").size();
  for (size_t i = 0; i < statuses.size(); ++i) {
    const Json* ended = Find(statuses[i], "state", "terminated");
    if (ended != nullptr && IntAt(Find(*ended, "exitCode")) == 0) continue;
    const std::string reason = StateReason(statuses[i]);
    if (reason.empty() || reason == "PodInitializing") return fmt::format("Init:{}/{}", i, all);
    return "Init:" + reason;
  }
  return "";
}

std::string_view ConditionReason(const Json& pod, std::string_view type) {
  for (const Json& condition : ListAt(pod, "status", "conditions")) {
    if (FindString(condition, "type") == type) return FindString(condition, "reason");
  }
  return {};
}

std::string PodStatus(const Json& pod) {
  std::string reason(FindString(pod, "status", "phase"));
  if (const auto given = FindString(pod, "status", "reason"); !given.empty()) reason = given;
  if (ConditionReason(pod, "PodScheduled") == "SchedulingGated") reason = "SchedulingGated";
  const std::string init = InitReason(pod);
  if (!init.empty()) {
    reason = init;
  } else {
    bool running = false;
    for (const Json& status : ListAt(pod, "status", "containerStatuses")) {
      const std::string state = StateReason(status);
      if (!state.empty()) reason = state;
      running = running || (IsTrue(Find(status, "ready")) && state.empty());
    }
    // Some containers have ended, others still run.
    if (reason == "Completed" && running) reason = "Running";
  }
  if (Find(pod, "metadata", "deletionTimestamp") == nullptr) return reason;
  const bool over = reason == "Completed" || reason == "Succeeded" || reason == "Failed";
  return over ? reason : "Terminating";
}

Json ReadyCell(const Json& pod, Time /*now*/) {
  size_t ready = 0;
  for (const Json& status : ListAt(pod, "status", "containerStatuses")) {
    ready += IsTrue(Find(status, "ready")) ? 1 : 0;
  }
  return TextCell(fmt::format("{}/{}", ready, ListAt(pod, "spec", "containers").size()));
}

Json RestartsCell(const Json& pod, Time now) {
  int64_t restarts = 0;
  const Json* last = nullptr;
  for (const Json& status : ListAt(pod, "status", "containerStatuses")) {
    restarts += IntAt(Find(status, "restartCount"));
    const Json* ended = Find(status, "lastState", "terminated", "finishedAt");
    if (ended != nullptr) last = ended;
  }
  if (restarts == 0 || last == nullptr) return TextCell(fmt::to_string(restarts));
  return TextCell(fmt::format("{} ({} ago)", restarts, View(AgeCell(last, now).get_string())));
}

Json OrNone(std::string_view text) { return TextCell(text.empty() ? "<none>" : text); }

bool HasTrueCondition(const Json& pod, std::string_view type) {
  for (const Json& condition : ListAt(pod, "status", "conditions")) {
    if (FindString(condition, "type") == type) return FindString(condition, "status") == "True";
  }
  return false;
}

Json GatesCell(const Json& pod, Time /*now*/) {
  const JsonArray& gates = ListAt(pod, "spec", "readinessGates");
  if (gates.empty()) return "<none>";
  size_t passed = 0;
  for (const Json& gate : gates) {
    passed += HasTrueCondition(pod, FindString(gate, "conditionType")) ? 1 : 0;
  }
  return TextCell(fmt::format("{}/{}", passed, gates.size()));
}

}  // namespace

Json TextCell(std::string_view text) { return boost::json::string(text); }

Json LabelsCell(const Json* labels) {
  if (labels == nullptr || !labels->is_object() || labels->get_object().empty()) return "<none>";
  std::vector<std::string> parts;
  for (const auto& [key, value] : labels->get_object()) {
    const std::string text = value.is_string() ? std::string(value.get_string()) : WriteJson(value);
    parts.push_back(std::string(key) + "=" + text);
  }
  return TextCell(Join(parts, ","));
}

std::vector<Column> PodColumns() {
  const auto text = [](auto... path) {
    return [path...](const Json& pod, Time) { return OrNone(FindString(pod, path...)); };
  };
  return {
      {"Ready", "string", "", 0, ReadyCell},
      {"Status", "string", "", 0, [](const Json& pod, Time) { return TextCell(PodStatus(pod)); }},
      {"Restarts", "string", "", 0, RestartsCell},
      {"Age", "string", "", 0,
       [](const Json& pod, Time now) {
         return AgeCell(Find(pod, "metadata", "creationTimestamp"), now);
       }},
      {"IP", "string", "", 1, text("status", "podIP")},
      {"Node", "string", "", 1, text("spec", "nodeName")},
      {"Nominated Node", "string", "", 1, text("status", "nominatedNodeName")},
      {"Readiness Gates", "string", "", 1, GatesCell},
  };
}

}  // namespace nos::sim
