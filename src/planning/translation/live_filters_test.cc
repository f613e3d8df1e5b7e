#include "planning/translation/live_filters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "planning/planner.h"
#include "planning/testing/clusters.h"
#include "scheduling/framework.h"

namespace nos::planning {
namespace {

using scheduling::DependsOn;
using scheduling::Verdict;

// At most one pod with the label "spread" per node.
class OneANode final : public scheduling::FilterPlugin {
 public:
  std::string Name() const override { return "OneANode"; }
  DependsOn Dependence() const override { return DependsOn::kNodeUsage; }
  bool Concerns(const cluster::Pod& pod) const override {
    return pod.meta.labels.contains("spread");
  }
  Verdict Filter(const scheduling::CycleState&, const cluster::Pod&,
                 const cluster::NodeInfo& node) const override {
    const bool taken = std::any_of(node.pods.begin(), node.pods.end(),
                                   [this](const auto& p) { return Concerns(*p); });
    return taken ? Verdict::Unschedulable("Crowded", "node(s) had one already") : Verdict::Fits();
  }
};

TEST(LiveFiltersTest, ReplaysPlanAndSearchesAgainAfterObjection) {
  testing::ClusterBuilder cluster;
  for (const char* name : {"a", "b", "c"}) cluster.Node(name, "NVIDIA-A30", {"", ""});
  for (int i = 0; i < 4; ++i) {
    cluster.Pod("p" + std::to_string(i), {"1g.6gb"}).meta.labels["spread"] = "";
  }
  cluster.Pod("q", {"1g.6gb"});
  std::vector<scheduling::Framework::Entry> entries;
  entries.push_back({std::make_unique<OneANode>(), 1});
  const scheduling::Framework framework(std::move(entries));
  const Plan plan = MakePlan(cluster.Snapshot(), cluster.Pending(), framework, {});
  EXPECT_EQ(testing::PlanFault(plan, cluster.Snapshot()), "");
  EXPECT_EQ(plan.placed, 4);
  std::set<std::string> nodes;
  for (const PodOutcome& p : plan.pods) {
    if (!p.placed) {
      EXPECT_EQ(p.reasons[0].code, "Crowded");
    } else if (p.pod->meta.name != "q") {
      EXPECT_TRUE(nodes.insert(p.node).second);
    }
  }
  EXPECT_EQ(nodes.size(), 3);
}

cluster::PodAffinityTerm Selecting(std::string app, std::string key) {
  return {cluster::LabelSelector{{{"app", std::move(app)}}, {}}, {}, std::nullopt, std::move(key)};
}

// Three nodes with two GPUs each in two zones; a and b are in zone 1.
testing::ClusterBuilder Zoned() {
  testing::ClusterBuilder cluster;
  for (const char* name : {"a", "b", "c"}) {
    cluster::Node& node = cluster.Node(name, "NVIDIA-A30", {"", ""});
    node.meta.labels["zone"] = name[0] == 'c' ? "2" : "1";
    node.meta.labels["host"] = name;
  }
  return cluster;
}

std::map<std::string, std::string> NodesOf(const Plan& plan) {
  std::map<std::string, std::string> nodes;
  for (const PodOutcome& p : plan.pods) {
    if (p.placed) nodes[p.pod->meta.name] = p.node;
  }
  return nodes;
}

TEST(LiveFiltersTest, PlacesPodsWithAntiAffinityOnDifferentNodes) {
  testing::ClusterBuilder cluster = Zoned();
  for (int i = 0; i < 4; ++i) {
    cluster::Pod& pod = cluster.Pod("p" + std::to_string(i), {"1g.6gb"});
    pod.meta.labels["app"] = "web";
    pod.pod_anti_affinity.required = {Selecting("web", "host")};
  }
  const scheduling::Framework framework = scheduling::Framework::Default();
  const Plan plan = MakePlan(cluster.Snapshot(), cluster.Pending(), framework, {});
  EXPECT_EQ(testing::PlanFault(plan, cluster.Snapshot()), "");
  EXPECT_EQ(plan.placed, 3);
  std::set<std::string> nodes;
  for (const auto& [pod, node] : NodesOf(plan)) nodes.insert(node);
  EXPECT_EQ(nodes.size(), 3U);
  for (const PodOutcome& p : plan.pods) {
    EXPECT_EQ(p.placed ? "" : p.reasons[0].code, p.placed ? "" : "PodAntiAffinity");
  }
}

TEST(LiveFiltersTest, AntiAffinityOfOtherPodsAppliesToUnconstrainedPods) {
  testing::ClusterBuilder cluster = Zoned();
  cluster::Pod& db = cluster.Pod("db", {"4g.24gb"});
  db.node_selector["zone"] = "1";
  db.pod_anti_affinity.required = {Selecting("web", "zone")};
  for (int i = 0; i < 6; ++i)
    cluster.Pod("w" + std::to_string(i), {"1g.6gb"}).meta.labels["app"] = "web";
  cluster.Pod("q", {"4g.24gb"}).meta.labels["app"] = "other";
  const scheduling::Framework framework = scheduling::Framework::Default();
  const Plan plan = MakePlan(cluster.Snapshot(), cluster.Pending(), framework, {});
  EXPECT_EQ(testing::PlanFault(plan, cluster.Snapshot()), "");
  const auto nodes = NodesOf(plan);
  EXPECT_TRUE(nodes.contains("db"));
  EXPECT_TRUE(nodes.contains("q"));
  int webs = 0;
  for (const auto& [pod, node] : nodes) {
    if (!pod.starts_with("w")) continue;
    ++webs;
    EXPECT_EQ(node, "c") << pod;
  }
  EXPECT_EQ(webs, 6);
}

TEST(LiveFiltersTest, SelectsPodsToWhichLiveFiltersApply) {
  testing::ClusterBuilder cluster = Zoned();
  cluster::Pod& db = cluster.Pod("db", {"1g.6gb"});
  db.pod_anti_affinity.required = {Selecting("web", "zone")};
  cluster.Pod("web", {"1g.6gb"}).meta.labels["app"] = "web";
  cluster.Pod("other", {"1g.6gb"}).meta.labels["app"] = "other";
  cluster::TopologySpreadConstraint spread;
  spread.topology_key = "zone";
  spread.when_unsatisfiable = "ScheduleAnyway";
  cluster.Pod("soft", {"1g.6gb"}).spread = {spread};
  spread.when_unsatisfiable = "DoNotSchedule";
  cluster.Pod("hard", {"1g.6gb"}).spread = {spread};
  cluster.Pod("data", {"1g.6gb"}).volumes = {{"v", cluster::Volume::Kind::kClaim, "data"}};
  cluster.Pod("disk", {"1g.6gb"}).volumes = {{"v", cluster::Volume::Kind::kIscsi, "iqn"}};
  const scheduling::Framework framework = scheduling::Framework::Default();
  const cluster::ClusterSnapshot snapshot = cluster.Snapshot();
  const auto pending = cluster.Pending();
  const LivePods live(snapshot, pending, framework);
  std::set<std::string> names;
  for (const auto& pod : pending) {
    if (live.Has(*pod)) names.insert(pod->meta.name);
  }
  EXPECT_EQ(names, (std::set<std::string>{"db", "disk", "hard", "web"}));
}

// Admits node c only.
class OnlyC final : public scheduling::FilterPlugin {
 public:
  std::string Name() const override { return "OnlyC"; }
  DependsOn Dependence() const override { return DependsOn::kNodeObject; }
  Verdict Filter(const scheduling::CycleState&, const cluster::Pod&,
                 const cluster::NodeInfo& node) const override {
    return node.node->meta.name == "c" ? Verdict::Fits()
                                       : Verdict::Unschedulable("NotC", "node(s) were not c");
  }
};

TEST(LiveFiltersTest, UsesFiltersOfThePodsScheduler) {
  testing::ClusterBuilder cluster = Zoned();  // eight slices per node
  for (int i = 0; i < 10; ++i) {
    cluster.Pod("p" + std::to_string(i), {"1g.6gb"}).scheduler_name = "picky";
    cluster.Pod("q" + std::to_string(i), {"1g.6gb"}).scheduler_name = "another";
  }
  std::vector<scheduling::Framework::Entry> entries;
  entries.push_back({std::make_unique<OnlyC>(), 1});
  const scheduling::Framework picky(std::move(entries));
  const scheduling::Framework usual = scheduling::Framework::Default();
  const scheduling::FrameworkChoice choice(usual, {{"picky", &picky}});
  const Plan plan = MakePlan(cluster.Snapshot(), cluster.Pending(), choice, {});
  std::map<std::string, int> placed;
  for (const auto& [pod, node] : NodesOf(plan)) {
    EXPECT_TRUE(pod[0] == 'q' || node == "c") << pod;
    ++placed[pod.substr(0, 1)];
  }
  EXPECT_EQ(placed["p"], 8);
  EXPECT_EQ(placed["q"], 10);
  for (const PodOutcome& p : plan.pods) {
    EXPECT_TRUE(p.placed || p.reasons[0].code == "NotC");
  }
}

TEST(LiveFiltersTest, PlacesPodsOnNodesOfTheirVolumes) {
  testing::ClusterBuilder cluster = Zoned();
  cluster.Pod("p", {"1g.6gb"}).volumes = {{"v", cluster::Volume::Kind::kClaim, "data"}};
  const scheduling::Framework framework = scheduling::Framework::Default();
  cluster::ClusterSnapshot snapshot = cluster.Snapshot();
  const auto where = [&] {
    return NodesOf(MakePlan(snapshot, cluster.Pending(), framework, {}))["p"];
  };
  EXPECT_NE(where(), "") << "the snapshot has no volume claims";
  cluster::PersistentVolumeClaim claim;
  claim.volume_name = "pv";
  claim.meta.annotations["pv.kubernetes.io/bind-completed"] = "yes";
  cluster::PersistentVolume volume;
  volume.node_terms.emplace().push_back({{{"zone", "In", {"2"}}}, {}});
  cluster::ClusterContext& context = snapshot.ChangeContext();
  EXPECT_EQ(where(), "") << "its volume claim does not exist";
  const std::string ns = cluster.Pending()[0]->meta.ns;
  context.claims.Set(ns + "/data", std::make_shared<const cluster::PersistentVolumeClaim>(claim));
  context.volumes.Set("pv", std::make_shared<const cluster::PersistentVolume>(volume));
  EXPECT_EQ(where(), "c");
}

}  // namespace
}  // namespace nos::planning
