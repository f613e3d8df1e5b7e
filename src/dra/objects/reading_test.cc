#include "dra/objects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dra/result.h"

namespace nos::dra {
namespace {

constexpr const char* kSlice = R"({
  "metadata": {"name": "0-node-1", "uid": "u"},
  "spec": {
    "driver": "gpu.example.com", "nodeName": "node-1", "future": {"a": [1]},
    "pool": {"name": "node-1", "generation": 3, "resourceSliceCount": 2},
    "devices": [{
      "name": "gpu-0",
      "attributes": {"model": {"string": "a"}, "numa": {"int": 1}, "ok": {"bool": true},
                     "driver": {"version": "1.2.3"}, "links": {"strings": ["x", "y"]},
                     "new": {"future": 1}},
      "capacity": {"memory": {"value": "10Gi", "requestPolicy": {"default": "1Gi",
                   "validRange": {"min": "1Gi", "max": "4Gi", "step": "512Mi"}}}},
      "consumesCounters": [{"counterSet": "gpu-0", "counters": {"slot-1": {"value": "1"},
                            "slot-0": {"value": "1"}}, "compatibilityGroups": ["mig"]}],
      "taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}],
      "bindsToNode": true, "bindingConditions": ["Cut"], "allowMultipleAllocations": true
    }]}})";

TEST(ReadResourceSliceTest, ReadsWhatAnAllocatorNeeds) {
  ResourceSlice slice;
  ASSERT_TRUE(ReadResourceSlice(kSlice, slice).ok());
  EXPECT_EQ(slice.driver.str(), "gpu.example.com");
  EXPECT_EQ(slice.generation, 3);
  EXPECT_EQ(slice.nodes.node_name, "node-1");
  ASSERT_EQ(slice.devices.size(), 1U);
  const Device& device = slice.devices.front();
  std::map<std::string, Attribute::Type> types;
  for (const auto& [name, value] : *device.attributes) types[name.str()] = value.type;
  using Type = Attribute::Type;
  EXPECT_EQ(types, (std::map<std::string, Type>{{"driver", Type::kVersion},
                                                {"links", Type::kString},
                                                {"model", Type::kString},
                                                {"new", Type::kUnknown},
                                                {"numa", Type::kInt},
                                                {"ok", Type::kBool}}));
  EXPECT_EQ(device.capacity->front().second.policy->valid_range->step,
            Quantity::FromValue(512 << 20));
  const Consumption& consumption = device.consumes->front();
  EXPECT_EQ(consumption.counters.front().first.str(), "slot-0") << "sorted by name";
  EXPECT_EQ(consumption.groups, std::vector<Name>{Name("mig")});
  EXPECT_TRUE(device.binds_to_node);
  EXPECT_TRUE(device.allow_multiple);
}

TEST(ReadResourceSliceTest, EqualPartsOfDevicesAreStoredOnce) {
  ResourceSlice a, b;
  ASSERT_TRUE(ReadResourceSlice(kSlice, a).ok());
  ASSERT_TRUE(ReadResourceSlice(kSlice, b).ok());
  EXPECT_EQ(a.devices[0].attributes.id(), b.devices[0].attributes.id());
  EXPECT_EQ(a.devices[0].consumes.id(), b.devices[0].consumes.id());
  EXPECT_NE(a.devices[0].attributes.id(), nullptr);
}

struct BadObject {
  const char* json;
  const char* path;
};

TEST(ReadResourceSliceTest, NamesTheFaultyField) {
  const BadObject cases[] = {
      {R"({"spec": {"driver": "d", "pool": {"name": "p"}}})", "metadata.name"},
      {R"({"metadata": {"name": "s"}, "spec": {"pool": {"name": "p"}}})", "spec.driver"},
      {R"({"metadata": {"name": "s"}, "spec": {"driver": "d"}})", "spec.pool.name"},
      {R"({"metadata": {"name": "s"}, "spec": {"driver": "d", "pool": {"name": "p"},
          "devices": [{}]}})",
       "spec.devices[0]"},
      {R"({"metadata": {"name": "s"}, "spec": {"driver": "d", "pool": {"name": "p"},
          "devices": [{"name": "x", "capacity": {"memory": {"value": "many"}}}]}})",
       "spec.devices[0].capacity[memory].value"},
      {R"({"metadata": {"name": "s"}, "spec": {"driver": "d", "pool": {"name": "p"},
          "devices": [{"name": "x", "attributes": {"a": {"int": 1, "string": "b"}}}]}})",
       "spec.devices[0].attributes[a].string"}};
  for (const BadObject& bad : cases) {
    ResourceSlice slice;
    const Status status = ReadResourceSlice(bad.json, slice);
    EXPECT_EQ(status.code(), Code::kInvalid) << bad.json;
    EXPECT_THAT(status.message(), testing::StartsWith(std::string(bad.path) + ":"));
  }
}

TEST(ReadResourceClaimTest, AllocationSurvivesWritingAndReading) {
  constexpr const char* kClaim = R"({
    "metadata": {"name": "c", "namespace": "n", "uid": "u", "finalizers": ["f"]},
    "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c",
      "allocationMode": "ExactCount", "count": 2, "selectors": [{"cel": {"expression": "true"}}],
      "capacity": {"requests": {"memory": "1Gi"}}}}]}},
    "status": {"reservedFor": [{"resource": "pods", "name": "p", "uid": "pu"}],
      "allocation": {"devices": {
        "results": [{"request": "r", "driver": "d", "pool": "p", "device": "x",
                     "shareID": "s", "consumedCapacity": {"memory": "2Gi"},
                     "tolerations": [{"key": "k", "operator": "Exists", "tolerationSeconds": 3}],
                     "bindingConditions": ["Cut"], "adminAccess": false}],
        "config": [{"source": "FromClass", "opaque": {"driver": "d", "parameters": {"a": 1}}}]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [
          {"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]},
        "allocationTimestamp": "2026-01-02T03:04:05Z"}}})";
  ResourceClaim claim;
  ASSERT_TRUE(ReadResourceClaim(kClaim, claim).ok());
  EXPECT_EQ(claim.requests.front().exactly->count, 2);
  EXPECT_EQ(claim.reserved_for.front().uid, "pu");
  const Json wanted = *Find(*ParseJson(kClaim), "status", "allocation");
  EXPECT_EQ(WriteAllocation(*claim.allocation), wanted);
}

TEST(ReadResourceClaimTest, RefusesParametersThatAreNoJson) {
  ResourceClaim claim;
  const Status status = ReadResourceClaim(
      R"({"metadata": {"name": "c"}, "spec": {"devices": {"config": [
          {"opaque": {"driver": "d", "parameters": {"a": tru}}}]}}})",
      claim);
  EXPECT_EQ(status.code(), Code::kInvalid);
}

TEST(ToleratesTest, Table) {
  const DeviceTaint taint{"k", "v", "NoSchedule", std::nullopt};
  const auto tolerates = [&](const char* key, const char* op, const char* value,
                             const char* effect) {
    return Tolerates({key, op, value, effect, std::nullopt}, taint);
  };
  EXPECT_TRUE(tolerates("k", "Exists", "", ""));
  EXPECT_TRUE(tolerates("", "Exists", "", ""));
  EXPECT_TRUE(tolerates("k", "Equal", "v", "NoSchedule"));
  EXPECT_TRUE(tolerates("k", "", "v", ""));
  EXPECT_FALSE(tolerates("k", "Equal", "w", ""));
  EXPECT_FALSE(tolerates("l", "Exists", "", ""));
  EXPECT_FALSE(tolerates("k", "Exists", "", "NoExecute"));
  EXPECT_FALSE(tolerates("k", "Future", "v", ""));
}

// Kubernetes 1.34 can select by class and by expression, which narrows the selection.
TEST(ReadDeviceTaintRuleTest, SelectorsThatAreNotKnownSelectNothing) {
  const auto selects = [](const std::string& selector) {
    DeviceTaintRule rule;
    const Status status = ReadDeviceTaintRule(
        *ParseJson(R"({"metadata": {"name": "r"}, "spec": {"deviceSelector": )" + selector +
                   R"(, "taint": {"key": "k", "effect": "NoSchedule"}}})"),
        rule);
    EXPECT_TRUE(status.ok()) << status.message();
    return Selects(rule, Name("d.io"), Name("p"), Name("d0"));
  };
  EXPECT_TRUE(selects(R"({"driver": "d.io"})"));
  EXPECT_FALSE(selects(R"({"deviceClassName": "c"})"));
  EXPECT_FALSE(selects(R"({"driver": "d.io", "selectors": [{"cel": {"expression": "true"}}]})"));
}

}  // namespace
}  // namespace nos::dra
