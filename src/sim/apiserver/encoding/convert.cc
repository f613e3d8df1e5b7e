#include "sim/apiserver/encoding/convert.h"

#include <utility>

namespace nos::sim {
namespace {

// {core v1, events.k8s.io/v1} (k8s.io/kubernetes/pkg/apis/events/v1/conversion.go).
constexpr std::pair<const char*, const char*> kEventFields[] = {
    {"involvedObject", "regarding"},
    {"message", "note"},
    {"source", "deprecatedSource"},
    {"firstTimestamp", "deprecatedFirstTimestamp"},
    {"lastTimestamp", "deprecatedLastTimestamp"},
    {"count", "deprecatedCount"},
    {"reportingComponent", "reportingController"},
};

void Rename(JsonObject& object, const char* from, const char* to) {
  Json* value = object.if_contains(from);
  if (value == nullptr) return;
  Json moved = std::move(*value);
  object.erase(from);
  object[to] = std::move(moved);
}

bool IsNewEvent(const ResourceType& type) { return type.group == "events.k8s.io"; }

}  // namespace

void ToStored(const ResourceType& type, const ResourceType& stored, Json& object) {
  JsonObject& root = object.get_object();
  if (IsNewEvent(type)) {
    for (const auto& [core, renamed] : kEventFields) Rename(root, renamed, core);
  }
  root["apiVersion"] = stored.ApiVersion();
  root["kind"] = stored.kind;
}

Json FromStored(const ResourceType& type, const Json& stored) {
  Json object = stored;
  JsonObject& root = object.get_object();
  if (IsNewEvent(type)) {
    for (const auto& [core, renamed] : kEventFields) Rename(root, core, renamed);
  }
  root["apiVersion"] = type.ApiVersion();
  root["kind"] = type.kind;
  return object;
}

}  // namespace nos::sim
