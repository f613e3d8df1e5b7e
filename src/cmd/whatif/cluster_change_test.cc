#include "cmd/whatif/cluster_change.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nos::cmd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

class ClusterChangeTest : public ::testing::Test {
 protected:
  ClusterChangeTest() {
    auto node = std::make_shared<cluster::Node>();
    node->meta.name = "gpu-1";
    node->meta.labels = {{"nos.nebuly.com/gpu-partitioning", "mig"},
                         {"kubernetes.io/hostname", "gpu-1"},
                         {"nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB"},
                         {"nvidia.com/gpu.count", "1"}};
    node->meta.annotations = {{"nos.nebuly.com/status-layout-0", "7g.40gb@0:used"},
                              {"nos.nebuly.com/spec-layout-0", "7g.40gb@0"}};
    node->allocatable = {{"cpu", Quantity::FromValue(64)},
                         {"nvidia.com/mig-7g.40gb", Quantity::FromValue(1)}};
    objects_.nodes.push_back(std::move(node));
    AddQuota("research", {"research"}, 100);
    AddQuota("prod", {}, 50);
  }
  void AddQuota(const std::string& ns, std::vector<std::string> namespaces, int64_t gb) {
    auto quota = std::make_shared<cluster::ElasticQuota>();
    quota->meta.ns = ns;
    quota->meta.name = "quota";
    quota->namespaces = std::move(namespaces);
    quota->min = quota->max = {{"nos.nebuly.com/gpu-memory", Quantity::FromValue(gb)}};
    if (!objects_.context) objects_.context.emplace();
    objects_.context->quotas.Set(quota->Key(), quota);
  }
  void Pod(const std::string& name, const std::string& node, const std::string& owner = "") {
    auto pod = std::make_shared<cluster::Pod>();
    pod->meta.ns = "ml";
    pod->meta.name = name;
    pod->node_name = node;
    pod->phase = node.empty() ? "Pending" : "Running";
    if (!owner.empty()) pod->meta.owners.push_back({"apps/v1", owner, "o", "o", true});
    objects_.pods.push_back(std::move(pod));
  }
  Result<ClusterObjects> Change(ClusterChange change) {
    return WithChange(objects_, change, gpu::Catalogue::Builtin());
  }

  ClusterObjects objects_;
};

TEST_F(ClusterChangeTest, AnotherNodeIsEmpty) {
  const auto changed = Change({.add_nodes = {"gpu-1", "gpu-1"}});
  ASSERT_TRUE(changed.ok()) << changed.status().ToString();
  ASSERT_EQ(changed->nodes.size(), 3U);
  const cluster::Node& node = *changed->nodes[1];
  EXPECT_EQ(node.meta.name, "gpu-1/new-0");
  EXPECT_EQ(changed->nodes[2]->meta.name, "gpu-1/new-1");
  EXPECT_THAT(node.meta.annotations, ElementsAre(Pair("nos.nebuly.com/status-layout-0", "")));
  EXPECT_FALSE(node.allocatable.contains("nvidia.com/mig-7g.40gb"));
  EXPECT_EQ(node.meta.labels.at("kubernetes.io/hostname"), "gpu-1/new-0");
  EXPECT_EQ(Change({.add_nodes = {"absent"}}).status().code(), Code::kNotFound);
}

TEST_F(ClusterChangeTest, PodsOfRemovedNodeWaitIfTheirOwnersStartThemAgain) {
  Pod("job", "gpu-1", "Job");
  Pod("daemon", "gpu-1", "DaemonSet");
  Pod("bare", "gpu-1");
  Pod("elsewhere", "gpu-2");
  const auto changed = Change({.remove_nodes = {"gpu-1"}});
  ASSERT_TRUE(changed.ok());
  EXPECT_THAT(changed->nodes, IsEmpty());
  ASSERT_EQ(changed->pods.size(), 2U);
  EXPECT_EQ(changed->pods[0]->meta.name, "job");
  EXPECT_EQ(changed->pods[0]->phase, "Pending");
  EXPECT_EQ(changed->pods[0]->node_name, "");
  EXPECT_EQ(changed->pods[1]->node_name, "gpu-2");
  EXPECT_EQ(Change({.remove_nodes = {"absent"}}).status().code(), Code::kNotFound);
  const ChangeReport report = CompareOutcomes(objects_, *changed, {}, {});
  EXPECT_THAT(report.stuck, ElementsAre("ml/job"));
  EXPECT_THAT(report.gone, ElementsAre("ml/daemon", "ml/bare"));
}

TEST_F(ClusterChangeTest, QuotasAreNamedByNamespaceOrKey) {
  const auto min_of = [](const ClusterObjects& objects, const std::string& key) {
    return objects.context->quotas.Find(key)->min.at("nos.nebuly.com/gpu-memory").Value();
  };
  const auto changed = Change({.quotas = {"research=200", "prod/quota=10"}});
  ASSERT_TRUE(changed.ok()) << changed.status().ToString();
  EXPECT_EQ(min_of(*changed, "research/quota"), 200);
  EXPECT_EQ(changed->context->quotas.Find("research/quota")->max.begin()->second.Value(), 200);
  EXPECT_EQ(min_of(*changed, "prod/quota"), 10);
  EXPECT_EQ(changed->context->quotas.Find("prod/quota")->max.begin()->second.Value(), 50);
  EXPECT_EQ(min_of(objects_, "research/quota"), 100) << "the cluster itself stays";
  for (const auto& [bad, code] :
       std::vector<std::pair<std::string, Code>>{{"research", Code::kInvalid},
                                                 {"research=x", Code::kInvalid},
                                                 {"research=-1", Code::kInvalid},
                                                 {"quota=1", Code::kInvalid},
                                                 {"absent=1", Code::kNotFound}}) {
    EXPECT_EQ(Change({.quotas = {bad}}).status().code(), code) << bad;
  }
}

TEST_F(ClusterChangeTest, ComparesPlans) {
  Pod("starts", "");
  Pod("evicts", "");
  Pod("waits", "");
  Pod("victim", "gpu-1");
  const auto outcome = [&](size_t pod, const std::string& node) {
    planning::PodOutcome placed;
    placed.pod = objects_.pods[pod];
    placed.placed = !node.empty();
    placed.node = node;
    return placed;
  };
  PlannedOutcome before, after;
  before.plan.pods = {outcome(0, ""), outcome(1, ""), outcome(2, "gpu-1")};
  after.plan.pods = {outcome(0, "gpu-1/new-0"), outcome(1, ""), outcome(2, "")};
  after.victims["ml/evicts"] = {"ml/victim"};
  const ChangeReport report = CompareOutcomes(objects_, objects_, before, after);
  EXPECT_THAT(report.start, ElementsAre(Pair("ml/starts", "gpu-1/new-0"), Pair("ml/evicts", "")));
  EXPECT_THAT(report.wait, ElementsAre("ml/waits"));
  EXPECT_THAT(report.evicted, ElementsAre(Pair("ml/victim", "ml/evicts")));
  EXPECT_THAT(ToText(report), HasSubstr("running pods that would be evicted (1)\n"
                                        "  ml/victim for ml/evicts\n"));
  EXPECT_EQ(ToJson(report).at("would_start").as_array().size(), 2U);
  EXPECT_EQ(ToText(CompareOutcomes(objects_, objects_, before, before)),
            "no pod would start or have to go\n");
}

}  // namespace
}  // namespace nos::cmd
