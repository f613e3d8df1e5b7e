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
  void UseProfiles(const std::vector<SchedulerProfile>& profiles) {
    runner_.reset();
    scheduler_ = std::make_unique<Scheduler>(config_, profiles, gpu::Catalogue::Builtin());
    reconcile::RunnerOptions options;
    options.watch_around = true;
    runner_ = std::make_unique<reconcile::Runner>(*scheduler_, watches_, options);
  }
  void Group(const std::string& name, int least) {
    api_.Put({{"kind", "PodGroup"},
              {"metadata", {{"namespace", "ml"}, {"name", name}}},
              {"spec", {{"minMember", least}}}});
  }
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

// Three pods with a PodDisruptionBudget that allows one disruption, and three without.
TEST_F(GangRoomTest, RespectsBudgetForEachVictim) {
  for (const std::string i : {"0", "1", "2"}) {
    CpuNode("a" + i, "1");
    CpuNode("b" + i, "1");
    Running("guarded" + i, "a" + i, 0, {{"app", "guarded"}});
    Running("plain" + i, "b" + i, 1);
  }
  api_.Put({{"kind", "PodDisruptionBudget"},
            {"metadata", {{"namespace", "ml"}, {"name", "b"}}},
            {"spec", {{"selector", {{"matchLabels", {{"app", "guarded"}}}}}}},
            {"status", {{"disruptionsAllowed", 1}}}});
  Run();
  LetPodsEndSlowly();
  Group("g", 3);
  for (const char* name : {"p0", "p1", "p2"}) Member(name);
  Run();
  int guarded = 0, plain = 0;
  for (const std::string i : {"0", "1", "2"}) {
    guarded += IsEnding("guarded" + i) ? 1 : 0;
    plain += IsEnding("plain" + i) ? 1 : 0;
  }
  EXPECT_EQ(guarded, 1);
  EXPECT_EQ(plain, 2);
}

// Two workers run. The launcher, of higher priority, is created again and lacks capacity.
TEST_F(GangRoomTest, DoesNotPreemptMembersOfOwnGang) {
  CpuNode("n", "3");
  Group("g", 3);
  for (const char* name : {"w0", "w1"}) {
    Member(name, 0);
    BindElsewhere(name, "n");
  }
  Running("stranger", "n", 50);
  Run();
  Member("launcher");
  for (int i = 0; i < 5; ++i) {
    Run();
    clock_.Advance(std::chrono::minutes(1));
  }
  EXPECT_EQ(NodeOf("w0"), "n");
  EXPECT_EQ(NodeOf("w1"), "n");
}

TEST_F(GangRoomTest, OptionalMemberDoesNotPreemptOwnGang) {
  CpuNode("n", "2");
  Group("g", 2);
  for (const char* name : {"w0", "w1"}) {
    Member(name, 0);
    BindElsewhere(name, "n");
  }
  Run();
  Member("launcher");
  Run();
  EXPECT_EQ(NodeOf("w0"), "n");
  EXPECT_EQ(NodeOf("w1"), "n");
}

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
  runner_.reset();
  scheduler_.reset();
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
  void TearDown() override {
    runner_.reset();
    scheduler_.reset();
  }

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
