#include "scheduler_differential/generate.h"

namespace nos::differential {
namespace {

Json Object(const char* version, const char* kind, const char* name, const JsonObject& rest,
            JsonObject labels = {}) {
  JsonObject object{{"apiVersion", version},
                    {"kind", kind},
                    {"metadata", JsonObject{{"name", name}, {"labels", std::move(labels)}}}};
  for (const auto& field : rest) object.insert(field);
  return object;
}

Json Priority(const char* name, int value, const char* policy = "PreemptLowerPriority") {
  return Object("scheduling.k8s.io/v1", "PriorityClass", name,
                {{"value", value}, {"preemptionPolicy", policy}});
}

Json Storage(const char* name, const char* provisioner, const char* mode, JsonArray zones = {}) {
  JsonObject rest{{"provisioner", provisioner}, {"volumeBindingMode", mode}};
  if (!zones.empty()) {
    JsonObject in{{"key", "topology.kubernetes.io/zone"}, {"values", std::move(zones)}};
    rest["allowedTopologies"] =
        JsonArray{JsonObject{{"matchLabelExpressions", JsonArray{std::move(in)}}}};
  }
  return Object("storage.k8s.io/v1", "StorageClass", name, rest);
}

}  // namespace

const std::vector<std::string> kNamespaceNames{"red", "green", "blue"};

std::vector<Json> CommonObjects(const DeviceApi& devices) {
  JsonObject blue;
  if (devices.any()) blue["resource.kubernetes.io/admin-access"] = "true";
  const char* none = "kubernetes.io/no-provisioner";
  const char* waits = "WaitForFirstConsumer";
  const JsonObject overhead{{"podFixed", JsonObject{{"cpu", "250m"}, {"memory", "120Mi"}}}};
  return {
      Object("v1", "Namespace", "red", {}, {{"team", "one"}}),
      Object("v1", "Namespace", "green", {}, {{"team", "two"}}),
      Object("v1", "Namespace", "blue", {}, std::move(blue)),
      Priority("low", -5),
      Priority("mid", 10),
      Priority("high", 1000),
      Priority("polite", 500, "Never"),
      Object("node.k8s.io/v1", "RuntimeClass", "heavy",
             {{"handler", "heavy"}, {"overhead", overhead}}),
      Object("node.k8s.io/v1", "RuntimeClass", "picky",
             {{"handler", "picky"},
              {"scheduling", JsonObject{{"nodeSelector", JsonObject{{"disk", "ssd"}}}}}}),
      Storage("manual", none, waits),
      Storage("made", "csi.example.com", waits),
      Storage("zonal", "csi.example.com", waits, {Json("z1"), Json("z2")}),
      // Volumes of this class are never provisioned.
      Storage("immediate", "csi.example.com", "Immediate"),
  };
}

}  // namespace nos::differential
