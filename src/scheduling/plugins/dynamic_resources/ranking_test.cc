// Nodes and devices are chosen where GPUs stay most useful.
#include <gtest/gtest.h>

#include "dra/cel_expressions.h"
#include "dra/context.h"
#include "dra/device_index.h"
#include "scheduling/engine.h"
#include "scheduling/framework.h"
#include "scheduling/plugins/dynamic_resources/plugin.h"
#include "scheduling/testing/build.h"

namespace nos::scheduling {
namespace {

using cluster::ClusterContext;
using cluster::Pod;
using testing::NodeOf;
using testing::PodOf;

template <typename T>
std::shared_ptr<const T> Read(const Json& json, Status (*read)(JsonSource, T&)) {
  auto object = std::make_shared<T>();
  const Status status = read(json, *object);
  EXPECT_TRUE(status.ok()) << status.message();
  return object;
}

Json Text(const std::string& text) { return {{"string", text}}; }

// One H100 as NVIDIA's driver publishes it, with some of its profiles.
void PutGpu(ClusterContext& context, const std::string& node) {
  struct Kind {
    const char* profile;
    int slots;
    std::vector<int> starts;
  };
  const Kind kinds[] = {{"", 8, {0}},
                        {"1g.10gb", 1, {0, 1, 2, 3, 4, 5, 6}},
                        {"3g.40gb", 4, {0, 4}},
                        {"4g.40gb", 4, {0}}};
  const auto counters = [](int from, int count) {
    JsonObject slices;
    for (int i = from; i < from + count; ++i) slices[std::to_string(i)] = {{"value", "1"}};
    return slices;
  };
  JsonArray devices;
  for (const Kind& kind : kinds) {
    const std::string profile = kind.profile;
    for (const int start : kind.starts) {
      JsonObject attributes = {{"productName", Text("NVIDIA H100 80GB HBM3")},
                               {"type", Text(profile.empty() ? "gpu" : "mig")}};
      attributes[profile.empty() ? "uuid" : "parentUUID"] = Text("GPU-" + node);
      if (!profile.empty()) attributes["profile"] = Text(profile);
      std::string name = "gpu-0-mig-" + profile.substr(0, 2) + "-0-" + std::to_string(start);
      devices.push_back(
          {{"name", profile.empty() ? "gpu-0" : name},
           {"attributes", attributes},
           {"consumesCounters",
            JsonArray{{{"counterSet", "gpu-0"}, {"counters", counters(start, kind.slots)}}}}});
    }
  }
  const auto put = [&](const std::string& name, const std::string& key, const JsonArray& content) {
    JsonObject spec = {{"driver", "gpu.nvidia.com"}, {"nodeName", node}};
    spec["pool"] = {{"name", node}, {"generation", 1}, {"resourceSliceCount", 2}};
    spec[key] = content;
    context.device_slices.Set(
        name, Read<dra::ResourceSlice>({{"metadata", {{"name", name}}}, {"spec", spec}},
                                       dra::ReadResourceSlice));
  };
  put(node + "-0", "devices", devices);
  put(node + "-1", "sharedCounters", JsonArray{{{"name", "gpu-0"}, {"counters", counters(0, 8)}}});
}

// Profiles in order of preference; "": a whole GPU.
std::shared_ptr<const dra::ResourceClaim> ClaimOf(const std::string& name,
                                                  const std::vector<std::string>& profiles) {
  JsonArray alternatives;
  for (const std::string& profile : profiles) {
    const std::string attributes = "device.attributes['gpu.nvidia.com']";
    const std::string expression =
        profile.empty()
            ? attributes + ".type == 'gpu'"
            : attributes + ".type == 'mig' && " + attributes + ".profile == '" + profile + "'";
    alternatives.push_back({{"name", "a" + std::to_string(alternatives.size())},
                            {"deviceClassName", "d"},
                            {"allocationMode", "ExactCount"},
                            {"count", 1},
                            {"selectors", JsonArray{{{"cel", {{"expression", expression}}}}}}});
  }
  return Read<dra::ResourceClaim>(
      {{"metadata", {{"namespace", "x"}, {"name", name}, {"uid", name}, {"resourceVersion", "7"}}},
       {"spec",
        {{"devices",
          {{"requests", JsonArray{{{"name", "r"}, {"firstAvailable", alternatives}}}}}}}}},
      dra::ReadResourceClaim);
}

// Nodes "a" and "b" with a GPU each.
class DeviceRankingTest : public ::testing::Test {
 protected:
  DeviceRankingTest() {
    engine_.FollowDevices(std::make_shared<dra::DeviceIndex>(
        dra::Features::Of(37), std::make_shared<const dra::CelExpressions>()));
    for (const char* name : {"a", "b"}) {
      engine_.SetNode(std::make_shared<const cluster::Node>(
          NodeOf(name, {{"cpu", "32"}, {"memory", "128Gi"}})));
    }
    engine_.ChangeContext([](ClusterContext& context) {
      for (const char* name : {"a", "b"}) PutGpu(context, name);
      auto any = std::make_shared<dra::DeviceClass>();
      any->name = "d";
      context.device_classes.Set("d", any);
    });
  }

  Pod Claiming(const std::string& name, const std::vector<std::string>& profiles,
               testing::Amounts requests = {}) {
    const auto claim = ClaimOf(name, profiles);
    engine_.ChangeContext(
        [&](ClusterContext& context) { context.device_claims.Set(claim->Key(), claim); },
        dra::kClaimKind, claim->Key());
    Pod pod = PodOf(name, requests);
    pod.meta.uid = name;
    pod.claims = {{"gpu", name, "", false}};
    return pod;
  }
  // "node/device" that the pod gets; "": none.
  std::string Place(const std::string& name, const std::vector<std::string>& profiles,
                    const std::string& on = "", testing::Amounts requests = {}) {
    const Pod pod = Claiming(name, profiles, requests);
    std::string node = on;
    if (on.empty()) {
      const Decision decision = engine_.Schedule(framework_, std::make_shared<const Pod>(pod));
      if (decision.node == nullptr) return "";
      node = decision.node->node->meta.name;
    }
    engine_.Assume(std::make_shared<const Pod>(pod), node);
    CycleState state;
    if (!engine_.Reserve(framework_, pod, node, state).fits()) return "";
    const auto* assumed = engine_.snapshot().context().devices->FindAssumed("x/" + name);
    if (assumed == nullptr) return "";
    return node + "/" + assumed->allocation.devices.at(0).device.str();
  }

  Framework framework_ = Framework::Default();
  Engine engine_{gpu::Catalogue::Builtin()};
};

TEST_F(DeviceRankingTest, ReservesTheStartThatCostsLeast) {
  EXPECT_EQ(Place("p", {"1g.10gb"}, "b"), "b/gpu-0-mig-1g-0-6");
  EXPECT_EQ(Place("q", {"3g.40gb"}, "b"), "b/gpu-0-mig-3g-0-0");
}

TEST_F(DeviceRankingTest, PrefersTheNodeThatLosesLeast) {
  ASSERT_EQ(Place("p", {"4g.40gb"}, "b"), "b/gpu-0-mig-4g-0-0");
  EXPECT_EQ(Place("q", {"3g.40gb"}), "b/gpu-0-mig-3g-0-4") << "a is first by name";
  EXPECT_EQ(Place("r", {"3g.40gb"}), "a/gpu-0-mig-3g-0-4");
}

// Without GPUs, the emptiest and most balanced node would be the best.
TEST_F(DeviceRankingTest, FreeProcessorsDoNotOutweighLosses) {
  ASSERT_EQ(Place("p", {"4g.40gb"}, "b", {{"cpu", "24"}}), "b/gpu-0-mig-4g-0-0");
  EXPECT_EQ(Place("q", {"3g.40gb"}, "", {{"cpu", "2"}, {"memory", "8Gi"}}), "b/gpu-0-mig-3g-0-4");
}

TEST_F(DeviceRankingTest, PodsWithoutClaimsStayOffNodesWithGpus) {
  engine_.SetNode(
      std::make_shared<const cluster::Node>(NodeOf("c", {{"cpu", "4"}, {"memory", "8Gi"}})));
  const Decision decision =
      engine_.Schedule(framework_, std::make_shared<const Pod>(PodOf("p", {{"cpu", "2"}})));
  ASSERT_NE(decision.node, nullptr);
  EXPECT_EQ(decision.node->node->meta.name, "c") << "a and b are emptier";
}

// Many pods of one kind: only the node that took the last one is scored anew.
TEST_F(DeviceRankingTest, FillsANodeBeforeTheNext) {
  std::string nodes;
  for (int i = 0; i < 15; ++i) {
    const std::string place = Place("p" + std::to_string(i), {"1g.10gb"});
    nodes += place.empty() ? '-' : place.front();
  }
  EXPECT_EQ(nodes, "aaaaaaabbbbbbb-");
}

TEST_F(DeviceRankingTest, EarlierAlternativesOutweighLosses) {
  ASSERT_EQ(Place("p", {"4g.40gb"}, "a"), "a/gpu-0-mig-4g-0-0");
  EXPECT_EQ(Place("q", {"", "1g.10gb"}), "b/gpu-0") << "a slice on node a would cost less";
  EXPECT_EQ(Place("r", {"", "1g.10gb"}), "a/gpu-0-mig-1g-0-6");
}

TEST_F(DeviceRankingTest, PodsWithoutOpenClaimsAreNotScored) {
  CycleState state;
  const DynamicResources plugin;
  const Pod pod = PodOf("p");
  plugin.PreFilter(pod, engine_.snapshot(), state);
  EXPECT_FALSE(plugin.PreScore(pod, engine_.snapshot(), {}, state));
  const Pod claiming = Claiming("q", {"1g.10gb"});
  plugin.PreFilter(claiming, engine_.snapshot(), state);
  EXPECT_TRUE(plugin.PreScore(claiming, engine_.snapshot(), {}, state));
}

}  // namespace
}  // namespace nos::scheduling
