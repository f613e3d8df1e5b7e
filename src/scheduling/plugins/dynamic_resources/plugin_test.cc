#include "scheduling/plugins/dynamic_resources/plugin.h"

#include <gtest/gtest.h>

#include "dra/cel_expressions.h"
#include "dra/context.h"
#include "dra/device_index.h"
#include "scheduling/engine.h"
#include "scheduling/framework.h"
#include "scheduling/plugins/dynamic_resources/assumed_claims.h"
#include "scheduling/plugins/dynamic_resources/search_budget.h"
#include "scheduling/plugins/node_resources_fit/plugin.h"
#include "scheduling/preemption.h"
#include "scheduling/testing/build.h"
#include "scheduling/testing/volumes.h"

namespace nos::scheduling {
namespace {

using cluster::ClusterContext;
using cluster::ClusterSnapshot;
using cluster::Pod;
using testing::ContextEvent;
using testing::NodeOf;
using testing::PodOf;
using testing::Snap;
using Kind = Progress::Kind;

constexpr Time kStart{std::chrono::hours(1)};

template <typename T>
std::shared_ptr<const T> Read(const std::string& json, Status (*read)(JsonSource, T&)) {
  auto object = std::make_shared<T>();
  const Status status = read(*ParseJson(json), *object);
  EXPECT_TRUE(status.ok()) << status.message();
  return object;
}

// A slice of node `node` with devices "d0", "d1", ... of the driver "d.io"; `more`: further fields
// of each device.
void PutSlice(ClusterContext& context, const std::string& node, int devices,
              const std::string& more = "") {
  std::string list;
  for (int i = 0; i < devices; ++i) {
    list += (i == 0 ? "" : ", ") + ("{\"name\": \"d" + std::to_string(i) + "\"" + more + "}");
  }
  context.device_slices.Set(
      node,
      Read<dra::ResourceSlice>(
          R"({"metadata": {"name": ")" + node + R"("}, "spec": {"driver": "d.io", "nodeName": ")" +
              node + R"(", "pool": {"name": ")" + node +
              R"(", "generation": 1, "resourceSliceCount": 1}, "devices": [)" + list + "]}}",
          dra::ReadResourceSlice));
}

std::shared_ptr<const dra::ResourceClaim> ClaimOf(const std::string& name, int count = 1,
                                                  const std::string& device_class = "d") {
  return Read<dra::ResourceClaim>(
      R"({"metadata": {"namespace": "x", "name": ")" + name + R"(", "uid": ")" + name +
          R"(", "resourceVersion": "7"}, "spec": {"devices": {"requests": [{"name": "r", "exactly":
          {"deviceClassName": ")" +
          device_class + R"(", "allocationMode": "ExactCount", "count": )" + std::to_string(count) +
          "}}]}}}",
      dra::ReadResourceClaim);
}

// Wants all devices, of which none has the attribute that all must have.
std::shared_ptr<const dra::ResourceClaim> AllInOneGroup(const std::string& name) {
  return Read<dra::ResourceClaim>(
      R"({"metadata": {"namespace": "x", "name": ")" + name + R"(", "uid": ")" + name +
          R"("}, "spec": {"devices": {"constraints": [{"matchAttribute": "d.io/group"}],
          "requests": [{"name": "r", "exactly":
          {"deviceClassName": "d", "allocationMode": "All"}}]}}})",
      dra::ReadResourceClaim);
}

Pod Claiming(const std::string& name, const std::string& claim) {
  Pod pod = PodOf(name);
  pod.meta.uid = name;
  pod.claims = {{"gpu", claim, "", false}};
  return pod;
}

// The same as made from template "t" for the pod.
std::shared_ptr<const dra::ResourceClaim> MadeFor(const Pod& pod, const std::string& name) {
  auto claim = std::make_shared<dra::ResourceClaim>(*ClaimOf(name));
  claim->controller = {"v1", "Pod", pod.meta.name, pod.meta.uid, true};
  return claim;
}

// The claim was made from template "t".
Pod FromTemplate(const std::string& name, const std::string& claim) {
  Pod pod = Claiming(name, claim);
  pod.claims.front().template_name = "t";
  return pod;
}

std::shared_ptr<const dra::DeviceClass> Class() {
  return Read<dra::DeviceClass>(
      R"({"metadata": {"name": "d"},
          "spec": {"selectors": [{"cel": {"expression": "device.driver == 'd.io'"}}]}})",
      dra::ReadDeviceClass);
}

// Nodes "a" with one device and "b" with two, followed by an engine.
class DynamicResourcesTest : public ::testing::Test {
 protected:
  DynamicResourcesTest() {
    for (const char* name : {"a", "b"}) {
      engine_.SetNode(std::make_shared<const cluster::Node>(NodeOf(name)));
    }
    engine_.FollowDevices(std::make_shared<dra::DeviceIndex>(
        dra::Features::Of(37), std::make_shared<const dra::CelExpressions>()));
    engine_.ChangeContext([](ClusterContext& context) {
      PutSlice(context, "a", 1);
      PutSlice(context, "b", 2);
      context.device_classes.Set("d", Class());
    });
  }

  void Put(const std::shared_ptr<const dra::ResourceClaim>& claim) {
    engine_.ChangeContext(
        [&](ClusterContext& context) { context.device_claims.Set(claim->Key(), claim); },
        dra::kClaimKind, claim->Key());
  }
  Decision Schedule(const Pod& pod) {
    return engine_.Schedule(framework_, std::make_shared<const Pod>(pod));
  }
  std::string NodeFor(const Pod& pod) {
    const Decision decision = Schedule(pod);
    return decision.node == nullptr ? "" : decision.node->node->meta.name;
  }
  // Assumes the pod there, with its devices.
  Verdict Assume(const Pod& pod, const std::string& node, CycleState& state) {
    engine_.Assume(std::make_shared<const Pod>(pod), node);
    return engine_.Reserve(framework_, pod, node, state);
  }
  Progress PreBind(const Pod& pod, CycleState& state, Time now = kStart) {
    return DynamicResources().PreBind(pod, "a", engine_.snapshot(), now, state);
  }
  // Devices of both nodes are to be prepared.
  void PutConditionalSlices() {
    engine_.ChangeContext([](ClusterContext& context) {
      const std::string more = R"(, "bindsToNode": true, "bindingConditions": ["d.io/ready"],
                                   "bindingFailureConditions": ["d.io/failed"])";
      PutSlice(context, "a", 1, more);
      PutSlice(context, "b", 2, more);
    });
  }
  // The claim as the API server stores it after the writes of PreBind.
  std::shared_ptr<const dra::ResourceClaim> Stored(const std::string& name, const Pod& pod) {
    auto stored = std::make_shared<dra::ResourceClaim>(*ClaimOf(name));
    const auto* assumed = engine_.snapshot().context().devices->FindAssumed(stored->Key());
    EXPECT_NE(assumed, nullptr);
    if (assumed != nullptr) stored->allocation = assumed->allocation;
    stored->reserved_for = {{"", "pods", pod.meta.name, pod.meta.uid}};
    stored->finalizers = {"resource.kubernetes.io/delete-protection"};
    stored->resource_version = "9";
    return stored;
  }

  Framework framework_ = Framework::Default();
  Engine engine_{gpu::Catalogue::Builtin()};
};

TEST_F(DynamicResourcesTest, PodWaitsUntilItsClaimIsCreated) {
  const DynamicResources plugin;
  Pod pod = FromTemplate("p", "");
  EXPECT_EQ(plugin.PreEnqueue(pod).code, codes::kResourceClaimNotCreated);
  pod.claims.front().unneeded = true;
  EXPECT_TRUE(plugin.PreEnqueue(pod).fits());
  EXPECT_TRUE(plugin.PreEnqueue(Claiming("p", "c")).fits());
}

TEST_F(DynamicResourcesTest, ChoosesNodesWithEnoughDevices) {
  Put(ClaimOf("one"));
  Put(ClaimOf("two", 2));
  Put(ClaimOf("three", 3));
  EXPECT_NE(NodeFor(Claiming("p", "one")), "");
  EXPECT_EQ(NodeFor(Claiming("p", "two")), "b");
  const Decision decision = Schedule(Claiming("p", "three"));
  EXPECT_EQ(decision.node, nullptr);
  ASSERT_FALSE(decision.diagnosis.entries.empty());
  EXPECT_EQ(decision.diagnosis.entries.front().code, codes::kInsufficientDevices);
}

TEST_F(DynamicResourcesTest, ExplainsClaimsThatCannotBeServed) {
  const auto code = [&](const std::string& claim) {
    const Decision decision = Schedule(Claiming("p", claim));
    EXPECT_EQ(decision.node, nullptr);
    return decision.diagnosis.entries.empty() ? "" : decision.diagnosis.entries.front().code;
  };
  EXPECT_EQ(code("missing"), codes::kResourceClaimNotFound);
  Put(ClaimOf("other", 1, "no-such-class"));
  EXPECT_EQ(code("other"), codes::kDevicesRefused);
  auto leaving = std::make_shared<dra::ResourceClaim>(*ClaimOf("leaving"));
  leaving->deleted = kStart;
  Put(leaving);
  EXPECT_EQ(code("leaving"), codes::kResourceClaimDeleted);
}

// A user that may write a pod's status could let it use devices of another pod.
TEST_F(DynamicResourcesTest, TakesNoClaimThatWasMadeForAnotherPod) {
  const Pod owner = FromTemplate("p", "c");
  const Pod thief = FromTemplate("q", "c");
  Put(MadeFor(owner, "c"));
  EXPECT_NE(NodeFor(owner), "");
  const auto code = [&] {
    const Decision decision = Schedule(thief);
    EXPECT_EQ(decision.node, nullptr);
    return decision.diagnosis.entries.empty() ? "" : decision.diagnosis.entries.front().code;
  };
  EXPECT_EQ(code(), codes::kResourceClaimOfAnother);
  CycleState state;
  ASSERT_TRUE(Assume(owner, "a", state).fits());
  auto allocated = std::make_shared<dra::ResourceClaim>(*Stored("c", owner));
  allocated->controller = {"v1", "Pod", owner.meta.name, owner.meta.uid, true};
  Put(allocated);
  EXPECT_NE(NodeFor(owner), "");
  EXPECT_EQ(code(), codes::kResourceClaimOfAnother);
}

// Verdicts are shared by pods whose claims ask for the same.
TEST_F(DynamicResourcesTest, ReasonNamesNoClaimOfAnotherPod) {
  Put(ClaimOf("first", 1, "no-such-class"));
  Put(ClaimOf("second", 1, "no-such-class"));
  Put(AllInOneGroup("third"));
  Put(AllInOneGroup("fourth"));
  for (const auto& [before, claim] : {std::pair("first", "second"), std::pair("third", "fourth")}) {
    (void)Schedule(Claiming("p", before));
    const Pod pod = Claiming("q", claim);
    const std::string said = Schedule(pod).diagnosis.ToString();
    EXPECT_EQ(said.find(before), std::string::npos) << said;
    EXPECT_EQ(said, framework_.Schedule(pod, engine_.snapshot()).diagnosis.ToString());
  }
}

TEST_F(DynamicResourcesTest, AssumedDevicesAreNotGivenTwice) {
  for (const char* name : {"c1", "c2", "c3", "c4"}) Put(ClaimOf(name));
  std::vector<CycleState> states(3);
  std::multiset<std::string> nodes;
  for (int i = 0; i < 3; ++i) {
    const Pod pod = Claiming("p" + std::to_string(i + 1), "c" + std::to_string(i + 1));
    const std::string node = NodeFor(pod);
    ASSERT_NE(node, "");
    ASSERT_TRUE(Assume(pod, node, states[i]).fits());
    nodes.insert(node);
  }
  EXPECT_EQ(nodes, (std::multiset<std::string>{"a", "b", "b"}));
  EXPECT_EQ(NodeFor(Claiming("p4", "c4")), "");
  engine_.Unreserve(framework_, Claiming("p2", "c2"), "b", states[1]);
  EXPECT_NE(NodeFor(Claiming("p4", "c4")), "");
}

// With this plugin alone, so that no other plugin has verdicts computed again.
class DynamicResourcesAloneTest : public DynamicResourcesTest {
 protected:
  DynamicResourcesAloneTest() { framework_ = Alone(); }
  static Framework Alone() {
    std::vector<Framework::Entry> entries;
    entries.push_back({std::make_unique<const DynamicResources>(), 0});
    return Framework(std::move(entries));
  }
};

TEST_F(DynamicResourcesAloneTest, FollowsChangedClass) {
  Put(ClaimOf("c"));
  const Pod pod = Claiming("p", "c");
  ASSERT_NE(NodeFor(pod), "");
  const auto set = [&](const std::string& driver) {
    engine_.ChangeContext(
        [&](ClusterContext& context) {
          context.device_classes.Set(
              "d", Read<dra::DeviceClass>(R"({"metadata": {"name": "d"}, "spec": {"selectors":
                   [{"cel": {"expression": "device.driver == ')" +
                                              driver + R"('"}}]}})",
                                          dra::ReadDeviceClass));
        },
        dra::kClassKind, "d");
  };
  set("other.io");
  EXPECT_EQ(NodeFor(pod), "");
  set("d.io");
  EXPECT_NE(NodeFor(pod), "");
}

TEST_F(DynamicResourcesAloneTest, FollowsTaintRule) {
  Put(ClaimOf("c"));
  const Pod pod = Claiming("p", "c");
  ASSERT_NE(NodeFor(pod), "");
  const auto rule = Read<dra::DeviceTaintRule>(
      R"({"metadata": {"name": "r"}, "spec": {"deviceSelector": {"driver": "d.io"},
          "taint": {"key": "k", "effect": "NoSchedule"}}})",
      dra::ReadDeviceTaintRule);
  const auto set = [&](const std::shared_ptr<const dra::DeviceTaintRule>& to) {
    engine_.ChangeContext([&](ClusterContext& context) { context.device_taint_rules.Set("r", to); },
                          dra::kTaintRuleKind, "r");
  };
  set(rule);
  EXPECT_EQ(NodeFor(pod), "");
  set(nullptr);
  EXPECT_NE(NodeFor(pod), "");
}

TEST_F(DynamicResourcesAloneTest, DeviceOfAllNodesIsGivenOnce) {
  engine_.ChangeContext([](ClusterContext& context) {
    context.device_slices.Set("a", nullptr);
    context.device_slices.Set("b", nullptr);
    context.device_slices.Set(
        "net", Read<dra::ResourceSlice>(
                   R"({"metadata": {"name": "net"}, "spec": {"driver": "d.io", "allNodes": true,
                       "pool": {"name": "net", "generation": 1, "resourceSliceCount": 1},
                       "devices": [{"name": "d0"}]}})",
                   dra::ReadResourceSlice));
  });
  Put(ClaimOf("c"));
  Put(ClaimOf("d"));
  ASSERT_NE(NodeFor(Claiming("q", "d")), "");
  CycleState state;
  ASSERT_TRUE(Assume(Claiming("p", "c"), "a", state).fits());
  EXPECT_EQ(NodeFor(Claiming("q", "d")), "");
  engine_.Unreserve(framework_, Claiming("p", "c"), "a", state);
  EXPECT_NE(NodeFor(Claiming("q", "d")), "");
}

TEST_F(DynamicResourcesTest, PodsWhoseClaimsAskForTheSameShareATable) {
  std::vector<CycleState> states(3);
  for (int i = 0; i < 3; ++i) {
    const std::string claim = "c" + std::to_string(i);
    const Pod pod = (i == 0 ? Claiming : FromTemplate)("p" + std::to_string(i), claim);
    Put(MadeFor(pod, claim));
    const std::string node = NodeFor(pod);
    ASSERT_NE(node, "");
    ASSERT_TRUE(Assume(pod, node, states[i]).fits());
    Put(Stored("c" + std::to_string(i), pod));
  }
  EXPECT_EQ(engine_.tables_made(), 1u);
}

// The pods of a gang are bound together, so the second cannot wait until the first is bound.
TEST_F(DynamicResourcesTest, PodsOfAGangShareAnAllocationBeforeItIsStored) {
  Put(ClaimOf("c"));
  const auto member = [](const std::string& name) {
    Pod pod = Claiming(name, "c");
    pod.meta.labels["scheduling.x-k8s.io/pod-group"] = "g";
    return pod;
  };
  CycleState first, second;
  const std::string node = NodeFor(member("p"));
  ASSERT_TRUE(Assume(member("p"), node, first).fits());
  EXPECT_EQ(NodeFor(Claiming("other", "c")), "") << "it is no member";
  EXPECT_EQ(NodeFor(member("q")), node);
  ASSERT_TRUE(Assume(member("q"), node, second).fits());
  // 1. It waits, and then becomes a user whatever the version of the claim is.
  Progress progress = PreBind(member("q"), second);
  EXPECT_EQ(progress.kind, Kind::kWaits);
  EXPECT_TRUE(progress.writes.empty());
  Put(Stored("c", member("p")));
  progress = PreBind(member("q"), second);
  ASSERT_EQ(progress.writes.size(), 1u);
  const Json body = progress.writes[0].body;
  EXPECT_EQ(FindString(body.at("status").at("reservedFor").as_array()[0], "uid"), "q");
  EXPECT_EQ(Find(body, "status", "allocation"), nullptr);
  EXPECT_EQ(Find(body, "metadata", "resourceVersion"), nullptr);
  // 2. It is bound when the claim is seen with it, and with the same devices.
  progress = PreBind(member("q"), second);
  EXPECT_EQ(progress.kind, Kind::kWaits);
  EXPECT_TRUE(progress.writes.empty());
  auto both =
      std::make_shared<dra::ResourceClaim>(*engine_.snapshot().context().device_claims.Find("x/c"));
  both->reserved_for.push_back({"", "pods", "q", "q"});
  CycleState third = second;
  Put(both);
  EXPECT_EQ(PreBind(member("q"), second).kind, Kind::kReady);
  both = std::make_shared<dra::ResourceClaim>(*both);
  both->allocation->devices[0].device = dra::Name("other");
  Put(both);
  EXPECT_EQ(PreBind(member("q"), third).kind, Kind::kFailed);
}

// Several pods of a gang become users of a claim that is allocated already.
TEST_F(DynamicResourcesTest, PodsOfAGangJoinTheUsersOfAClaim) {
  Put(ClaimOf("c"));
  CycleState first, second;
  ASSERT_TRUE(Assume(Claiming("user", "c"), "a", first).fits());
  Put(Stored("c", Claiming("user", "c")));
  Pod member = Claiming("q", "c");
  member.scheduling_group = "g";
  ASSERT_TRUE(Assume(member, "a", second).fits());
  const Progress progress = PreBind(member, second);
  ASSERT_EQ(progress.writes.size(), 1u);
  EXPECT_EQ(Find(progress.writes[0].body, "metadata", "resourceVersion"), nullptr);
}

// The gang is tried again, and its first pod gets the device of another node.
TEST_F(DynamicResourcesTest, PodsOfAGangFollowTheFirstToAnotherNode) {
  Put(ClaimOf("c"));
  Pod p = Claiming("p", "c"), q = Claiming("q", "c");
  p.scheduling_group = q.scheduling_group = "g";
  CycleState first, second;
  ASSERT_TRUE(Assume(p, "a", first).fits());
  ASSERT_EQ(NodeFor(q), "a");
  engine_.Unreserve(framework_, p, "a", first);
  engine_.Forget(p.Key());
  ASSERT_TRUE(Assume(p, "b", first).fits());
  EXPECT_EQ(NodeFor(q), "b");
  EXPECT_EQ(Assume(q, "a", second).code, codes::kDevicesElsewhere);
}

TEST_F(DynamicResourcesTest, FollowerFailsIfTheFirstPodGivesUp) {
  Put(ClaimOf("c"));
  Pod p = Claiming("p", "c"), q = Claiming("q", "c");
  p.scheduling_group = q.scheduling_group = "g";
  CycleState first, second;
  ASSERT_TRUE(Assume(p, "a", first).fits());
  ASSERT_TRUE(Assume(q, "a", second).fits());
  EXPECT_EQ(PreBind(q, second).kind, Kind::kWaits);
  engine_.Unreserve(framework_, p, "a", first);
  EXPECT_EQ(PreBind(q, second).kind, Kind::kFailed);
}

// A PodGroup that names the claim is its user, for all of its pods.
TEST_F(DynamicResourcesTest, EntersThePodGroupAsUser) {
  auto group = std::make_shared<cluster::SchedulingGroup>();
  group->meta.name = "g";
  group->meta.ns = "x";
  group->meta.uid = "g-uid";
  group->claims = {{"gpu", "", "t", false}, {"other", "d", "", false}};
  engine_.ChangeContext(
      [&](ClusterContext& context) { context.scheduling_groups.Set("x/g", group); });
  Pod pod = FromTemplate("p", "c");
  pod.scheduling_group = "g";
  auto claim = std::make_shared<dra::ResourceClaim>(*ClaimOf("c"));
  claim->controller = {"scheduling.k8s.io/v1beta1", "PodGroup", "g", "g-uid", true};
  Put(claim);
  CycleState state;
  ASSERT_TRUE(Assume(pod, "a", state).fits());
  PreBind(pod, state);
  const Progress progress = PreBind(pod, state);
  ASSERT_EQ(progress.writes.size(), 1u);
  const Json& user = progress.writes[0].body.at("status").at("reservedFor").as_array()[0];
  EXPECT_EQ(user, (Json{{"resource", "podgroups"},
                        {"name", "g"},
                        {"uid", "g-uid"},
                        {"apiGroup", "scheduling.k8s.io"}}));
  // A pod that names the claim otherwise than its group uses it alone.
  Pod other = Claiming("q", "d");
  other.scheduling_group = "g";
  EXPECT_EQ(dra::ConsumerFor(*ClaimOf("d"), other, engine_.snapshot().context()).resource, "pods");
  other.claims.front().name = "other";
  EXPECT_EQ(dra::ConsumerFor(*ClaimOf("d"), other, engine_.snapshot().context()).resource,
            "podgroups");
}

TEST_F(DynamicResourcesTest, GroupKeepsItsDevicesWhileAMemberHasANode) {
  Pod pod = Claiming("p", "c"), member = Claiming("q", "c");
  pod.scheduling_group = member.scheduling_group = "g";
  CycleState state;
  Put(ClaimOf("c"));
  ASSERT_TRUE(Assume(pod, "a", state).fits());
  auto stored = std::make_shared<dra::ResourceClaim>(*Stored("c", pod));
  stored->reserved_for = {{"scheduling.k8s.io", "podgroups", "g", "g-uid"}};
  Put(stored);
  EXPECT_TRUE(dra::IsReservedFor(*stored, member));
  EXPECT_TRUE(DynamicResources().PostFilter(member, engine_.snapshot()).empty());
  engine_.RemoveNode("a");
  EXPECT_TRUE(DynamicResources().PostFilter(member, engine_.snapshot()).empty())
      << "the node may be registered again";
  engine_.SetNode(std::make_shared<const cluster::Node>(NodeOf("a")));
  engine_.Forget(pod.Key());
  EXPECT_EQ(DynamicResources().PostFilter(member, engine_.snapshot()).size(), 1u);
}

// Kubernetes frees the devices of a PodGroup when the group is deleted, not when its pods have
// ended. Source: KEP-5729. An eviction would be in vain.
TEST_F(DynamicResourcesTest, NoPodIsEvictedForTheDevicesOfItsPodGroup) {
  Put(ClaimOf("c"));
  Pod pod = Claiming("p", "c"), urgent = Claiming("q", "d");
  pod.scheduling_group = "g";
  pod.priority = 1;
  urgent.priority = 9;
  urgent.node_selector = {{"kubernetes.io/hostname", "a"}};
  engine_.SetNode(
      std::make_shared<const cluster::Node>(NodeOf("a", {}, {{"kubernetes.io/hostname", "a"}})));
  CycleState state;
  ASSERT_TRUE(Assume(pod, "a", state).fits());
  auto stored = std::make_shared<dra::ResourceClaim>(*Stored("c", pod));
  Put(stored);
  Put(ClaimOf("d"));
  ASSERT_EQ(NodeFor(urgent), "");
  const auto victims = [&] {
    const auto found = FindPreemption(framework_, engine_.snapshot(), urgent, {});
    return found ? found->victims.size() : 0;
  };
  EXPECT_EQ(victims(), 1u) << "the pod is the user";
  stored = std::make_shared<dra::ResourceClaim>(*stored);
  stored->reserved_for = {{"scheduling.k8s.io", "podgroups", "g", "g-uid"}};
  Put(stored);
  EXPECT_EQ(victims(), 0u);
}

// The allocation was stored, and taken back when the pod's node was lost, while the watch was
// interrupted: it shows neither.
TEST_F(DynamicResourcesTest, NextPodTakesOverTheAllocationOfABoundPodThatLeft) {
  Put(ClaimOf("c"));
  const Pod pod = Claiming("p", "c"), next = Claiming("q", "c");
  CycleState state;
  ASSERT_TRUE(Assume(pod, "a", state).fits());
  EXPECT_EQ(NodeFor(next), "");
  Pod bound = pod;
  bound.node_name = "a";
  engine_.SetPod(std::make_shared<const Pod>(bound));
  engine_.RemovePod(pod.Key());
  EXPECT_EQ(NodeFor(next), "a");
  EXPECT_EQ(DynamicResources().PostFilter(next, engine_.snapshot()).size(), 1u);
}

TEST_F(DynamicResourcesTest, WritesFinalizerThenAllocationThenBinds) {
  Put(ClaimOf("c"));
  const Pod pod = Claiming("p", "c");
  CycleState state;
  ASSERT_TRUE(Assume(pod, "a", state).fits());
  Progress progress = PreBind(pod, state);
  EXPECT_EQ(progress.kind, Kind::kWaits);
  ASSERT_EQ(progress.writes.size(), 1u);
  const std::string path = "/apis/resource.k8s.io/v1/namespaces/x/resourceclaims/c";
  EXPECT_EQ(progress.writes[0].path, path);
  EXPECT_EQ(*Find(progress.writes[0].body, "metadata", "finalizers"),
            Json(JsonArray{"resource.kubernetes.io/delete-protection"}));
  state.Set(WrittenVersions{{{path, "8"}}});
  progress = PreBind(pod, state);
  ASSERT_EQ(progress.writes.size(), 1u);
  const Json& body = progress.writes[0].body;
  EXPECT_EQ(progress.writes[0].path, path + "/status");
  EXPECT_EQ(FindString(body, "metadata", "resourceVersion"), "8");
  EXPECT_EQ(FindString(body, "metadata", "uid"), "c");
  const Json& users = *Find(body, "status", "reservedFor");
  ASSERT_EQ(users.get_array().size(), 1u);
  EXPECT_EQ(FindString(users.get_array()[0], "uid"), "p");
  const Json& results = *Find(body, "status", "allocation", "devices", "results");
  ASSERT_EQ(results.get_array().size(), 1u);
  EXPECT_EQ(FindString(results.get_array()[0], "device"), "d0");
  EXPECT_EQ(PreBind(pod, state).kind, Kind::kReady);
}

TEST_F(DynamicResourcesTest, WaitsForBindingConditions) {
  engine_.ChangeContext([](ClusterContext& context) {
    PutSlice(context, "a", 1,
             R"(, "bindsToNode": true, "bindingConditions": ["d.io/ready"],
                 "bindingFailureConditions": ["d.io/failed"])");
  });
  Put(ClaimOf("c"));
  const Pod pod = Claiming("p", "c");
  CycleState state;
  ASSERT_TRUE(Assume(pod, "a", state).fits());
  EXPECT_EQ(PreBind(pod, state).writes.size(), 1u);
  EXPECT_EQ(PreBind(pod, state).writes.size(), 1u);
  const Progress waits = PreBind(pod, state);
  EXPECT_EQ(waits.kind, Kind::kWaits);
  EXPECT_EQ(waits.code, "WaitsForDevices");
  EXPECT_EQ(waits.until, kStart + std::chrono::seconds(600));
  EXPECT_EQ(PreBind(pod, state, kStart + std::chrono::seconds(600)).code, "DeviceBindingTimeout");
  auto stored = std::make_shared<dra::ResourceClaim>(*Stored("c", pod));
  const dra::AllocatedDevice& device = stored->allocation->devices[0];
  stored->devices = {
      {device.driver, device.pool, device.device, "", {{"d.io/ready", "True", "", ""}}}};
  Put(stored);
  EXPECT_EQ(PreBind(pod, state).kind, Kind::kReady);
  stored = std::make_shared<dra::ResourceClaim>(*stored);
  stored->devices[0].conditions.push_back({"d.io/failed", "True", "", ""});
  Put(stored);
  EXPECT_EQ(PreBind(pod, state).code, "DevicesFailed");
}

// The driver is gone. A pod would be tried with the same devices again and again.
TEST_F(DynamicResourcesTest, DevicesThatAreNotPreparedInTimeAreGivenBack) {
  PutConditionalSlices();
  Put(ClaimOf("c"));
  const Pod pod = Claiming("p", "c");
  CycleState state;
  ASSERT_TRUE(Assume(pod, "a", state).fits());
  PreBind(pod, state);
  PreBind(pod, state);
  auto stored = std::make_shared<dra::ResourceClaim>(*Stored("c", pod));
  stored->allocation->time = kStart - std::chrono::seconds(100);
  Put(stored);
  const Progress waits = PreBind(pod, state);
  EXPECT_EQ(waits.until, kStart + std::chrono::seconds(500)) << "since it was stored";
  EXPECT_EQ(PreBind(pod, state, *waits.until).code, codes::kDeviceBindingTimeout);
  engine_.Unreserve(framework_, pod, "a", state);
  engine_.Forget(pod.Key());
  // 1. Other changes of the claim do not help.
  stored = std::make_shared<dra::ResourceClaim>(*stored);
  stored->resource_version = "10";
  Put(stored);
  const Decision decision = Schedule(pod);
  EXPECT_EQ(decision.node, nullptr);
  ASSERT_FALSE(decision.diagnosis.entries.empty());
  EXPECT_EQ(decision.diagnosis.entries.front().code, codes::kDeviceBindingTimeout);
  const auto writes = DynamicResources().PostFilter(pod, engine_.snapshot());
  ASSERT_EQ(writes.size(), 1u);
  EXPECT_EQ(*Find(writes[0].body, "status", "allocation"), Json(nullptr));
  // 2. The driver comes back after all.
  auto ready = std::make_shared<dra::ResourceClaim>(*stored);
  const dra::AllocatedDevice& device = ready->allocation->devices[0];
  ready->devices = {
      {device.driver, device.pool, device.device, "", {{"d.io/ready", "True", "", ""}}}};
  ready->resource_version = "11";
  Put(ready);
  EXPECT_EQ(NodeFor(pod), "a");
  // 3. The devices are given back.
  Put(ClaimOf("c"));
  EXPECT_EQ(NodeFor(pod), "b") << "other devices come first";
  EXPECT_FALSE(engine_.snapshot().context().devices->IsExpired("x/c"));
}

TEST_F(DynamicResourcesTest, FailedDevicesAreTriedLast) {
  PutConditionalSlices();
  const Pod pod = Claiming("p", "c"), other = Claiming("q", "d");
  const auto fail = [&](const std::string& node, Time now) {
    Put(ClaimOf("c"));
    CycleState state;
    ASSERT_TRUE(Assume(pod, node, state).fits());
    auto stored = std::make_shared<dra::ResourceClaim>(*Stored("c", pod));
    const dra::AllocatedDevice device = stored->allocation->devices[0];
    stored->devices = {
        {device.driver, device.pool, device.device, "", {{"d.io/failed", "True", "", ""}}}};
    PreBind(pod, state, now);
    PreBind(pod, state, now);
    Put(stored);
    EXPECT_EQ(PreBind(pod, state, now).code, codes::kDevicesFailed);
    engine_.Unreserve(framework_, pod, node, state);
    engine_.Forget(pod.Key());
    Put(ClaimOf("c"));
  };
  const auto device_on = [&](const Pod& of, const std::string& node) {
    CycleState state;
    EXPECT_TRUE(Assume(of, node, state).fits());
    const auto* assumed =
        engine_.snapshot().context().devices->FindAssumed("x/" + of.claims.front().claim);
    const std::string device =
        assumed == nullptr ? "" : assumed->allocation.devices[0].device.str();
    engine_.Unreserve(framework_, of, node, state);
    engine_.Forget(of.Key());
    return device;
  };
  fail("a", kStart);
  EXPECT_EQ(NodeFor(pod), "b");
  EXPECT_EQ(device_on(pod, "b"), "d0");
  fail("b", kStart);
  EXPECT_EQ(NodeFor(pod), "b");
  EXPECT_EQ(device_on(pod, "b"), "d1");
  Put(ClaimOf("d"));
  EXPECT_EQ(device_on(other, "b"), "d0") << "another pod";
  // If no other is left, they are tried again.
  EXPECT_EQ(device_on(pod, "a"), "d0");
  fail("b", kStart + std::chrono::minutes(10));
  EXPECT_EQ(device_on(pod, "b"), "d0") << "its failure is forgotten";
}

// Seed 1539 of the fault simulation: the second attempt ended before its write, and the devices of
// the first one, whose write was stored, were given away.
TEST_F(DynamicResourcesTest, AllocationStaysInDoubtUntilItIsWritten) {
  Put(ClaimOf("c"));
  const Pod pod = Claiming("p", "c");
  CycleState first, second;
  ASSERT_TRUE(Assume(pod, "a", first).fits());
  ASSERT_FALSE(PreBind(pod, first).writes.empty());  // the finalizer
  ASSERT_FALSE(PreBind(pod, first).writes.empty());  // the allocation, which is not answered
  engine_.Unreserve(framework_, pod, "a", first);
  engine_.Forget(pod.Key());
  ASSERT_TRUE(Assume(pod, "a", second).fits());
  ASSERT_FALSE(PreBind(pod, second).writes.empty());  // the finalizer, which fails
  engine_.Unreserve(framework_, pod, "a", second);
  engine_.Forget(pod.Key());
  const auto* assumed = engine_.snapshot().context().devices->FindAssumed("x/c");
  ASSERT_NE(assumed, nullptr);
  EXPECT_TRUE(assumed->doubtful);
}

// Seeds 1049 and 1097 of the fault simulation: PostFilter had given the devices back, but the
// snapshot did not show it yet.
TEST_F(DynamicResourcesTest, AllocationOfAnEarlierAttemptIsCheckedByVersion) {
  Put(ClaimOf("c"));
  const Pod pod = Claiming("p", "c");
  CycleState first, second;
  ASSERT_TRUE(Assume(pod, "a", first).fits());
  Put(Stored("c", pod));
  engine_.Unreserve(framework_, pod, "a", first);
  engine_.Forget(pod.Key());
  ASSERT_TRUE(Assume(pod, "a", second).fits());
  const Progress progress = PreBind(pod, second);
  ASSERT_EQ(progress.writes.size(), 1U);
  EXPECT_EQ(FindString(progress.writes[0].body, "metadata", "resourceVersion"), "9");
  EXPECT_EQ(PreBind(pod, second).kind, Kind::kReady);
}

TEST_F(DynamicResourcesTest, AllocationInDoubtIsWrittenAgain) {
  Put(ClaimOf("c"));
  const Pod pod = Claiming("p", "c");
  CycleState state;
  ASSERT_TRUE(Assume(pod, "a", state).fits());
  PreBind(pod, state);
  PreBind(pod, state);  // the allocation is sent
  engine_.Unreserve(framework_, pod, "a", state);
  engine_.Forget(pod.Key());
  Put(ClaimOf("d"));
  EXPECT_EQ(NodeFor(Claiming("q", "d")), "b") << "device of node a may be allocated";
  EXPECT_EQ(NodeFor(pod), "a");
  CycleState again;
  ASSERT_TRUE(Assume(pod, "a", again).fits());
  PreBind(pod, again);
  EXPECT_EQ(PreBind(pod, again).writes.size(), 1u);
}

// Filters run again while a pod is being bound, after its node changed.
TEST_F(DynamicResourcesTest, OwnAssumptionDoesNotKeepAPodAway) {
  Put(ClaimOf("c"));
  const Pod pod = Claiming("p", "c");
  CycleState state, again;
  ASSERT_TRUE(Assume(pod, "a", state).fits());
  ClusterSnapshot without = engine_.snapshot();
  ASSERT_TRUE(without.Unbind(pod, "a").ok());
  EXPECT_TRUE(framework_.PreFilter(pod, without).verdict.fits());
  EXPECT_EQ(framework_.PreFilter(Claiming("q", "c"), without).verdict.code,
            codes::kResourceClaimInUse);
}

TEST_F(DynamicResourcesTest, AllocationThatWasNotSentIsTakenBack) {
  Put(ClaimOf("c"));
  Put(ClaimOf("all", 2));
  const Pod pod = Claiming("p", "c");
  CycleState state;
  ASSERT_TRUE(Assume(pod, "b", state).fits());
  EXPECT_EQ(NodeFor(Claiming("q", "all")), "");
  engine_.Unreserve(framework_, pod, "b", state);
  engine_.Forget(pod.Key());
  EXPECT_EQ(NodeFor(Claiming("q", "all")), "b");
}

TEST_F(DynamicResourcesTest, AllocatedClaimKeepsItsNodeUntilItIsCleared) {
  Put(ClaimOf("c"));
  const Pod pod = Claiming("p", "c");
  CycleState state;
  ASSERT_TRUE(Assume(pod, "a", state).fits());
  const auto stored = Stored("c", pod);
  Put(stored);
  engine_.Forget(pod.Key());
  EXPECT_EQ(NodeFor(pod), "a");
  const auto writes = DynamicResources().PostFilter(pod, engine_.snapshot());
  ASSERT_EQ(writes.size(), 1u);
  EXPECT_EQ(*Find(writes[0].body, "status", "allocation"), Json(nullptr));
  auto shared = std::make_shared<dra::ResourceClaim>(*stored);
  shared->reserved_for.push_back({"", "pods", "q", "q"});
  Put(shared);
  const auto leaves = DynamicResources().PostFilter(pod, engine_.snapshot());
  ASSERT_EQ(leaves.size(), 1u);
  EXPECT_EQ(Find(leaves[0].body, "status", "allocation"), nullptr) << "another pod uses it";
  EXPECT_EQ(*Find(leaves[0].body, "status", "reservedFor"),
            Json(JsonArray{{{"$patch", "delete"}, {"uid", "p"}}}));
}

TEST(SearchBudgetTest, SearchesBecomeShortAfterTwoWithoutAnAnswer) {
  SearchBudget budget;
  dra::AllocationOutcome outcome;
  for (int i = 0; i < 100; ++i) budget.Note(outcome);
  EXPECT_EQ(budget.Next(), SearchBudget::kLongSearch) << "all had an answer";
  outcome.kind = dra::AllocationOutcome::Kind::kStepsExhausted;
  budget.Note(outcome);
  EXPECT_EQ(budget.Next(), SearchBudget::kLongSearch);
  budget.Note(outcome);
  EXPECT_EQ(budget.Next(), SearchBudget::kShortSearch);
}

TEST_F(DynamicResourcesTest, FailedDevicesAreGivenBack) {
  engine_.ChangeContext([](ClusterContext& context) {
    PutSlice(context, "a", 1,
             R"(, "bindsToNode": true, "bindingConditions": ["d.io/ready"],
                 "bindingFailureConditions": ["d.io/failed"])");
  });
  Put(ClaimOf("c"));
  const Pod pod = Claiming("p", "c");
  CycleState state;
  ASSERT_TRUE(Assume(pod, "a", state).fits());
  auto stored = std::make_shared<dra::ResourceClaim>(*Stored("c", pod));
  const dra::AllocatedDevice& device = stored->allocation->devices[0];
  stored->devices = {
      {device.driver, device.pool, device.device, "", {{"d.io/failed", "True", "", ""}}}};
  Put(stored);
  engine_.Forget(pod.Key());
  const Decision decision = Schedule(pod);
  EXPECT_EQ(decision.node, nullptr);
  ASSERT_FALSE(decision.diagnosis.entries.empty());
  EXPECT_EQ(decision.diagnosis.entries.front().code, codes::kDevicesFailed);
  const auto writes = DynamicResources().PostFilter(pod, engine_.snapshot());
  ASSERT_EQ(writes.size(), 1u);
  EXPECT_EQ(*Find(writes[0].body, "status", "allocation"), Json(nullptr));
}

TEST_F(DynamicResourcesTest, SecondUserOfAClaimIsAddedOnItsNode) {
  Put(ClaimOf("c"));
  CycleState first, second;
  ASSERT_TRUE(Assume(Claiming("p", "c"), "a", first).fits());
  EXPECT_EQ(NodeFor(Claiming("q", "c")), "") << "being allocated";
  Put(Stored("c", Claiming("p", "c")));
  EXPECT_EQ(NodeFor(Claiming("q", "c")), "a");
  ASSERT_TRUE(Assume(Claiming("q", "c"), "a", second).fits());
  const Progress progress = PreBind(Claiming("q", "c"), second);
  ASSERT_EQ(progress.writes.size(), 1u);
  EXPECT_EQ(Find(progress.writes[0].body, "status", "allocation"), nullptr);
}

TEST_F(DynamicResourcesTest, ChangesThatFreeDevicesHelp) {
  const DynamicResources plugin;
  Put(ClaimOf("c"));
  const Pod pod = Claiming("q", "other");
  CycleState state;
  ASSERT_TRUE(Assume(Claiming("p", "c"), "a", state).fits());
  const auto stored = Stored("c", Claiming("p", "c")), open = ClaimOf("c");
  const auto event = [](const dra::ResourceClaim* before, const dra::ResourceClaim* after) {
    return ContextEvent<dra::ResourceClaim>(dra::kClaimKind, before, after);
  };
  EXPECT_TRUE(plugin.MayHelp(event(stored.get(), open.get()), pod));
  EXPECT_TRUE(plugin.MayHelp(event(stored.get(), nullptr), pod));
  EXPECT_FALSE(plugin.MayHelp(event(open.get(), stored.get()), pod));
  EXPECT_TRUE(plugin.MayHelp(event(nullptr, open.get()), Claiming("q", "c"))) << "its own claim";
  EXPECT_FALSE(plugin.MayHelp({ClusterEvent::Kind::kPodBound}, pod));
}

TEST(DynamicResourcesWithoutEngineTest, SnapshotWithTablesIsEnough) {
  ClusterSnapshot snapshot = Snap({NodeOf("a"), NodeOf("b")});
  const Framework framework = Framework::Default();
  EXPECT_NE(framework.Schedule(Claiming("p", "c"), snapshot).node, nullptr)
      << "nothing is known of devices";
  ClusterContext& context = snapshot.ChangeContext();
  PutSlice(context, "b", 1);
  context.device_classes.Set("d", Class());
  context.device_claims.Set("x/c", ClaimOf("c"));
  context.device_claims.Set("x/d", ClaimOf("d"));
  const Decision decision = framework.Schedule(Claiming("p", "c"), snapshot);
  ASSERT_NE(decision.node, nullptr);
  EXPECT_EQ(decision.node->node->meta.name, "b");
  CycleState state;
  EXPECT_TRUE(DynamicResources().Reserve(Claiming("p", "c"), "b", snapshot, state).fits());
  EXPECT_EQ(framework.Schedule(Claiming("q", "d"), snapshot).node, nullptr);
}

// The kubelet would wait for the claim for ever. Pods that are alike share verdicts.
TEST_F(DynamicResourcesTest, NamedClaimKeepsAPodFromNodesWithAPlugin) {
  auto serving = std::make_shared<dra::DeviceClass>(*Class());
  serving->extended_resource_name = "example.com/d";
  engine_.ChangeContext([&](ClusterContext& context) {
    for (const char* node : {"a", "b"}) context.device_slices.Set(node, nullptr);
    context.device_classes.Set("d", serving);
  });
  engine_.SetNode(std::make_shared<const cluster::Node>(NodeOf("a", {{"example.com/d", "1"}})));
  Pod pod = PodOf("p");
  pod.meta.uid = "p";
  pod.containers.front().requests["example.com/d"] = Quantity::FromValue(1);
  EXPECT_EQ(NodeFor(pod), "a");
  Pod named = pod;
  named.extended_claim = "gone";
  EXPECT_EQ(NodeFor(named), "");
  CycleState state;
  EXPECT_EQ(Assume(named, "a", state).code, codes::kDevicesElsewhere);
}

// A profile that disables the plugin would bind the pod without a device.
TEST_F(DynamicResourcesTest, WithoutThePluginNodesLackExtendedResources) {
  auto serving = std::make_shared<dra::DeviceClass>(*Class());
  serving->extended_resource_name = "example.com/d";
  engine_.ChangeContext([&](ClusterContext& context) { context.device_classes.Set("d", serving); },
                        dra::kClassKind, "d");
  Pod pod = PodOf("p");
  pod.meta.uid = "p";
  pod.containers.front().requests["example.com/d"] = Quantity::FromValue(1);
  EXPECT_NE(NodeFor(pod), "");
  std::vector<Framework::Entry> entries;
  entries.push_back({std::make_unique<const NodeResourcesFit>(), 1});
  const Framework alone(std::move(entries));
  EXPECT_EQ(alone.Schedule(pod, engine_.snapshot()).node, nullptr);
}

}  // namespace
}  // namespace nos::scheduling
