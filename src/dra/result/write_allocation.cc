#include "base/clock.h"
#include "dra/result.h"

namespace nos::dra {
namespace {

JsonArray ListOf(const std::vector<std::string>& texts) {
  JsonArray list;
  for (const std::string& text : texts) list.emplace_back(text);
  return list;
}

void Set(JsonObject& object, std::string_view key, const std::string& text) {
  if (!text.empty()) object[key] = text;
}

void Set(JsonObject& object, std::string_view key, const std::vector<std::string>& texts) {
  if (!texts.empty()) object[key] = ListOf(texts);
}

JsonArray RequirementsOf(const std::vector<cluster::SelectorRequirement>& requirements) {
  JsonArray list;
  for (const cluster::SelectorRequirement& requirement : requirements) {
    JsonObject entry;
    entry["key"] = requirement.key;
    entry["operator"] = requirement.op;
    Set(entry, "values", requirement.values);
    list.emplace_back(std::move(entry));
  }
  return list;
}

JsonArray TolerationsOf(const std::vector<DeviceToleration>& tolerations) {
  JsonArray list;
  for (const DeviceToleration& toleration : tolerations) {
    JsonObject entry;
    Set(entry, "key", toleration.key);
    Set(entry, "operator", toleration.op);
    Set(entry, "value", toleration.value);
    Set(entry, "effect", toleration.effect);
    if (toleration.seconds) entry["tolerationSeconds"] = *toleration.seconds;
    list.emplace_back(std::move(entry));
  }
  return list;
}

JsonObject DeviceJson(const AllocatedDevice& device) {
  JsonObject entry;
  entry["request"] = device.request;
  entry["driver"] = device.driver.str();
  entry["pool"] = device.pool.str();
  entry["device"] = device.device.str();
  if (device.admin_access) entry["adminAccess"] = *device.admin_access;
  if (!device.tolerations.empty()) entry["tolerations"] = TolerationsOf(device.tolerations);
  Set(entry, "bindingConditions", device.binding_conditions);
  Set(entry, "bindingFailureConditions", device.binding_failure_conditions);
  Set(entry, "shareID", device.share_id);
  if (!device.consumed_capacity.empty()) {
    JsonObject capacity;
    for (const auto& [name, amount] : device.consumed_capacity) {
      capacity[name.str()] = amount.ToBinaryString();
    }
    entry["consumedCapacity"] = std::move(capacity);
  }
  Set(entry, "skipNodeOperations", device.skip_node_operations);
  return entry;
}

JsonObject ConfigJson(const AllocatedConfig& config) {
  JsonObject entry;
  entry["source"] = config.source;
  Set(entry, "requests", config.requests);
  if (!config.opaque) return entry;
  JsonObject opaque;
  opaque["driver"] = config.opaque->driver;
  // The reader has accepted it as JSON.
  opaque["parameters"] = ParseJson(config.opaque->parameters).value_or(Json());
  entry["opaque"] = std::move(opaque);
  return entry;
}

Json SelectorJson(const std::vector<cluster::NodeSelectorTerm>& terms) {
  JsonArray list;
  for (const cluster::NodeSelectorTerm& term : terms) {
    JsonObject entry;
    if (!term.match_expressions.empty()) {
      entry["matchExpressions"] = RequirementsOf(term.match_expressions);
    }
    if (!term.match_fields.empty()) entry["matchFields"] = RequirementsOf(term.match_fields);
    list.emplace_back(std::move(entry));
  }
  return JsonObject{{"nodeSelectorTerms", std::move(list)}};
}

}  // namespace

Json WriteAllocation(const Allocation& allocation) {
  JsonObject devices;
  JsonArray results, config;
  for (const AllocatedDevice& device : allocation.devices) results.emplace_back(DeviceJson(device));
  for (const AllocatedConfig& entry : allocation.config) config.emplace_back(ConfigJson(entry));
  if (!results.empty()) devices["results"] = std::move(results);
  if (!config.empty()) devices["config"] = std::move(config);
  JsonObject json;
  json["devices"] = std::move(devices);
  if (allocation.node_selector) json["nodeSelector"] = SelectorJson(*allocation.node_selector);
  if (allocation.time) json["allocationTimestamp"] = FormatTime(*allocation.time);
  return json;
}

}  // namespace nos::dra
