#include "planning/live_filters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "planning/testing/clusters.h"

namespace nos::planning {
namespace {

using scheduling::DependsOn;
using scheduling::Verdict;

// At most one pod labelled "spread" on a node.
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

TEST(LiveFiltersTest, PlanIsPlayedThroughAndMadeAgain) {
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

}  // namespace
}  // namespace nos::planning
