// Table columns by type (k8s.io/kubernetes/pkg/printers/internalversion).
#include <fmt/format.h>

#include "base/text.h"
#include "sim/apiserver/objects/json_path.h"
#include "sim/apiserver/printing/columns_core.h"
#include "sim/apiserver/printing/table.h"

namespace nos::sim {
namespace {

Column NameColumn() {
  return {"Name", "string", "name", 0, [](const Json& object, Time) {
            return TextCell(FindString(object, "metadata", "name"));
          }};
}

Column AgeColumn(int priority = 0) {
  return {"Age", "string", "", priority, [](const Json& object, Time now) {
            return AgeCell(Find(object, "metadata", "creationTimestamp"), now);
          }};
}

// A value as text; `missing` if it is absent or empty.
Column PathColumn(std::string name, std::string path, std::string missing = "<none>",
                  int priority = 0) {
  return {std::move(name), "string", "", priority,
          [path = std::move(path), missing = std::move(missing)](const Json& object, Time) {
            const auto values = EvaluatePath(path, object);
            if (values.empty() || values[0]->is_null() || *values[0] == "") {
              return TextCell(missing);
            }
            return values[0]->is_string() ? *values[0] : TextCell(WriteJson(*values[0]));
          }};
}

// The number of members or elements at a path.
Column CountColumn(std::string name, std::string path) {
  return {std::move(name), "integer", "", 0, [path = std::move(path)](const Json& object, Time) {
            const auto values = EvaluatePath(path, object);
            if (values.empty()) return Json(0);
            if (values[0]->is_object()) return Json(values[0]->get_object().size());
            return Json(values[0]->is_array() ? values[0]->get_array().size() : 0);
          }};
}

// "<ready>/<wanted>", e.g. "1/3".
Column RatioColumn(std::string name, std::string ready, std::string wanted) {
  return {std::move(name), "string", "", 0,
          [ready = std::move(ready), wanted = std::move(wanted)](const Json& object, Time) {
            const auto number = [&](const std::string& path) {
              const auto values = EvaluatePath(path, object);
              return values.empty() ? std::string("0") : WriteJson(*values[0]);
            };
            return TextCell(number(ready) + "/" + number(wanted));
          }};
}

Json JobStatus(const Json& job, Time /*now*/) {
  const auto holds = [&](std::string_view type) {
    const auto found =
        EvaluatePath(fmt::format(".status.conditions[?(@.type==\"{}\")].status", type), job);
    return !found.empty() && *found[0] == "True";
  };
  for (const std::string_view type : {"Complete", "Failed"}) {
    if (holds(type)) return TextCell(type);
  }
  if (Find(job, "metadata", "deletionTimestamp") != nullptr) return TextCell("Terminating");
  for (const std::string_view type : {"Suspended", "FailureTarget", "SuccessCriteriaMet"}) {
    if (holds(type)) return TextCell(type);
  }
  return TextCell("Running");
}

// "1/3", or for a queue of work "0/1 of 3".
Json JobCompletions(const Json& job, Time /*now*/) {
  const auto number = [&](std::string_view part, std::string_view field) {
    const Json* value = Find(job, part, field);
    return value != nullptr && value->is_int64() ? value->get_int64() : 0;
  };
  const int64_t succeeded = number("status", "succeeded");
  if (number("spec", "completions") > 0) {
    return TextCell(fmt::format("{}/{}", succeeded, number("spec", "completions")));
  }
  const int64_t parallel = number("spec", "parallelism");
  return TextCell(parallel > 1 ? fmt::format("{}/1 of {}", succeeded, parallel)
                               : fmt::format("{}/1", succeeded));
}

Json JobDuration(const Json& job, Time now) {
  const auto started = ParseTime(FindString(job, "status", "startTime"));
  if (!started.ok()) return TextCell("");
  const auto ended = ParseTime(FindString(job, "status", "completionTime"));
  return AgeCell(Find(job, "status", "startTime"), ended.ok() ? *ended : now);
}

std::vector<Column> JobColumns() {
  return {{"Status", "string", "", 0, JobStatus},
          {"Completions", "string", "", 0, JobCompletions},
          {"Duration", "string", "", 0, JobDuration}};
}

// "cpu: 0/1, pods: 2/3": the limits of containers, or all other amounts.
Json QuotaCell(const Json& quota, bool limits) {
  std::vector<std::string> parts;
  const Json* hard = Find(quota, "status", "hard");
  if (hard == nullptr || !hard->is_object() || hard->get_object().empty()) {
    hard = Find(quota, "spec", "hard");
  }
  if (hard == nullptr || !hard->is_object()) return TextCell("");
  for (const auto& [name, amount] : hard->get_object()) {
    const std::string key(name);
    if (key.starts_with("limits.") != limits || !amount.is_string()) continue;
    const std::string_view used = FindString(quota, "status", "used", key);
    parts.push_back(fmt::format("{}: {}/{}", key, used.empty() ? "0" : used,
                                std::string_view(amount.get_string())));
  }
  return TextCell(Join(parts, ", "));
}

// "pending", "allocated,reserved", "deleted,allocated".
Json ClaimState(const Json& claim, Time /*now*/) {
  const auto has = [&claim](std::string_view part, std::string_view field) {
    const Json* value = Find(claim, part, field);
    return value != nullptr && !value->is_null() && *value != JsonArray();
  };
  const bool deleted = has("metadata", "deletionTimestamp");
  std::vector<std::string> states;
  if (deleted) states.emplace_back("deleted");
  if (has("status", "allocation")) {
    states.emplace_back("allocated");
    if (has("status", "reservedFor")) states.emplace_back("reserved");
  } else if (!deleted) {
    states.emplace_back("pending");
  }
  return TextCell(Join(states, ","));
}

std::vector<Column> Middle(const ResourceType& type) {
  const std::string_view kind = type.kind;
  if (kind == "Namespace") return {PathColumn("Status", ".status.phase", "")};
  if (kind == "ConfigMap") return {CountColumn("Data", ".data")};
  if (kind == "Secret") return {PathColumn("Type", ".type"), CountColumn("Data", ".data")};
  if (kind == "ServiceAccount") return {CountColumn("Secrets", ".secrets")};
  if (kind == "Lease") return {PathColumn("Holder", ".spec.holderIdentity", "")};
  if (kind == "PriorityClass") {
    return {PathColumn("Value", ".value", "0"),
            PathColumn("Global-Default", ".globalDefault", "false")};
  }
  if (kind == "PodDisruptionBudget") {
    return {PathColumn("Min Available", ".spec.minAvailable", "N/A"),
            PathColumn("Max Unavailable", ".spec.maxUnavailable", "N/A"),
            PathColumn("Allowed Disruptions", ".status.disruptionsAllowed", "0")};
  }
  if (kind == "Deployment" || kind == "StatefulSet") {
    std::vector<Column> columns{RatioColumn("Ready", ".status.readyReplicas", ".spec.replicas")};
    if (kind == "StatefulSet") return columns;
    columns.push_back(PathColumn("Up-to-date", ".status.updatedReplicas", "0"));
    columns.push_back(PathColumn("Available", ".status.availableReplicas", "0"));
    return columns;
  }
  if (kind == "ReplicaSet" || kind == "ReplicationController") {
    return {PathColumn("Desired", ".spec.replicas", "0"),
            PathColumn("Current", ".status.replicas", "0"),
            PathColumn("Ready", ".status.readyReplicas", "0")};
  }
  if (kind == "DaemonSet") {
    return {PathColumn("Desired", ".status.desiredNumberScheduled", "0"),
            PathColumn("Current", ".status.currentNumberScheduled", "0"),
            PathColumn("Ready", ".status.numberReady", "0"),
            PathColumn("Up-to-date", ".status.updatedNumberScheduled", "0"),
            PathColumn("Available", ".status.numberAvailable", "0")};
  }
  if (kind == "Job") return JobColumns();
  if (kind == "ResourceQuota") {
    return {{"Request", "string", "", 0, [](const Json& q, Time) { return QuotaCell(q, false); }},
            {"Limit", "string", "", 0, [](const Json& q, Time) { return QuotaCell(q, true); }}};
  }
  if (kind == "CronJob") {
    return {PathColumn("Schedule", ".spec.schedule"),
            PathColumn("Suspend", ".spec.suspend", "False")};
  }
  if (kind == "Service") return ServiceColumns();
  if (kind == "PersistentVolumeClaim") {
    return {PathColumn("Status", ".status.phase", ""), PathColumn("Volume", ".spec.volumeName", ""),
            PathColumn("Capacity", ".status.capacity.storage", ""),
            PathColumn("StorageClass", ".spec.storageClassName", "")};
  }
  if (kind == "PersistentVolume") {
    return {PathColumn("Capacity", ".spec.capacity.storage", ""),
            PathColumn("Reclaim Policy", ".spec.persistentVolumeReclaimPolicy", ""),
            PathColumn("Status", ".status.phase", ""),
            PathColumn("StorageClass", ".spec.storageClassName", "")};
  }
  if (kind == "StorageClass") return {PathColumn("Provisioner", ".provisioner")};
  if (kind == "ResourceClaim") return {{"State", "string", "", 0, ClaimState}};
  if (kind == "ResourceSlice") {
    return {PathColumn("Node", ".spec.nodeName", ""), PathColumn("Driver", ".spec.driver", ""),
            PathColumn("Pool", ".spec.pool.name", "")};
  }
  if (kind == "RuntimeClass") return {PathColumn("Handler", ".handler")};
  return {};
}

std::vector<Column> Tail(const ResourceType& type) {
  std::vector<Column> columns;
  if (type.pod_template == "spec.template" && type.group == "apps") {
    columns.push_back(PathColumn("Containers", ".spec.template.spec.containers[0].name", "", 1));
    columns.push_back(PathColumn("Images", ".spec.template.spec.containers[0].image", "", 1));
    columns.push_back({"Selector", "string", "", 1, [](const Json& object, Time) {
                         return LabelsCell(Find(object, "spec", "selector", "matchLabels"));
                       }});
  }
  if (type.kind == "PriorityClass") {
    columns.push_back(PathColumn("PreemptionPolicy", ".preemptionPolicy", "", 0));
  }
  return columns;
}

// A cell of a CustomResourceDefinition's column: multiple matches are joined, dates become ages.
Json CustomCell(const std::string& path, const std::string& type, const Json& object, Time now) {
  const auto values = EvaluatePath(path, object);
  if (values.empty()) return nullptr;
  if (type == "date") return AgeCell(values[0], now);
  if (values.size() == 1 && type != "string") return *values[0];
  std::vector<std::string> texts;
  texts.reserve(values.size());
  for (const Json* value : values) {
    texts.push_back(value->is_string() ? std::string(value->get_string()) : WriteJson(*value));
  }
  return TextCell(Join(texts, ","));
}

std::vector<Column> CustomColumns(const CustomType& custom) {
  std::vector<Column> columns{NameColumn()};
  if (!custom.columns.is_array() || custom.columns.get_array().empty()) {
    columns.push_back(AgeColumn());
    return columns;
  }
  for (const Json& json : custom.columns.get_array()) {
    Column column;
    column.name = FindString(json, "name");
    column.type = FindString(json, "type");
    column.format = FindString(json, "format");
    const Json* priority = Find(json, "priority");
    if (priority != nullptr && priority->is_int64()) {
      column.priority = static_cast<int>(priority->get_int64() & 0xffff);
    }
    column.cell = [path = std::string(FindString(json, "jsonPath")), type = column.type](
                      const Json& object, Time now) { return CustomCell(path, type, object, now); };
    columns.push_back(std::move(column));
  }
  return columns;
}

}  // namespace

std::vector<Column> ColumnsOf(const ResourceType& type) {
  if (type.custom != nullptr) return CustomColumns(*type.custom);
  if (type.kind == "Event") return EventColumns();
  if (type.kind == "CustomResourceDefinition") {
    return {NameColumn(), PathColumn("Created At", ".metadata.creationTimestamp", "")};
  }
  std::vector<Column> columns{NameColumn()};
  const auto add = [&](std::vector<Column> more) {
    for (Column& column : more) columns.push_back(std::move(column));
  };
  if (type.kind == "Pod") add(PodColumns());
  if (type.kind == "Node") add(NodeColumns());
  add(Middle(type));
  if (type.kind != "Pod" && type.kind != "Node") columns.push_back(AgeColumn());
  add(Tail(type));
  return columns;
}

}  // namespace nos::sim
