#include "dra/allocator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dra/allocation/world_test.h"

namespace nos::dra {
namespace {

using Kind = AllocationOutcome::Kind;

constexpr const char* kOne = R"({"requests": [{"name": "r", "exactly": {}}]})";

std::string Count(int count) {
  return R"({"requests": [{"name": "r", "exactly": {"count": )" + std::to_string(count) + "}}]}";
}

std::string Devices(int count, const std::string& extra = "") {
  std::string list;
  for (int i = 0; i < count; ++i) {
    list += (i == 0 ? "" : ",") + (R"({"name": "d)" + std::to_string(i) + "\"" + extra + "}");
  }
  return R"({"devices": [)" + list + "]}";
}

// One board of four slots: placements of one, two and four slots.
void PutBoard(World& world, const std::string& pool, const std::string& suffix = "") {
  std::string devices;
  const auto add = [&](const std::string& name, int first, int slots) {
    std::string needs;
    for (int i = first; i < first + slots; ++i) {
      needs += (i == first ? "" : ",") + ("\"slot-" + std::to_string(i)) + R"(": {"value": "1"})";
    }
    devices += (devices.empty() ? "" : ",") + (R"({"name": ")" + name + suffix) +
               R"(", "consumesCounters": [{"counterSet": "board", "counters": {)" + needs + "}}]}";
  };
  for (int i = 0; i < 4; ++i) add("1g-" + std::to_string(i), i, 1);
  add("2g-0", 0, 2);
  add("2g-2", 2, 2);
  add("4g-0", 0, 4);
  world.Put(pool + "-0", R"({"devices": [)" + devices + "]}", pool, 2);
  world.Put(pool + "-1",
            R"({"sharedCounters": [{"name": "board", "counters": {"slot-0": {"value": "1"},
                "slot-1": {"value": "1"}, "slot-2": {"value": "1"}, "slot-3": {"value": "1"}}}]})",
            pool, 2);
}

TEST(AllocateTest, FirstDevicesInOrder) {
  World world;
  world.Put("s", Devices(3));
  EXPECT_EQ(World::Text(world.Try(Count(2))), "d0 d1");
  EXPECT_EQ(World::Text(world.Try(Count(4))), "no");
}

TEST(AllocateTest, UseFollowsAllocateAndRelease) {
  World world;
  world.Put("s", Devices(2));
  const AllocationOutcome first = world.Try(kOne);
  world.inventory.Allocate("a", first.allocations.front());
  EXPECT_EQ(World::Text(world.Try(kOne)), "d1");
  world.inventory.Allocate("b", world.Try(kOne).allocations.front());
  EXPECT_EQ(World::Text(world.Try(kOne)), "no");
  world.inventory.Allocate("b", first.allocations.front());
  EXPECT_EQ(World::Text(world.Try(kOne)), "d1") << "the second call for b replaces the first";
  world.inventory.Release("b");
  EXPECT_EQ(World::Text(world.Try(kOne)), "d1") << "a still has d0";
  world.inventory.Release("a");
  world.inventory.Release("a");
  EXPECT_EQ(World::Text(world.Try(kOne)), "d0");
}

TEST(AllocateTest, CountersOfPartitions) {
  World world;
  PutBoard(world, "p");
  EXPECT_EQ(World::Text(world.Try(Count(4))), "1g-0 1g-1 1g-2 1g-3");
  EXPECT_EQ(World::Text(world.Try(Count(5))), "no");
  world.inventory.Allocate("a", world.Try(kOne).allocations.front());
  EXPECT_EQ(World::Text(world.Try(Count(3))), "1g-1 1g-2 1g-3");
  EXPECT_EQ(World::Text(world.Try(Count(4))), "no");
}

// Upstream forgets the counters of a device that its slice no longer lists.
TEST(AllocateTest, DeviceThatVanishesKeepsItsCounters) {
  for (const bool viewed : {false, true}) {
    World world;
    PutBoard(world, "p");
    if (viewed) {
      EXPECT_EQ(World::Text(world.Try(kOne)), "1g-0");
    }
    Allocation allocation;
    allocation.devices.emplace_back();
    allocation.devices[0].driver = Name("d");
    allocation.devices[0].pool = Name("p");
    allocation.devices[0].device = Name("4g-0");
    world.inventory.Allocate("a", allocation);
    EXPECT_EQ(World::Text(world.Try(kOne)), "no");
    world.Put("p-0",
              R"({"devices": [{"name": "1g-0", "consumesCounters": [
                  {"counterSet": "board", "counters": {"slot-0": {"value": "1"}}}]}]})",
              "p", 2);
    EXPECT_EQ(World::Text(world.Try(kOne)), "no") << viewed;
    world.inventory.Release("a");
    EXPECT_EQ(World::Text(world.Try(kOne)), "1g-0");
  }
}

TEST(AllocateTest, PoolsAreCompleteAndOfTheNewestGeneration) {
  World world;
  world.Put("s0", Devices(1), "p", 2);
  EXPECT_EQ(World::Text(world.Try(kOne)), "no") << "one of two slices";
  world.Put("s1", R"({"devices": [{"name": "e"}]})", "p", 2);
  EXPECT_EQ(World::Text(world.Try(Count(2))), "d0 e");
  world.Put("s2", R"({"devices": [{"name": "new"}]})", "p", 2, 2);
  EXPECT_EQ(World::Text(world.Try(kOne)), "no") << "generation 2 is incomplete";
  world.Put("s3", R"({"devices": [{"name": "newer"}]})", "p", 2, 2);
  EXPECT_EQ(World::Text(world.Try(Count(2))), "new newer");
  EXPECT_EQ(World::Text(world.Try(Count(3))), "no");
  world.inventory.RemoveSlice("s2");
  EXPECT_EQ(World::Text(world.Try(kOne)), "no");
}

TEST(AllocateTest, InvalidPoolsAreRefusedOnTheirNode) {
  const char* cases[] = {
      R"({"devices": [{"name": "a"}, {"name": "a"}]})",
      R"({"devices": [{"name": "a", "consumesCounters": [{"counterSet": "none"}]}]})"};
  for (const char* spec : cases) {
    World world;
    world.Put("s", spec);
    const AllocationOutcome outcome = world.Try(kOne);
    EXPECT_EQ(outcome.fault.fault, Fault::kPoolInvalid) << spec;
    EXPECT_TRUE(outcome.fault.node_only);
    world.Put("t", Devices(1), "other");
    EXPECT_EQ(World::Text(world.Try(kOne)), "d0") << "other pools serve";
  }
}

struct NodeCase {
  const char* spec;
  const char* devices;
  const char* selector;  // of the result, as field or label
};

TEST(AllocateTest, NodesOfSlicesAndDevices) {
  const NodeCase cases[] = {
      {R"({"devices": [{"name": "a"}]})", "a", "metadata.name"},
      {R"({"nodeName": "n2", "devices": [{"name": "a"}]})", "no", ""},
      {R"({"nodeName": null, "allNodes": true, "devices": [{"name": "a"}]})", "a", ""},
      {R"({"nodeName": null, "allNodes": true, "devices": [{"name": "a", "bindsToNode": true}]})",
       "a", "metadata.name"},
      {R"({"nodeName": null, "devices": [{"name": "a"}], "nodeSelector": {"nodeSelectorTerms": [
           {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z1"]}]}]}})",
       "a", "zone"},
      {R"({"nodeName": null, "devices": [{"name": "a"}], "nodeSelector": {"nodeSelectorTerms": [
           {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z2"]}]}]}})",
       "no", ""},
      {R"({"nodeName": null, "perDeviceNodeSelection": true, "devices": [
           {"name": "a", "nodeName": "n2"}, {"name": "b", "nodeName": "n1"},
           {"name": "c", "allNodes": true}, {"name": "e"}]})",
       "b", "metadata.name"},
      {R"({"nodeName": null, "devices": [{"name": "a"}]})", "no", ""}};
  for (const NodeCase& c : cases) {
    World world;
    world.node.meta.labels["zone"] = "z1";
    world.Put("s", c.spec);
    const AllocationOutcome outcome = world.Try(kOne);
    EXPECT_EQ(World::Text(outcome), c.devices) << c.spec;
    if (outcome.kind != Kind::kAllocated) continue;
    const auto& selector = outcome.allocations.front().node_selector;
    if (*c.selector == '\0') {
      EXPECT_FALSE(selector) << c.spec;
      continue;
    }
    ASSERT_TRUE(selector) << c.spec;
    const auto& term = selector->front();
    const auto& found =
        term.match_fields.empty() ? term.match_expressions.front() : term.match_fields.front();
    EXPECT_EQ(found.key, c.selector) << c.spec;
  }
}

TEST(AllocateTest, LabelsOfTheNodeMayChange) {
  World world;
  world.Put("s", R"({"nodeName": null, "devices": [{"name": "a"}], "nodeSelector": {
      "nodeSelectorTerms": [{"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}]}})");
  EXPECT_EQ(World::Text(world.Try(kOne)), "no");
  world.node.meta.labels["gpu"] = "";
  EXPECT_EQ(World::Text(world.Try(kOne)), "a");
}

TEST(AllocateTest, TaintsOfSlicesAndRules) {
  World world;
  world.Put("s", R"({"devices": [
      {"name": "a", "taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]},
      {"name": "b", "taints": [{"key": "k", "value": "v", "effect": "None"}]}]})");
  constexpr const char* kTolerant = R"({"requests": [{"name": "r", "exactly": {"tolerations": [
      {"key": "k", "operator": "Exists"}]}}]})";
  EXPECT_EQ(World::Text(world.Try(kOne)), "b");
  EXPECT_EQ(World::Text(world.Try(kTolerant)), "a");
  DeviceTaintRule rule;
  rule.name = "rule";
  rule.taint = {"k", "w", "NoExecute", std::nullopt};
  world.inventory.SetTaintRules({rule});
  EXPECT_EQ(World::Text(world.Try(kOne)), "b") << "a rule without a selector selects nothing";
  rule.selector.emplace();
  rule.selector->driver = "d";
  rule.selector->device = "b";
  world.inventory.SetTaintRules({rule});
  EXPECT_EQ(World::Text(world.Try(kOne)), "no");
  EXPECT_EQ(world.Try(kTolerant).allocations.front().devices.front().tolerations.size(), 1U);
  world.inventory.SetTaintRules({});
  EXPECT_EQ(World::Text(world.Try(kOne)), "b");
}

TEST(AllocateTest, SharesOfOneDevice) {
  World world;
  world.Put("s", R"({"devices": [{"name": "gpu", "allowMultipleAllocations": true,
      "capacity": {"memory": {"value": "10"}}}]})");
  constexpr const char* kFour = R"({"requests": [{"name": "r", "exactly": {
      "capacity": {"requests": {"memory": "4"}}}}]})";
  const auto allocate = [&](const char* uid) {
    const AllocationOutcome outcome = world.TryAll({world.Claim(uid, kFour)});
    if (outcome.kind == Kind::kAllocated) {
      world.inventory.Allocate(uid, outcome.allocations.front());
    }
    return outcome;
  };
  const AllocationOutcome first = allocate("a"), second = allocate("b");
  EXPECT_EQ(World::Text(first), "gpu");
  const AllocatedDevice& one = first.allocations.front().devices.front();
  const AllocatedDevice& two = second.allocations.front().devices.front();
  EXPECT_EQ(one.share_id.size(), 36U);
  EXPECT_NE(one.share_id, two.share_id);
  EXPECT_EQ(one.consumed_capacity.front().second, Quantity::FromValue(4));
  EXPECT_EQ(World::Text(allocate("c")), "no");
  world.inventory.Release("a");
  EXPECT_EQ(World::Text(allocate("c")), "gpu");
}

// Upstream gives such a device away again.
TEST(AllocateTest, SharedDeviceIsNotGivenAwayWhole) {
  Features features = Features::Of(37);
  features.consumable_capacity = false;
  World world(features);
  world.Put("s", R"({"devices": [{"name": "gpu", "allowMultipleAllocations": true}]})");
  Allocation allocation;
  allocation.devices.emplace_back();
  allocation.devices[0].driver = Name("d");
  allocation.devices[0].pool = Name("p");
  allocation.devices[0].device = Name("gpu");
  allocation.devices[0].share_id = "s";
  world.inventory.Allocate("a", allocation);
  EXPECT_EQ(World::Text(world.Try(kOne)), "no");
}

TEST(AllocateTest, AdminAccessLeavesDevicesAndCountersToOthers) {
  World world;
  PutBoard(world, "p");
  constexpr const char* kAdmin =
      R"({"requests": [{"name": "r", "exactly": {"adminAccess": true, "allocationMode": "All"}}]})";
  world.inventory.Allocate("a", world.Try(Count(4)).allocations.front());
  const AllocationOutcome outcome = world.Try(kAdmin);
  EXPECT_EQ(World::Text(outcome), "1g-0 1g-1 1g-2 1g-3 2g-0 2g-2 4g-0");
  EXPECT_TRUE(outcome.allocations.front().devices.front().admin());
  world.inventory.Release("a");
  world.inventory.Allocate("admin", outcome.allocations.front());
  EXPECT_EQ(World::Text(world.Try(Count(4))), "1g-0 1g-1 1g-2 1g-3");
}

TEST(AllocateTest, AlternativesInOrder) {
  World world;
  PutBoard(world, "p");
  world.classes["big"] = [] {
    auto big = std::make_shared<DeviceClass>();
    big->name = "big";
    big->selectors = {"false"};
    big->config = {OpaqueConfig{"d", "{}"}};
    return big;
  }();
  const AllocationOutcome outcome = world.Try(R"({"requests": [{"name": "r", "firstAvailable": [
      {"name": "big", "deviceClassName": "big"}, {"name": "five", "count": 5}, {"name": "two", "count": 2}]}],
      "config": [{"requests": ["r/five"], "opaque": {"driver": "d", "parameters": 1}},
                 {"requests": ["r/two"], "opaque": {"driver": "d", "parameters": 2}}]})");
  EXPECT_EQ(World::Text(outcome), "1g-0 1g-1");
  EXPECT_EQ(outcome.allocations.front().devices.front().request, "r/two");
  ASSERT_EQ(outcome.allocations.front().config.size(), 1U);
  EXPECT_EQ(outcome.allocations.front().config.front().opaque->parameters, "2");
}

TEST(AllocateTest, ConfigOfClassesComesFirstAndOnce) {
  World world;
  world.Put("s", Devices(4));
  auto configured = std::make_shared<DeviceClass>();
  configured->name = "configured";
  configured->config = {OpaqueConfig{"d", "1"}};
  world.classes["configured"] = configured;
  const AllocationOutcome outcome = world.Try(R"({"requests": [
      {"name": "a", "exactly": {"deviceClassName": "configured"}}, {"name": "b", "exactly": {}},
      {"name": "c", "exactly": {"deviceClassName": "configured"}}],
      "config": [{"opaque": {"driver": "d", "parameters": 2}},
                 {"requests": ["b"], "opaque": {"driver": "d", "parameters": 3}},
                 {"requests": ["c", "b", "a"], "opaque": {"driver": "d", "parameters": 4}}]})");
  std::string text;
  for (const AllocatedConfig& config : outcome.allocations.front().config) {
    text += config.source + config.opaque->parameters + ":";
    for (const std::string& request : config.requests) text += request;
    text += " ";
  }
  EXPECT_EQ(text, "FromClass1:ac FromClaim2: FromClaim3:b FromClaim4: ");
}

struct FaultCase {
  const char* devices;
  Fault fault;
};

TEST(AllocateTest, Faults) {
  Features features = Features::Of(34);
  World world(features);
  world.Put("s", Devices(2));
  const FaultCase cases[] = {
      {R"({"requests": [{"name": "r", "exactly": {"deviceClassName": "none"}}]})",
       Fault::kMissingClass},
      {R"({"requests": [{"name": "r"}]})", Fault::kUnsupportedRequest},
      {R"({"requests": [{"name": "r", "exactly": {"allocationMode": "Some"}}]})",
       Fault::kUnsupportedRequest},
      {R"({"requests": [{"name": "r", "exactly": {"selectors": [{}]}}]})",
       Fault::kUnsupportedRequest},
      {R"({"requests": [{"name": "r", "exactly": {}}], "constraints": [{}]})",
       Fault::kUnsupportedRequest},
      {R"({"requests": [{"name": "r", "exactly": {"count": 33}}]})", Fault::kTooManyDevices},
      {R"({"requests": [{"name": "r", "exactly": {"count": 9223372036854775807}},
                        {"name": "q", "exactly": {"count": 9223372036854775807}}]})",
       Fault::kTooManyDevices},
      {R"({"requests": [{"name": "r", "exactly": {"capacity": {"requests": {"m": "1"}}}}]})",
       Fault::kFeatureDisabled},
      {R"({"requests": [{"name": "r", "exactly": {"selectors": [{"cel": {"expression": "?"}}]}}]})",
       Fault::kExpressionFailed}};
  for (const FaultCase& c : cases) {
    const AllocationOutcome outcome = world.Try(c.devices);
    EXPECT_EQ(outcome.kind, Kind::kRefused) << c.devices;
    EXPECT_EQ(outcome.fault.fault, c.fault) << c.devices;
    EXPECT_FALSE(outcome.fault.message.empty());
  }
}

// The search is not shortened where a device is at fault.
TEST(AllocateTest, DerivedAttributeThatFailsIsAFault) {
  Features features = Features::Of(37);
  features.derived_attributes = true;
  World world(features);
  world.Put("s", Devices(2));
  constexpr const char* kThree = R"({"requests": [{"name": "r", "exactly": {"count": 3,
      "derivedAttributes": [{"name": "d.com/a", "expression": "?"}]}}],
      "constraints": [{"matchAttribute": "d.com/a"}]})";
  EXPECT_EQ(World::Text(world.Try(kThree)), "ExpressionFailed");
  world.expressions.AddDerived("?", "s", "d0", Attribute());
  world.expressions.AddDerived("?", "s", "d1", Attribute());
  EXPECT_EQ(World::Text(world.Try(kThree)), "no");
}

TEST(AllocateTest, CountersBesideDevicesServeTheirSlice) {
  World world;
  for (const char* name : {"s0", "s1"}) {
    world.Put(
        name,
        std::string(R"({"sharedCounters": [{"name": "board", "counters": {"slot": {"value": "1"}}}],
                  "devices": [{"name": "a-)") +
            name + R"(", "consumesCounters": [{"counterSet": "board", "counters": {
                  "slot": {"value": "1"}}}]}, {"name": "b-)" +
            name +
            R"(", "consumesCounters": [{"counterSet": "board", "counters": {
                  "slot": {"value": "1"}}}]}]})",
        "p", 2);
  }
  EXPECT_EQ(World::Text(world.Try(Count(2))), "a-s0 a-s1");
  EXPECT_EQ(World::Text(world.Try(Count(3))), "no");
}

TEST(AllocateTest, SelectorsAreEvaluatedOncePerContent) {
  World world;
  world.Put("s", Devices(20, R"(, "attributes": {"model": {"string": "a"}})"));
  constexpr const char* kModel = R"({"requests": [{"name": "r", "exactly": {"selectors": [
      {"cel": {"expression": "device.attributes[\"d\"].model == \"a\""}}]}}]})";
  EXPECT_EQ(World::Text(world.Try(kModel)), "d0");
  EXPECT_EQ(world.expressions.evaluated(), 1) << "20 devices have the same attributes";
  EXPECT_EQ(World::Text(world.Try(kModel)), "d0");
  EXPECT_EQ(world.expressions.evaluated(), 1);
}

TEST(SearchTest, EqualDevicesAreTriedOnce) {
  World world;
  world.Put("s", Devices(100, R"(, "attributes": {"model": {"string": "a"}})"));
  world.Put("t", R"({"devices": [{"name": "b", "attributes": {"model": {"string": "b"}}}]})", "q");
  // 20 devices of one model beside one of the other: C(100, 20) ways to fail.
  const AllocationOutcome outcome = world.Try(R"({"requests": [
      {"name": "r", "exactly": {"count": 20}}, {"name": "q", "exactly": {"count": 2}}],
      "constraints": [{"requests": ["r"], "matchAttribute": "d/model"},
                      {"requests": ["q"], "distinctAttribute": "d/model"},
                      {"matchAttribute": "d/model"}]})");
  EXPECT_EQ(outcome.kind, Kind::kDoesNotFit);
  EXPECT_LT(outcome.steps, 20'000);
}

TEST(SearchTest, LikeBoardsAreTriedOnce) {
  World world;
  for (int i = 0; i < 8; ++i) PutBoard(world, "p" + std::to_string(i), "-" + std::to_string(i));
  // 32 slots in 8 boards of 4; the second request needs a board that the first leaves none.
  auto four = std::make_shared<DeviceClass>();
  four->name = "four";
  four->selectors = {"four"};
  world.classes["four"] = four;
  for (int i = 0; i < 8; ++i) {
    const std::string pool = "p" + std::to_string(i);
    for (const char* name : {"1g-0", "1g-1", "1g-2", "1g-3", "2g-0", "2g-2", "4g-0"}) {
      world.expressions.Add("four", pool + "-0", name + ("-" + std::to_string(i)),
                            std::string(name) == "4g-0");
      world.expressions.Add("two", pool + "-0", name + ("-" + std::to_string(i)),
                            std::string(name).starts_with("2g"));
    }
  }
  constexpr const char* kClaim = R"({"requests": [
      {"name": "a", "exactly": {"count": 15, "selectors": [{"cel": {"expression": "two"}}]}},
      {"name": "b", "exactly": {"deviceClassName": "four"}}]})";
  const AllocationOutcome outcome = world.Try(kClaim);
  EXPECT_EQ(outcome.kind, Kind::kDoesNotFit) << World::Text(outcome);
  EXPECT_LT(outcome.steps, 200'000);
}

TEST(SearchTest, EndsAtTheBudget) {
  World world;
  std::string devices;
  for (int i = 0; i < 24; ++i) {
    const std::string number = std::to_string(i);
    devices += (i == 0 ? "" : ",") + (R"({"name": "d)" + number) +
               R"(", "attributes": {"a": {"int": )" + number + R"(}, "b": {"int": )" +
               std::to_string(i * 7 % 11) + "}}}";
  }
  world.Put("s", R"({"devices": [)" + devices + "]}");
  constexpr const char* kHard = R"({"requests": [{"name": "r", "exactly": {"count": 12}}],
      "constraints": [{"distinctAttribute": "d/b"}, {"distinctAttribute": "d/a"}]})";
  AllocationOptions options;
  options.max_steps = 1000;
  const AllocationOutcome outcome = world.Try(kHard, options);
  EXPECT_EQ(outcome.kind, Kind::kStepsExhausted);
  EXPECT_LE(outcome.steps, 1100);
}

// Many requests with many alternatives, each of which looks at many devices.
TEST(SearchTest, LooksAtDevicesWithinTheBudget) {
  World world;
  world.Put("s", Devices(128));
  std::string requests;
  for (int i = 0; i < 32; ++i) {
    requests += (i == 0 ? "" : ",") + (R"({"name": "r)" + std::to_string(i)) +
                R"(", "firstAvailable": [{"name": "a"}, {"name": "b"}, {"name": "c"}]})";
  }
  AllocationOptions options;
  options.max_steps = 500;
  EXPECT_EQ(World::Text(world.Try(R"({"requests": [)" + requests + "]}", options)), "exhausted");
  options.max_steps = 5000;
  EXPECT_EQ(world.Try(R"({"requests": [)" + requests + "]}", options).kind, Kind::kAllocated);
}

class Backwards final : public DeviceRanking {
 public:
  void Rank(const NodeView&, std::span<const DeviceChoice> chosen,
            std::vector<DeviceChoice>& devices) const override {
    most_chosen = std::max(most_chosen, chosen.size());
    std::reverse(devices.begin(), devices.end());
  }
  mutable size_t most_chosen = 0;
};

TEST(SearchTest, RankingDecidesTheOrder) {
  World world;
  PutBoard(world, "p");
  const Backwards backwards;
  AllocationOptions options;
  options.ranking = &backwards;
  EXPECT_EQ(World::Text(world.Try(kOne, options)), "4g-0");
  EXPECT_EQ(World::Text(world.Try(Count(2), options)), "2g-2 2g-0");
  EXPECT_EQ(World::Text(world.Try(Count(4), options)), "1g-3 1g-2 1g-1 1g-0");
  EXPECT_EQ(World::Text(world.Try(Count(5), options)), "no");
  EXPECT_EQ(backwards.most_chosen, 4U);
}

// Which device is at fault first depends on the order.
TEST(SearchTest, FaultyDevicesAreReachedInKubeSchedulersOrder) {
  World world;
  world.Put("s", R"({"devices": [{"name": "d0"}, {"name": "d1"},
                                 {"name": "d2", "attributes": {"a": {"int": 1}}}]})");
  for (const char* device : {"d0", "d1"}) world.expressions.Add("?", "s", device, true);
  const Backwards backwards;
  AllocationOptions options;
  options.ranking = &backwards;
  constexpr const char* kAsk =
      R"({"requests": [{"name": "r", "exactly": {"selectors": [{"cel": {"expression": "?"}}]}}]})";
  EXPECT_EQ(World::Text(world.Try(kAsk, options)), "d0");
  EXPECT_EQ(backwards.most_chosen, 0U);
}

TEST(SearchTest, RankedSearchTakesAPartOfTheSteps) {
  World world;
  world.Put("s", Devices(128));
  const Backwards backwards;
  AllocationOptions options;
  options.ranking = &backwards;
  EXPECT_EQ(World::Text(world.Try(kOne, options)), "d127");
  options.max_steps = 100;
  EXPECT_EQ(World::Text(world.Try(kOne, options)), "d0") << "kube-scheduler's order is left";
}

TEST(SearchTest, CountsAlternativesBeforeTheAllocatedOne) {
  World world;
  world.Put("s", Devices(4));
  const AllocationOutcome outcome = world.Try(R"({"requests": [
      {"name": "q", "exactly": {}},
      {"name": "r", "firstAvailable": [{"name": "a", "count": 9}, {"name": "b", "count": 5},
                                       {"name": "c", "count": 2}]},
      {"name": "s", "firstAvailable": [{"name": "a", "count": 2}, {"name": "b"}]}]})");
  EXPECT_EQ(outcome.alternatives, 3);
  EXPECT_EQ(world.Try(kOne).alternatives, 0);
}

TEST(SearchTest, StartsWithTheAlternativeThatIsAskedFor) {
  World world;
  world.Put("s", Devices(3));
  constexpr const char* kAsk = R"({"requests": [
      {"name": "r", "firstAvailable": [{"name": "a", "count": 2}, {"name": "b", "count": 9},
                                       {"name": "c"}]}]})";
  AllocationOptions options;
  EXPECT_EQ(World::Text(world.Try(kAsk, options)), "d0 d1");
  options.first_alternative = 1;
  EXPECT_EQ(World::Text(world.Try(kAsk, options)), "d0");
  EXPECT_EQ(world.Try(kAsk, options).alternatives, 1);
  options.first_alternative = 7;
  EXPECT_EQ(World::Text(world.Try(kAsk, options)), "d0");
  EXPECT_EQ(world.Try(kAsk, options).alternatives, 0);
}

TEST(SearchTest, AllDevicesAndConstraints) {
  World world;
  world.Put("s", R"({"devices": [{"name": "a", "attributes": {"m": {"string": "x"}}},
                                 {"name": "b", "attributes": {"m": {"string": "y"}}}]})");
  EXPECT_EQ(World::Text(world.Try(
                R"({"requests": [{"name": "r", "exactly": {"allocationMode": "All"}}]})")),
            "a b");
  EXPECT_EQ(World::Text(world.Try(
                R"({"requests": [{"name": "r", "exactly": {"allocationMode": "All"}}],
                    "constraints": [{"matchAttribute": "d/m"}]})")),
            "ConstraintExcludesAll");
  world.Put("t", Devices(1), "q", 2);
  EXPECT_EQ(World::Text(world.Try(
                R"({"requests": [{"name": "r", "exactly": {"allocationMode": "All"}}]})")),
            "PoolIncomplete");
}

}  // namespace
}  // namespace nos::dra
