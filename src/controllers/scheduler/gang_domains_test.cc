// Gangs with members that must be near each other or spread evenly. They are placed regardless of
// the order of their members, and all topology domains are tried.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "controllers/scheduler/fixture_test.h"
#include "scheduling/framework.h"
#include "scheduling/plugins/inter_pod_affinity/plugin.h"
#include "scheduling/plugins/node_affinity/plugin.h"
#include "scheduling/plugins/node_resources_fit/plugin.h"

namespace nos::controllers {
namespace {

constexpr const char* kPreferred = "preferredDuringSchedulingIgnoredDuringExecution";
constexpr const char* kRequired = "requiredDuringSchedulingIgnoredDuringExecution";

class NearGangTest : public SchedulerFixture {
 protected:
  void Node(const std::string& name, const std::string& zone, const std::string& cpu) {
    CpuNode(name, cpu);
    Json node = *api_.Find("nodes", name);
    MakeObject(node, "metadata", "labels")["zone"] = zone;
    api_.Put(node);
  }
  void Group(int least) { SchedulerFixture::Group("g", least); }
  void Member(const std::string& name, const std::string& app, const std::string& cpu = "1",
              int priority = 0) {
    PutPod(name, "cpu", cpu, priority, {{"scheduling.x-k8s.io/pod-group", "g"}, {"app", app}});
  }
  // The pod must be in the zone of a pod of this app.
  void Near(const std::string& name, const std::string& app) {
    ChangePod(name, [&](Json& pod) {
      MakeObject(pod, "spec", "affinity", "podAffinity")[kRequired] = JsonArray{
          {{"topologyKey", "zone"}, {"labelSelector", {{"matchLabels", {{"app", app}}}}}}};
    });
  }
  // The zone's nodes score best for the pod.
  void Likes(const std::string& name, const std::string& zone) {
    ChangePod(name, [&](Json& pod) {
      const Json in_zone{{"key", "zone"}, {"operator", "In"}, {"values", JsonArray{zone}}};
      MakeObject(pod, "spec", "affinity", "nodeAffinity")[kPreferred] =
          JsonArray{{{"weight", 100}, {"preference", {{"matchExpressions", JsonArray{in_zone}}}}}};
    });
  }
  // P0, p1, ... with one core each. They must be in one zone and prefer zone a.
  void Workers(int count) {
    for (int i = 0; i < count; ++i) {
      const std::string name = "p" + std::to_string(i);
      Member(name, "worker");
      Near(name, "worker");
      Likes(name, "a");
    }
  }
  void GpuAndCpuZones() {
    Node("a1", "a", "1");
    UpdateNode("a1", {}, {{"example.com/gpu", "2"}});
    Node("b1", "b", "4");
  }
  // P0 and p1 fit only zone a, p2 and p3 only zone b. The maximum skew between zones is 1.
  void SpreadGang(int priority) {
    Group(4);
    for (const std::string name : {"p0", "p1", "p2", "p3"}) {
      const bool on_gpu = name < "p2";
      PutPod(name, on_gpu ? "example.com/gpu" : "cpu", on_gpu ? "1" : "2", priority,
             {{"scheduling.x-k8s.io/pod-group", "g"}, {"app", "worker"}});
      ChangePod(name, [](Json& pod) {
        MakeObject(pod, "spec")["topologySpreadConstraints"] =
            JsonArray{{{"maxSkew", 1},
                       {"topologyKey", "zone"},
                       {"whenUnsatisfiable", "DoNotSchedule"},
                       {"labelSelector", {{"matchLabels", {{"app", "worker"}}}}}}};
      });
    }
  }
  void Taint(const std::string& node, bool tainted = true) {
    Json changed = *api_.Find("nodes", node);
    JsonArray taints;
    if (tainted) taints.push_back(JsonObject{{"key", "k"}, {"effect", "NoSchedule"}});
    MakeObject(changed, "spec")["taints"] = taints;
    api_.Put(changed);
  }
  // The zones of the members in order; "-": pending.
  std::string ZonesOf(int count) {
    std::string zones;
    for (int i = 0; i < count; ++i) {
      const std::string node = NodeOf("p" + std::to_string(i));
      zones += node.empty() ? "-" : node.substr(0, 1);
    }
    return zones;
  }
  size_t PodsOn(const std::string& node) { return scheduler_->snapshot().Find(node)->pods.size(); }
  void TakePort(const std::string& name) {
    ChangePod(name, [](Json& pod) {
      pod.at("spec").at("containers").at(0).as_object()["ports"] =
          JsonArray{{{"containerPort", 80}, {"hostPort", 80}}};
    });
  }
};

// Zone a: the port is in use. Zone b: p1 lacks a core once p0 is placed.
TEST_F(NearGangTest, EventInAnotherZoneWakesGang) {
  Node("a1", "a", "9");
  Node("b1", "b", "1");
  PutPod("web", "cpu", "1", 0);
  TakePort("web");
  BindElsewhere("web", "a1");
  Run();
  Group(2);
  Workers(2);
  TakePort("p1");
  Run();
  ASSERT_EQ(ZonesOf(2), "--");
  UpdateNode("b1", {}, {{"cpu", "2"}});
  Run();
  EXPECT_EQ(ZonesOf(2), "bb") << Why("p0");
}

// Only the leader determines the zone of both.
TEST_F(NearGangTest, TriesAnotherZoneForLeader) {
  Node("a1", "a", "1");
  Node("b1", "b", "2");
  Group(2);
  Member("a-worker", "worker");
  Near("a-worker", "leader");
  Member("b-leader", "leader");
  Likes("b-leader", "a");
  Run();
  EXPECT_EQ(NodeOf("a-worker") + NodeOf("b-leader"), "b1b1") << Why("a-worker");
}

// The monitor comes first, but does not restrict the zone of the others.
TEST_F(NearGangTest, UntiedMemberDoesNotFixTheZone) {
  Node("a1", "a", "3");
  Node("b1", "b", "2");
  Node("b2", "b", "2");
  Group(3);
  Member("monitor", "monitor");
  Likes("monitor", "a");
  for (const std::string name : {"p0", "p1"}) {
    Member(name, "worker", "2");
    Near(name, "worker");
    Likes(name, "a");
  }
  Run();
  EXPECT_EQ(NodeOf("monitor") + ZonesOf(2), "a1bb") << Why("p0");
}

// Before p2 is in zone b, p1 would violate the skew in zone a.
TEST_F(NearGangTest, PlacesSpreadMembersInAnyOrder) {
  GpuAndCpuZones();
  SpreadGang(0);
  Run();
  EXPECT_EQ(ZonesOf(4), "aabb") << Why("p0");
}

TEST_F(NearGangTest, PreemptsForSpreadGang) {
  GpuAndCpuZones();
  PutPod("low0", "example.com/gpu", "2", 0);
  PutPod("low1", "cpu", "4", 0);
  BindElsewhere("low0", "a1");
  BindElsewhere("low1", "b1");
  Run();
  SpreadGang(9);
  Run();
  EXPECT_EQ(NodeOf("low0") + NodeOf("low1"), "gonegone") << Why("p0");
  EXPECT_EQ(ZonesOf(4), "aabb") << Why("p0");
}

// Zones with capacity for fewer members do not count against the limit of attempts either.
TEST_F(NearGangTest, UnsuitableZonesDoNotUseUpAttempts) {
  Node("a1", "a", "1");
  for (int i = 10; i < 30; ++i) {
    const std::string full = "f" + std::to_string(i), small = "s" + std::to_string(i);
    Node(full, full, "9");
    Taint(full);
    Node(small, small, "1");
  }
  Node("z1", "z", "2");
  Group(2);
  Workers(2);
  Run();
  EXPECT_EQ(ZonesOf(2), "zz") << Why("p0");
}

// No attempt starts in zone b, because p0 fits only zone a.
TEST_F(NearGangTest, RemovedTaintInUntriedZoneWakesGang) {
  Node("a1", "a", "1");
  Node("b1", "b", "2");
  Taint("b1");
  Group(2);
  Workers(2);
  ChangePod("p1", [](Json& pod) {
    MakeObject(pod, "spec")["tolerations"] = JsonArray{JsonObject{{"operator", "Exists"}}};
  });
  Run();
  ASSERT_EQ(ZonesOf(2), "--");
  Taint("b1", false);
  Run();
  EXPECT_EQ(ZonesOf(2), "bb") << Why("p0");
}

// Refuses to reserve in zone b, and counts its calls.
class NotInB final : public scheduling::ReservePlugin {
 public:
  explicit NotInB(int& asked) : asked_(asked) {}
  std::string Name() const override { return "NotInB"; }
  scheduling::Verdict Reserve(const cluster::Pod&, std::string_view node, cluster::ClusterSnapshot&,
                              scheduling::CycleState&) const override {
    ++asked_;
    return node == "b1" ? scheduling::Verdict::Unschedulable("NotInB", "not in b")
                        : scheduling::Verdict::Fits();
  }
  void Unreserve(const cluster::Pod&, std::string_view, cluster::ClusterSnapshot&,
                 scheduling::CycleState&) const override {}

 private:
  int& asked_;
};

class ReservingGangTest : public NearGangTest {
 protected:
  ReservingGangTest() {
    std::vector<scheduling::Framework::Entry> entries;
    entries.push_back({std::make_unique<scheduling::NodeResourcesFit>()});
    entries.push_back({std::make_unique<scheduling::NodeAffinity>(), 9});
    entries.push_back({std::make_unique<scheduling::InterPodAffinity>()});
    entries.push_back({std::make_unique<NotInB>(asked_)});
    reserving_ = std::make_unique<scheduling::Framework>(std::move(entries));
    UseProfiles({{"default-scheduler", reserving_.get()}});
  }
  // The scheduler must be destroyed before its framework.
  void TearDown() override { End(); }

  int asked_ = 0;
  std::unique_ptr<scheduling::Framework> reserving_;
};

// The zone is refused like one without capacity: without an error and without an early retry. p1 is
// not tried there, because it is like p0.
TEST_F(ReservingGangTest, FailedReserveInAnotherZoneIsNoError) {
  Node("a1", "a", "1");
  Node("b1", "b", "2");
  Group(2);
  Workers(2);
  Run();
  EXPECT_TRUE(Why("p0").starts_with("pod group ml/g: 1 of its pods find a node together, and 2 "))
      << Why("p0");
  EXPECT_EQ(scheduler_->bindings() + PodsOn("a1") + PodsOn("b1"), 0U);
  EXPECT_EQ(scheduler_->queue().asleep(), 2U);
  EXPECT_EQ(asked_, 2) << "for p0 in each zone";
}

// The monitor comes first and fits in no zone.
TEST_F(ReservingGangTest, StopsTryingZonesWhenOneMemberFitsNowhere) {
  Node("a1", "a", "2");
  Node("c1", "c", "2");
  Node("d1", "d", "2");
  Group(3);
  Member("monitor", "monitor", "3");
  Workers(2);
  Run();
  EXPECT_EQ(ZonesOf(2), "--");
  EXPECT_EQ(asked_, 2) << "for p0 and p1 in zone a";
}

}  // namespace
}  // namespace nos::controllers
