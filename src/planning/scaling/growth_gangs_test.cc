// New nodes for gangs whose pods must be near each other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "planning/growth.h"
#include "planning/testing/clusters.h"
#include "planning/testing/pools.h"
#include "scheduling/framework.h"

namespace nos::planning {
namespace {

using ::testing::ElementsAre;
using testing::Now;

class GrowthGangsTest : public ::testing::Test {
 protected:
  void Pool(const std::string& name, const std::string& zone, int max, const std::string& price) {
    cluster::NodePool pool = testing::PoolOf(name, "", 0, 64, max, price);
    pool.labels["zone"] = zone;
    pools_.push_back(Now(pool));
  }
  void Node(const std::string& name, const std::string& zone) {
    cluster_.PlainNode(name).meta.labels["zone"] = zone;
  }
  // A gang member that must be near pods of a role; "": anywhere.
  void Member(const std::string& role, const std::string& near, const std::string& cpu) {
    Gang& gang = options_.gangs[0];
    gang.members.push_back(gang.least++);
    cluster::Pod& pod = cluster_.Pod("p" + std::to_string(gang.least), {}, 0, cpu);
    pod.meta.labels["role"] = role;
    if (near.empty()) return;
    cluster::PodAffinityTerm term;
    term.selector.emplace().match_labels["role"] = near;
    term.topology_key = "zone";
    pod.pod_affinity.required = {term};
  }
  void WorkersOfALeader() {
    for (int i = 0; i < 2; ++i) Member("w", "leader", "48");
    Member("leader", "", "48");
  }
  void Make() {
    const testing::SharedPods pending = cluster_.Pending();
    const scheduling::Framework framework = scheduling::Framework::Default();
    plan_ = PlanGrowth(cluster_.Snapshot(), pending, pools_, scheduling::FrameworkChoice(framework),
                       options_);
  }
  std::vector<int> Counts() const {
    std::vector<int> counts;
    for (const PoolGrowth& pool : plan_.pools) counts.push_back(pool.count);
    return counts;
  }

  testing::ClusterBuilder cluster_;
  std::vector<NodePoolState> pools_;
  PlanOptions options_ = [] {
    PlanOptions options;
    options.gangs.push_back({"gang", 0, 0, {}, ""});
    return options;
  }();
  GrowthPlan plan_;
};

TEST_F(GrowthGangsTest, ChoosesZoneWithCapacityForWholeGang) {
  Pool("cheap", "a", 1, "1");
  Pool("dear", "b", 3, "5");
  for (int i = 0; i < 3; ++i) Member("w", "w", "48");
  Make();
  EXPECT_EQ(plan_.served, 3);
  EXPECT_THAT(Counts(), ElementsAre(0, 3));
}

TEST_F(GrowthGangsTest, AddsNodesForWorkersNearLeader) {
  Pool("a", "a", 1, "1");
  Pool("b", "b", 3, "5");
  WorkersOfALeader();
  Make();
  EXPECT_EQ(plan_.served, 3);
  EXPECT_THAT(Counts(), ElementsAre(0, 3));
}

TEST_F(GrowthGangsTest, AddsNodesNearOwnLeaderDespiteRunningLeader) {
  Node("n", "a");
  cluster_.Running("other", "n", {}, "60").meta.labels["role"] = "leader";
  Pool("b", "b", 3, "5");
  WorkersOfALeader();
  Make();
  EXPECT_EQ(plan_.served, 3);
  EXPECT_THAT(Counts(), ElementsAre(3));
}

// The plan for existing nodes has not found the places and probably will not find them next time.
TEST_F(GrowthGangsTest, AddsNodeIfPlanDidNotUseExistingCapacity) {
  Node("n", "a");
  Pool("b", "b", 3, "5");
  for (int i = 0; i < 2; ++i) Member("w", "w", "20");
  Make();
  EXPECT_EQ(plan_.served, 2);
  EXPECT_THAT(Counts(), ElementsAre(1));
}

TEST_F(GrowthGangsTest, UsesExistingNodesIfNoPoolHelps) {
  Node("n", "a");
  Pool("b", "b", 0, "5");
  for (int i = 0; i < 2; ++i) Member("w", "w", "20");
  Make();
  EXPECT_EQ(plan_.served, 2);
  EXPECT_THAT(Counts(), ElementsAre(0));
}

}  // namespace
}  // namespace nos::planning
