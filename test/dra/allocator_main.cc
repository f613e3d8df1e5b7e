// Answers allocation problems, one JSON object a line on stdin, one answer a line on stdout. Tests
// compare the answers with those of Kubernetes' own allocator (README.md).
//
// Problem: {"features": {"AdminAccess": true, ...}, "node": Node, "optionalNodeOperations": bool,
//   "slices": [ResourceSlice], "classes": [DeviceClass], "claims": [ResourceClaim],
//   "allocated": [an element of status.allocation.devices.results, ...], "maxSteps": 1000,
//   "ranking": "reverse"}
// Answer: {"kind": "Allocated" | "DoesNotFit" | "StepsExhausted" | "Refused", "fault":
// "MissingClass",
//   "message": "...", "nodeOnly": bool, "steps": 12, "allocations": [status.allocation, ...]}
#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "codec/json.h"
#include "dra/allocator.h"
#include "dra/cel_expressions.h"
#include "dra/result.h"

namespace nos::dra {
namespace {

// Tries the last device first.
class Backwards final : public DeviceRanking {
 public:
  void Rank(const NodeView&, std::span<const DeviceChoice>,
            std::vector<DeviceChoice>& devices) const override {
    std::reverse(devices.begin(), devices.end());
  }
};

bool Flag(const Json& json, std::string_view key) {
  const Json* found = Find(json, key);
  return found != nullptr && found->is_bool() && found->get_bool();
}

Features FeaturesOf(const Json& json) {
  Features features;
  features.admin_access = Flag(json, "AdminAccess");
  features.prioritized_list = Flag(json, "PrioritizedList");
  features.partitionable_devices = Flag(json, "PartitionableDevices");
  features.consumable_capacity = Flag(json, "ConsumableCapacity");
  features.fractional_capacity = Flag(json, "FractionalCapacityRange");
  features.binding_conditions = Flag(json, "DeviceBindingAndStatus");
  features.device_taints = Flag(json, "DeviceTaints");
  features.list_attributes = Flag(json, "ListTypeAttributes");
  features.derived_attributes = Flag(json, "DerivedAttributes");
  features.compatibility_groups = Flag(json, "CompatibilityGroups");
  features.optional_node_operations = Flag(json, "OptionalNodeOperations");
  return features;
}

// Reads the elements of a list in the problem.
template <typename T>
Result<std::vector<std::shared_ptr<const T>>> ReadAll(const Json& problem, std::string_view key,
                                                      Status (*read)(JsonSource, T&)) {
  std::vector<std::shared_ptr<const T>> all;
  const Json* list = Find(problem, key);
  if (list == nullptr || !list->is_array()) return all;
  for (const Json& entry : list->get_array()) {
    auto object = std::make_shared<T>();
    const Status status = read(entry, *object);
    if (!status.ok()) return status.Within(key);
    all.push_back(std::move(object));
  }
  return all;
}

// Each allocated device belongs to a claim of its own.
Status AddAllocated(const Json& problem, Inventory& inventory) {
  const Json* list = Find(problem, "allocated");
  if (list == nullptr || !list->is_array()) return Status::Ok();
  size_t number = 0;
  for (const Json& entry : list->get_array()) {
    const Json claim = {
        {"metadata", {{"name", "c"}}},
        {"status", {{"allocation", {{"devices", {{"results", JsonArray{entry}}}}}}}}};
    ResourceClaim read;
    NOS_RETURN_IF_ERROR(ReadResourceClaim(claim, read));
    inventory.Allocate("allocated-" + std::to_string(number++), *read.allocation);
  }
  return Status::Ok();
}

const char* KindName(AllocationOutcome::Kind kind) {
  switch (kind) {
    case AllocationOutcome::Kind::kAllocated:
      return "Allocated";
    case AllocationOutcome::Kind::kDoesNotFit:
      return "DoesNotFit";
    case AllocationOutcome::Kind::kStepsExhausted:
      return "StepsExhausted";
    case AllocationOutcome::Kind::kRefused:
      break;
  }
  return "Refused";
}

Json Write(const AllocationOutcome& outcome) {
  JsonArray allocations;
  for (const Allocation& allocation : outcome.allocations) {
    allocations.push_back(WriteAllocation(allocation));
  }
  return {{"kind", KindName(outcome.kind)},   {"fault", FaultName(outcome.fault.fault)},
          {"message", outcome.fault.message}, {"nodeOnly", outcome.fault.node_only},
          {"steps", outcome.steps},           {"allocations", std::move(allocations)}};
}

Result<Json> Answer(std::string_view line, const CelExpressions& expressions) {
  NOS_ASSIGN(const Json problem, ParseJson(line));
  const Json* features = Find(problem, "features");
  Inventory inventory(FeaturesOf(features == nullptr ? Json() : *features), expressions);
  NOS_ASSIGN(const auto slices, ReadAll<ResourceSlice>(problem, "slices", ReadResourceSlice));
  NOS_ASSIGN(const auto classes, ReadAll<DeviceClass>(problem, "classes", ReadDeviceClass));
  NOS_ASSIGN(const auto claims, ReadAll<ResourceClaim>(problem, "claims", ReadResourceClaim));
  for (const auto& slice : slices) inventory.PutSlice(slice);
  NOS_RETURN_IF_ERROR(AddAllocated(problem, inventory));
  cluster::Node node;
  if (const Json* json = Find(problem, "node")) NOS_RETURN_IF_ERROR(cluster::ReadNode(*json, node));
  AllocationOptions options;
  options.optional_node_operations = Flag(problem, "optionalNodeOperations");
  if (const Json* steps = Find(problem, "maxSteps"); steps != nullptr && steps->is_int64()) {
    options.max_steps = steps->get_int64();
  }
  const Backwards backwards;
  if (FindString(problem, "ranking") == "reverse") options.ranking = &backwards;
  const PreparedClaims prepared(
      claims,
      [&](const std::string& name) -> std::shared_ptr<const DeviceClass> {
        for (const auto& found : classes) {
          if (found->name == name) return found;
        }
        return nullptr;
      },
      inventory.features());
  return Write(Allocate(inventory, prepared, node, options));
}

}  // namespace
}  // namespace nos::dra

int main() {
  const nos::dra::CelExpressions expressions;  // for all problems
  std::string line;
  while (std::getline(std::cin, line)) {
    const auto answer = nos::dra::Answer(line, expressions);
    std::cout << nos::WriteJson(answer.ok() ? *answer
                                            : nos::Json{{"kind", "Unreadable"},
                                                        {"message", answer.status().message()}})
              << std::endl;
  }
}
