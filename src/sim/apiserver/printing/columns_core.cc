#include "sim/apiserver/printing/columns_core.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace nos::sim {
namespace {

const JsonArray& ListOf(const Json* list) {
  static const JsonArray kNone;
  return list != nullptr && list->is_array() ? list->get_array() : kNone;
}

Json NodeStatus(const Json& node, Time /*now*/) {
  std::string status = "Unknown";
  for (const Json& condition : ListOf(Find(node, "status", "conditions"))) {
    if (FindString(condition, "type") != "Ready") continue;
    status = FindString(condition, "status") == "True" ? "Ready" : "NotReady";
  }
  const Json* closed = Find(node, "spec", "unschedulable");
  if (closed != nullptr && *closed == true) status += ",SchedulingDisabled";
  return TextCell(status);
}

Json NodeRoles(const Json& node, Time /*now*/) {
  constexpr std::string_view kRolePrefix = "node-role.kubernetes.io/";
  std::vector<std::string> roles;
  const Json* labels = Find(node, "metadata", "labels");
  if (labels != nullptr && labels->is_object()) {
    for (const auto& [key, value] : labels->get_object()) {
      const std::string_view label(key.data(), key.size());
      if (label.starts_with(kRolePrefix) && label.size() > kRolePrefix.size()) {
        roles.emplace_back(label.substr(kRolePrefix.size()));
      } else if (label == "kubernetes.io/role" && value.is_string()) {
        roles.emplace_back(value.get_string());
      }
    }
  }
  std::sort(roles.begin(), roles.end());
  return TextCell(roles.empty() ? "<none>" : Join(roles, ","));
}

Json NodeAddress(const Json& node, std::string_view type) {
  for (const Json& address : ListOf(Find(node, "status", "addresses"))) {
    if (FindString(address, "type") == type) return TextCell(FindString(address, "address"));
  }
  return "<none>";
}

Column NodeInfo(std::string name, std::string field, int priority) {
  return {std::move(name), "string", "", priority,
          [field = std::move(field)](const Json& node, Time) {
            const auto text = FindString(node, "status", "nodeInfo", field);
            return TextCell(text.empty() ? "<unknown>" : text);
          }};
}

// The field of the core group or of events.k8s.io, whichever is present.
const Json* Either(const Json& event, std::string_view core, std::string_view renamed) {
  const Json* value = Find(event, core);
  return value != nullptr ? value : Find(event, renamed);
}

Json EventObject(const Json& event, Time /*now*/) {
  const Json* about = Either(event, "involvedObject", "regarding");
  if (about == nullptr) return "";
  std::string kind(FindString(*about, "kind"));
  return TextCell(fmt::format("{}/{}", ToLower(kind), FindString(*about, "name")));
}

const Json* NonNull(const Json* value) {
  return value != nullptr && !value->is_null() ? value : nullptr;
}

Json EventAge(const Json& event, Time now, std::string_view core, std::string_view renamed) {
  const Json* series = NonNull(Find(event, "series", "lastObservedTime"));
  const Json* when = NonNull(Either(event, core, renamed));
  if (core == "lastTimestamp" && series != nullptr) when = series;
  if (when == nullptr) when = NonNull(Find(event, "eventTime"));
  return AgeCell(when, now);
}

Json EventSource(const Json& event, Time /*now*/) {
  const Json* source = Either(event, "source", "deprecatedSource");
  std::vector<std::string> parts;
  if (source != nullptr) {
    for (const std::string_view field : {"component", "host"}) {
      const auto text = FindString(*source, field);
      if (!text.empty()) parts.emplace_back(text);
    }
  }
  if (parts.empty()) {
    const Json* reporter = Either(event, "reportingComponent", "reportingController");
    if (reporter != nullptr && reporter->is_string()) parts.emplace_back(reporter->get_string());
  }
  return TextCell(Join(parts, ", "));
}

Column EventText(std::string name, std::string core, std::string renamed, int priority = 0) {
  return {std::move(name), "string", "", priority,
          [core = std::move(core), renamed = std::move(renamed)](const Json& event, Time) {
            const Json* value = Either(event, core, renamed);
            const bool text = value != nullptr && value->is_string();
            return TextCell(text ? Trim(View(value->get_string())) : std::string_view());
          }};
}

Json ServicePorts(const Json& service, Time /*now*/) {
  std::vector<std::string> parts;
  for (const Json& port : ListOf(Find(service, "spec", "ports"))) {
    const Json* number = Find(port, "port");
    parts.push_back(fmt::format("{}/{}", number == nullptr ? "0" : WriteJson(*number),
                                FindString(port, "protocol")));
  }
  return TextCell(parts.empty() ? "<none>" : Join(parts, ","));
}

}  // namespace

std::vector<Column> NodeColumns() {
  const auto address = [](std::string type) {
    return [type = std::move(type)](const Json& node, Time) { return NodeAddress(node, type); };
  };
  return {
      {"Status", "string", "", 0, NodeStatus},
      {"Roles", "string", "", 0, NodeRoles},
      {"Age", "string", "", 0,
       [](const Json& node, Time now) {
         return AgeCell(Find(node, "metadata", "creationTimestamp"), now);
       }},
      NodeInfo("Version", "kubeletVersion", 0),
      {"Internal-IP", "string", "", 1, address("InternalIP")},
      {"External-IP", "string", "", 1, address("ExternalIP")},
      NodeInfo("OS-Image", "osImage", 1),
      NodeInfo("Kernel-Version", "kernelVersion", 1),
      NodeInfo("Container-Runtime", "containerRuntimeVersion", 1),
  };
}

std::vector<Column> ServiceColumns() {
  const auto text = [](std::string field) {
    return [field = std::move(field)](const Json& service, Time) {
      const auto value = FindString(service, "spec", field);
      return TextCell(value.empty() ? "<none>" : value);
    };
  };
  return {
      {"Type", "string", "", 0, text("type")},
      {"Cluster-IP", "string", "", 0, text("clusterIP")},
      {"External-IP", "string", "", 0, [](const Json&, Time) { return TextCell("<none>"); }},
      {"Port(s)", "string", "", 0, ServicePorts},
  };
}

std::vector<Column> EventColumns() {
  return {
      {"Last Seen", "string", "", 0,
       [](const Json& event, Time now) {
         return EventAge(event, now, "lastTimestamp", "deprecatedLastTimestamp");
       }},
      EventText("Type", "type", "type"),
      EventText("Reason", "reason", "reason"),
      {"Object", "string", "", 0, EventObject},
      {"Subobject", "string", "", 1,
       [](const Json& event, Time) {
         const Json* about = Either(event, "involvedObject", "regarding");
         return TextCell(about == nullptr ? "" : FindString(*about, "fieldPath"));
       }},
      {"Source", "string", "", 1, EventSource},
      EventText("Message", "message", "note"),
      {"First Seen", "string", "", 1,
       [](const Json& event, Time now) {
         return EventAge(event, now, "firstTimestamp", "deprecatedFirstTimestamp");
       }},
      {"Count", "string", "", 1,
       [](const Json& event, Time) {
         const Json* count = NonNull(Either(event, "count", "deprecatedCount"));
         return TextCell(count == nullptr ? "1" : WriteJson(*count));
       }},
      {"Name", "string", "name", 1,
       [](const Json& event, Time) { return TextCell(FindString(event, "metadata", "name")); }},
  };
}

}  // namespace nos::sim
