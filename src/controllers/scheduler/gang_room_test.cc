// Victims evicted for gangs, and the cost of finding them.
#include <set>
#include <string>
#include <utility>

#include "controllers/scheduler/fixture_test.h"
#include "scheduling/framework.h"
#include "scheduling/plugins/node_resources_fit/plugin.h"

namespace nos::controllers {
namespace {

using scheduling::Framework;

// Counts its calls.
class Counter final : public scheduling::FilterPlugin {
 public:
  explicit Counter(int& asked) : asked_(asked) {}
  std::string Name() const override { return "Counter"; }
  scheduling::DependsOn Dependence() const override { return scheduling::DependsOn::kNodeObject; }
  scheduling::Verdict Filter(const scheduling::CycleState&, const cluster::Pod&,
                             const cluster::NodeInfo&) const override {
    ++asked_;
    return scheduling::Verdict::Fits();
  }

 private:
  int& asked_;
};

// Accepts only pool "b", as addedAffinity of a profile can.
class InPoolB final : public scheduling::FilterPlugin {
 public:
  std::string Name() const override { return "InPoolB"; }
  scheduling::DependsOn Dependence() const override { return scheduling::DependsOn::kNodeObject; }
  scheduling::Verdict Filter(const scheduling::CycleState&, const cluster::Pod&,
                             const cluster::NodeInfo& node) const override {
    return node.node->meta.labels.contains("b")
               ? scheduling::Verdict::Fits()
               : scheduling::Verdict::Unresolvable("Pool", "node(s) were of another pool");
  }
};

class GangRoomTest : public SchedulerFixture {
 protected:
  void Member(const std::string& name, int priority = 9) {
    PutPod(name, "cpu", "1", priority, {{"scheduling.x-k8s.io/pod-group", "g"}});
  }
  void Running(const std::string& name, const std::string& node, int priority,
               const JsonObject& labels = {}) {
    PutPod(name, "cpu", "1", priority, labels);
    BindElsewhere(name, node);
  }
  // Runs ten minutes. A controller creates evicted pods again on these nodes of one core each.
  // Returns the number of evictions.
  int Evictions(const std::set<std::string>& nodes) {
    for (const std::string& node : nodes) Running("low-" + node, node, 0);
    int evictions = 0;
    for (int i = 0; i < 20; ++i) {
      Run();
      for (const std::string& node : nodes) {
        if (NodeOf("low-" + node) != "gone") continue;
        ++evictions;
        PutPod("low-" + node, "cpu", "1", 0);
      }
      clock_.Advance(seconds(30));
    }
    return evictions;
  }
};

// Each of two members needs a volume, but only one volume exists.
TEST_F(GangRoomTest, EvictsNothingForMembersWithoutVolumes) {
  api_.Put({{"kind", "StorageClass"},
            {"metadata", {{"name", "disk"}}},
            {"provisioner", "kubernetes.io/no-provisioner"},
            {"volumeBindingMode", "WaitForFirstConsumer"}});
  api_.Put({{"kind", "PersistentVolume"},
            {"metadata", {{"name", "pv"}, {"uid", "pv"}}},
            {"spec",
             {{"storageClassName", "disk"},
              {"accessModes", JsonArray{"ReadWriteOnce"}},
              {"volumeMode", "Filesystem"},
              {"capacity", {{"storage", "10Gi"}}}}},
            {"status", {{"phase", "Available"}}}});
  for (const char* node : {"n1", "n2"}) CpuNode(node, "1");
  Group("g", 2);
  for (const char* name : {"p0", "p1"}) {
    Member(name);
    GiveClaim(name);
    Json claim = *api_.Find("persistentvolumeclaims", std::string("ml/") + name);
    MakeObject(claim, "spec")["storageClassName"] = "disk";
    MakeObject(claim, "spec")["volumeMode"] = "Filesystem";
    api_.Put(claim);
  }
  EXPECT_EQ(Evictions({"n1", "n2"}), 0);
}

TEST_F(GangRoomTest, EachMemberIsPlacedByItsOwnProfile) {
  std::vector<Framework::Entry> entries;
  entries.push_back({std::make_unique<InPoolB>()});
  const Framework in_pool(std::move(entries));
  UseProfiles({{"default-scheduler", framework_.get()}, {"pool-b", &in_pool}});
  for (const char* node : {"n1", "n2"}) CpuNode(node, "1");
  Group("g", 2);
  for (const char* name : {"p0", "p1"}) Member(name);
  ChangePod("p1", [](Json& pod) { MakeObject(pod, "spec")["schedulerName"] = "pool-b"; });
  EXPECT_EQ(Evictions({"n1", "n2"}), 0);
  End();
}

// A hundred nodes of one core each, `taken` of them in use. One pod has lower priority, but its
// node is too small for the preemptor.
class CostTest : public GangRoomTest {
 protected:
  void HundredNodes(int taken) {
    config_.remedies_per_call = 0;
    UseProfiles({{"default-scheduler", &counting_}});
    for (int i = 0; i < 100; ++i) {
      const std::string node = "n" + std::to_string(i);
      CpuNode(node, i == 0 ? "0" : "1");
      if (i < taken) Running("r" + std::to_string(i), node, i == 0 ? -1 : 9);
    }
    Run();
    asked_ = 0;
  }
  void TearDown() override { End(); }

  int asked_ = 0;
  const Framework counting_ = [this] {
    std::vector<Framework::Entry> entries;
    entries.push_back({std::make_unique<Counter>(asked_)});
    entries.push_back({std::make_unique<scheduling::NodeResourcesFit>()});
    return Framework(std::move(entries));
  }();
};

TEST_F(CostTest, EvaluatesIdenticalMembersOnce) {
  HundredNodes(61);
  Group("g", 40);
  for (int i = 0; i < 40; ++i) Member("p" + std::to_string(i));
  Run();
  EXPECT_EQ(NodeOf("p0"), "");
  EXPECT_LT(asked_, 1000);
}

TEST_F(CostTest, EvaluatesIdenticalPodsOnce) {
  HundredNodes(100);
  for (int i = 0; i < 40; ++i) PutPod("p" + std::to_string(i), "cpu", "2", 9);
  Run();
  EXPECT_EQ(NodeOf("p0"), "");
  EXPECT_LT(asked_, 1000);
}

TEST_F(CostTest, SkipsVictimSearchWithoutPodsOfLowerPriority) {
  HundredNodes(100);
  api_.Remove("pods", "ml/r0");
  Run();
  asked_ = 0;
  for (int i = 0; i < 40; ++i) PutPod("p" + std::to_string(i), "cpu", std::to_string(i + 2), 9);
  Run();
  // The pods are of different kinds: filters and explanations.
  const int without_search = 40 * 2 * 100;
  EXPECT_LE(asked_, without_search);
}

}  // namespace
}  // namespace nos::controllers
