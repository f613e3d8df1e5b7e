#include "cmd/audit/cluster_audit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/table.h"
#include "base/text.h"
#include "scheduling/configuration.h"

namespace nos::cmd {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class AuditTest : public testing::Test {
 protected:
  cluster::Node& AddNode(const std::string& name, int gpus,
                         const std::string& product = "NVIDIA-A100-SXM4-40GB") {
    auto node = std::make_shared<cluster::Node>();
    node->meta.name = name;
    if (!product.empty()) {
      node->meta.labels = {{"nvidia.com/gpu.product", product},
                           {"nvidia.com/gpu.count", std::to_string(gpus)}};
    }
    node->capacity = node->allocatable = {{"cpu", Quantity::FromValue(64)},
                                          {"pods", Quantity::FromValue(110)},
                                          {"nvidia.com/gpu", Quantity::FromValue(gpus)}};
    objects_.nodes.push_back(node);
    return *node;
  }
  cluster::Pod& AddPod(const std::string& name, const std::string& node,
                       const std::string& resource) {
    auto pod = std::make_shared<cluster::Pod>();
    pod->meta.ns = "default";
    pod->meta.name = name;
    pod->meta.uid = name;
    pod->node_name = node;
    pod->scheduler_name = "default-scheduler";
    pod->phase = node.empty() ? "Pending" : "Running";
    pod->containers.emplace_back().requests[resource] = Quantity::FromValue(1);
    objects_.pods.push_back(pod);
    return *pod;
  }
  Audit Run(const std::function<bool()>& out_of_time = [] { return false; }) {
    const scheduling::Configuration usual = scheduling::DefaultConfiguration({.simulates = true});
    const scheduling::FrameworkChoice choice(*usual.profiles.front().framework, {});
    return MakeAudit(objects_, gpu::Catalogue::Builtin(), choice, out_of_time);
  }

  ClusterObjects objects_;
};

TEST_F(AuditTest, PacksPodsOfAnUnlabelledClusterOnFewerNodes) {
  for (const char* name : {"a", "b", "c"}) AddNode(name, 1);
  AddPod("one", "a", "nvidia.com/mig-1g.5gb");
  AddPod("two", "b", "nvidia.com/mig-2g.10gb");
  AddPod("three", "c", "nvidia.com/mig-3g.20gb");
  const Audit audit = Run();
  EXPECT_EQ(audit.gpus, 3U);
  EXPECT_EQ(audit.running, 3U);
  EXPECT_EQ(audit.gpus_needed, 1U);
  EXPECT_EQ(audit.NodesThatMayGo(), 2U);
  EXPECT_EQ(audit.misfits, 0U);
  EXPECT_TRUE(audit.complete);
  const std::string text = ToText(audit, 100);
  EXPECT_THAT(text, HasSubstr("3 running pods on 3 GPUs fit on 1\n2 of 3 nodes could go: "));
  EXPECT_THAT(text, HasSubstr("  kubectl label node a nos.nebuly.com/gpu-partitioning=hybrid\n"));
  for (const auto line : Split(text, '\n')) EXPECT_LE(DisplayWidth(line), 100U) << line;
}

TEST_F(AuditTest, SaysWhichWaitingPodsWouldStart) {
  AddNode("a", 1);
  AddPod("small", "a", "nvidia.com/mig-1g.5gb");
  AddPod("waits", "", "nvidia.com/mig-3g.20gb");
  AddPod("huge", "", "nvidia.com/mig-7g.40gb");
  const Audit audit = Run();
  EXPECT_EQ(audit.pending, 2U);
  EXPECT_THAT(audit.starting_pods, ElementsAre("default/waits"));
  EXPECT_THAT(ToText(audit, 100), HasSubstr("1 of 2 waiting pods would start\n  default/waits\n"));
}

TEST_F(AuditTest, RunningPodsKeepTheirPlacesBeforeWaitingOnes) {
  AddNode("a", 1);
  AddPod("whole", "a", "nvidia.com/gpu");
  AddPod("urgent", "", "nvidia.com/gpu").priority = 1000;
  const Audit audit = Run();
  EXPECT_EQ(audit.gpus_needed, 1U);
  EXPECT_EQ(audit.starting, 0U);
}

TEST_F(AuditTest, NodeSelectorsKeepNodes) {
  AddNode("a", 1);
  AddNode("b", 1).meta.labels["zone"] = "mars";
  AddPod("one", "a", "nvidia.com/mig-1g.5gb");
  AddPod("two", "b", "nvidia.com/mig-1g.5gb").node_selector = {{"zone", "mars"}};
  const Audit audit = Run();
  ASSERT_EQ(audit.nodes.size(), 2U);
  EXPECT_TRUE(audit.nodes[0].may_go);
  EXPECT_FALSE(audit.nodes[1].may_go);
}

TEST_F(AuditTest, CountsGpusOfUnknownModelsAsWholeOnes) {
  AddNode("a", 2, "");
  AddNode("b", 2, "");
  AddPod("one", "a", "nvidia.com/gpu");
  AddPod("two", "b", "nvidia.com/gpu");
  const Audit audit = Run();
  EXPECT_EQ(audit.gpus, 4U);
  EXPECT_EQ(audit.gpus_needed, 2U);
  EXPECT_EQ(audit.NodesThatMayGo(), 1U);
  EXPECT_THAT(audit.assumptions, Contains(HasSubstr("4 GPUs have no label")));
  EXPECT_THAT(ToText(audit, 100), Not(HasSubstr("kubectl label")));
}

TEST_F(AuditTest, LeavesOutWhatAnnotationsOfAnAgentSay) {
  cluster::Node& node = AddNode("a", 1);
  node.meta.labels["nos.nebuly.com/gpu-partitioning"] = "mig";
  node.meta.annotations["nos.nebuly.com/status-layout-0"] = "7g.40gb@0:used";
  AddPod("one", "a", "nvidia.com/mig-1g.5gb");
  const Audit audit = Run();
  EXPECT_EQ(audit.misfits, 0U);
  ASSERT_EQ(audit.nodes[0].gpus.size(), 1U);
  EXPECT_EQ(audit.nodes[0].gpus[0].mode, "MIG");
  ASSERT_EQ(audit.nodes[0].gpus[0].slices.size(), 1U);
  EXPECT_EQ(audit.nodes[0].gpus[0].slices[0].pod, "default/one");
}

TEST_F(AuditTest, EndsWhenTimeIsUp) {
  for (int i = 0; i < 8; ++i) AddNode("n" + std::to_string(i), 1);
  const Audit audit = Run([] { return true; });
  EXPECT_FALSE(audit.complete);
  EXPECT_THAT(audit.assumptions, Contains(HasSubstr("time limit")));
}

TEST_F(AuditTest, HtmlShowsNamesAsText) {
  AddNode("<b>", 1);
  AddPod("\"><script>", "<b>", "nvidia.com/mig-1g.5gb");
  const std::string html = ToHtml(Run());
  EXPECT_THAT(html, Not(HasSubstr("<script>")));
  EXPECT_THAT(html, HasSubstr("&lt;b&gt;"));
  EXPECT_THAT(html, Not(HasSubstr("http")));
}

TEST_F(AuditTest, JsonHasTheFigures) {
  AddNode("a", 1);
  AddPod("one", "a", "nvidia.com/mig-1g.5gb");
  const Json json = ToJson(Run());
  EXPECT_EQ(*Find(json, "gpusNeeded"), 1);
  EXPECT_EQ(*Find(json, "runningPods"), 1);
  EXPECT_EQ(Find(json, "nodes")->get_array().size(), 1U);
}

}  // namespace
}  // namespace nos::cmd
