// A small world for tests of the allocator: slices, classes and claims from short JSON.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "codec/json.h"
#include "dra/allocator.h"
#include "dra/testing/table_expressions.h"

namespace nos::dra {

class World {
 public:
  explicit World(const Features& features = Features::Of(37)) : inventory(features, expressions) {
    auto any = std::make_shared<DeviceClass>();
    any->name = "any";
    classes[any->name] = any;
    node.meta.name = "n1";
  }

  // A slice of one pool on node n1; `spec` adds or replaces members.
  void Put(const std::string& name, const std::string& spec, const std::string& pool = "p",
           int count = 1, int generation = 1) {
    Json json = *ParseJson(R"({"driver": "d", "nodeName": "n1"})");
    json.get_object()["pool"] = {
        {"name", pool}, {"generation", generation}, {"resourceSliceCount", count}};
    const Json extra = *ParseJson(spec);
    for (const auto& member : extra.get_object()) {
      if (member.value().is_null()) {
        json.get_object().erase(member.key());
      } else {
        json.get_object()[member.key()] = member.value();
      }
    }
    auto slice = std::make_shared<ResourceSlice>();
    const Status status =
        ReadResourceSlice(Json{{"metadata", {{"name", name}}}, {"spec", json}}, *slice);
    EXPECT_TRUE(status.ok()) << status.message();
    inventory.PutSlice(slice);
  }

  // A claim with the members of spec.devices; request defaults: class any, ExactCount.
  std::shared_ptr<const ResourceClaim> Claim(const std::string& name, const std::string& devices) {
    auto claim = std::make_shared<ResourceClaim>();
    const Status status = ReadResourceClaim(Json{{"metadata", {{"name", name}, {"uid", name}}},
                                                 {"spec", {{"devices", *ParseJson(devices)}}}},
                                            *claim);
    EXPECT_TRUE(status.ok()) << status.message();
    const auto complete = [](ExactRequest& request) {
      if (request.device_class.empty()) request.device_class = "any";
      if (request.mode.empty()) request.mode = "ExactCount";
      if (request.count == 0) request.count = 1;
    };
    for (DeviceRequest& request : claim->requests) {
      if (request.exactly) complete(*request.exactly);
      for (ExactRequest& alternative : request.first_available) complete(alternative);
    }
    return claim;
  }

  AllocationOutcome Try(const std::string& devices, const AllocationOptions& options = {}) {
    return TryAll({Claim("c", devices)}, options);
  }
  AllocationOutcome TryAll(std::vector<std::shared_ptr<const ResourceClaim>> claims,
                           const AllocationOptions& options = {}) {
    const PreparedClaims prepared(
        std::move(claims),
        [&](const std::string& name) {
          const auto found = classes.find(name);
          return found == classes.end() ? nullptr : found->second;
        },
        inventory.features());
    return Allocate(inventory, prepared, node, options);
  }

  // "gpu-0 gpu-1", or the kind or fault.
  static std::string Text(const AllocationOutcome& outcome) {
    using Kind = AllocationOutcome::Kind;
    if (outcome.kind == Kind::kDoesNotFit) return "no";
    if (outcome.kind == Kind::kStepsExhausted) return "exhausted";
    if (outcome.kind == Kind::kRefused) return FaultName(outcome.fault.fault);
    std::string text;
    for (const Allocation& allocation : outcome.allocations) {
      for (const AllocatedDevice& device : allocation.devices) {
        text += (text.empty() ? "" : " ") + device.device.str();
      }
    }
    return text;
  }

  TableExpressions expressions;
  std::map<std::string, std::shared_ptr<const DeviceClass>> classes;
  cluster::Node node;
  Inventory inventory;
};

}  // namespace nos::dra
