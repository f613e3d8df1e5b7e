// Gangs whose result depends on the order of members are tried like in the scheduler.
#include "scheduling/explain_gang.h"

#include <gtest/gtest.h>

#include "scheduling/framework.h"
#include "scheduling/remedies.h"
#include "scheduling/testing/build.h"

namespace nos::scheduling {
namespace {

using cluster::Node;
using cluster::Pod;
using testing::NodeOf;
using testing::PodOf;

class ExplainGangTest : public ::testing::Test {
 protected:
  void Add(const Pod& pod) { together_.waiting.push_back(std::make_shared<const Pod>(pod)); }
  // The member's node, or why the gang has none.
  std::string PlaceOf(size_t member, const std::vector<Node>& nodes) {
    const auto snapshot = testing::Snap(nodes);
    const Explanation why = ExplainTogether(
        {partitioning_, partitioning_, snapshot, *together_.waiting[member]}, together_);
    return why.place ? why.place->node : why.gang;
  }

  const Framework partitioning_ = Framework::Default(PartitionedBy::kScheduler);
  Together together_{"pod group x/train", 2, 0, {}};
};

TEST_F(ExplainGangTest, FindsOnlyDomainThatFitsWholeGang) {
  std::vector<Node> nodes;
  for (int i = 10; i < 30; ++i) {
    const std::string small = "n" + std::to_string(i), full = "f" + std::to_string(i);
    nodes.push_back(NodeOf(small, {{"cpu", "3"}}, {{"host", small}, {"liked", "yes"}}));
    nodes.push_back(NodeOf(full, {{"cpu", "9"}}, {{"host", full}}));
    nodes.back().taints.push_back({"key", "value", "NoSchedule"});
  }
  nodes.push_back(NodeOf("z", {{"cpu", "6"}}, {{"host", "z"}}));
  Pod pod = PodOf("p0", {{"cpu", "3"}});
  pod.meta.labels["app"] = "worker";
  cluster::PodAffinityTerm term;
  term.selector.emplace().match_labels["app"] = "worker";
  term.topology_key = "host";
  pod.pod_affinity.required = {term};
  cluster::PreferredNodeTerm likes;
  likes.weight = 100;
  likes.term.match_expressions.push_back({"liked", "In", {"yes"}});
  pod.node_affinity.emplace().preferred.push_back(likes);
  Add(pod);
  pod.meta.name = "p1";
  Add(pod);
  EXPECT_EQ(PlaceOf(0, nodes), "z");
  EXPECT_EQ(PlaceOf(1, nodes), "z");
}

// The second member exceeds the skew in zone a until the third is in zone b.
TEST_F(ExplainGangTest, RetriesMembersRefusedByTopologySpread) {
  const std::vector<Node> nodes = {
      NodeOf("a", {{"cpu", "1"}, {"example.com/gpu", "2"}}, {{"zone", "a"}}),
      NodeOf("b", {{"cpu", "4"}}, {{"zone", "b"}})};
  cluster::TopologySpreadConstraint spread;
  spread.topology_key = "zone";
  spread.when_unsatisfiable = "DoNotSchedule";
  spread.selector.emplace().match_labels["app"] = "worker";
  for (const std::string name : {"p0", "p1", "p2", "p3"}) {
    Pod pod = name < "p2" ? PodOf(name, {{"example.com/gpu", "1"}}) : PodOf(name, {{"cpu", "2"}});
    pod.meta.labels["app"] = "worker";
    pod.spread = {spread};
    Add(pod);
  }
  together_.least = 4;
  EXPECT_EQ(PlaceOf(1, nodes), "a");
  EXPECT_EQ(PlaceOf(3, nodes), "b");
}

// The members themselves hold the GPU, so nothing can be freed for the third.
TEST_F(ExplainGangTest, MembersDoNotMakeRoomForEachOther) {
  Node node = NodeOf("n", {{"cpu", "8"}},
                     {{"nos.nebuly.com/gpu-partitioning", "mig"},
                      {"nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB"},
                      {"nvidia.com/gpu.count", "1"}});
  node.meta.annotations = {{"nos.nebuly.com/status-layout-0", ""}};
  for (const std::string name : {"p0", "p1", "p2"}) {
    Add(PodOf(name, {{"nvidia.com/mig-3g.20gb", "1"}}));
  }
  together_.least = 3;
  const auto snapshot = testing::Snap({node});
  const Explanation why =
      ExplainTogether({partitioning_, partitioning_, snapshot, *together_.waiting[0]}, together_);
  EXPECT_EQ(why.remedy_code, remedies::kAddNode);
}

TEST_F(ExplainGangTest, GatedMemberCompletesGang) {
  Add(PodOf("p0", {{"cpu", "1"}}));
  const auto snapshot = testing::Snap({NodeOf("n", {{"cpu", "4"}})});
  const auto why = [&] {
    return ExplainTogether({partitioning_, partitioning_, snapshot, *together_.waiting[0]},
                           together_);
  };
  EXPECT_EQ(why().remedy_code, remedies::kCompleteGang);
  Pod gated = PodOf("p1", {{"cpu", "1"}});
  gated.scheduling_gates = {"example.com/wait"};
  together_.gated.push_back(std::make_shared<const Pod>(gated));
  EXPECT_EQ(why().remedy_code, remedies::kLiftGate);
  EXPECT_EQ(why().remedy, "for " + gated.Key() + ": " + LiftGates(gated).text);
}

// A quota refuses a gang as a whole, and each member beyond what the gang needs by itself.
class ExplainGangQuotaTest : public ExplainGangTest {
 protected:
  ExplainGangQuotaTest() {
    for (const std::string name : {"p0", "p1", "p2"}) Add(PodOf(name, {{"cpu", "2"}}));
  }
  Explanation WhyUnder(int64_t max, size_t member) {
    auto quota = std::make_shared<cluster::ElasticQuota>();
    quota->meta.ns = "x";
    quota->meta.name = "q";
    quota->namespaces = {"x"};
    quota->max["cpu"] = Quantity::FromValue(max);
    const quota::Balance balance({quota});
    const auto snapshot = testing::Snap({NodeOf("n", {{"cpu", "16"}})});
    ExplainInput input{partitioning_, partitioning_, snapshot, *together_.waiting[member]};
    input.balance = &balance;
    return ExplainTogether(input, together_);
  }
};

TEST_F(ExplainGangQuotaTest, QuotaAdmitsTooFewMembers) {
  together_.least = 3;
  for (const size_t member : {0, 1, 2}) {
    const Explanation why = WhyUnder(4, member);
    EXPECT_FALSE(why.place);
    EXPECT_EQ(why.remedy_code, remedies::kRaiseQuota);
    EXPECT_EQ(why.remedy, "raise max of cpu in elastic quota x/q to 6");
    const Json json = ToJson(why);
    EXPECT_EQ(json.at("reasons").at(0).at("code").as_string(), codes::kGangNotWhole);
    EXPECT_EQ(json.at("reasons").at(1).at("code").as_string(), codes::kQuota);
  }
  EXPECT_TRUE(WhyUnder(6, 2).place);
}

TEST_F(ExplainGangQuotaTest, QuotaRefusesOptionalMember) {
  together_.least = 2;
  EXPECT_TRUE(WhyUnder(4, 1).place);
  const Explanation why = WhyUnder(4, 2);
  EXPECT_FALSE(why.place);
  EXPECT_EQ(why.remedy_code, remedies::kRaiseQuota);
  EXPECT_EQ(why.remedy,
            "raise max of cpu in elastic quota x/q to 6, or wait until pods of its "
            "namespaces that have 2 of it end");
}

}  // namespace
}  // namespace nos::scheduling
