#include "cmd/query/get_report.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "cmd/terminal.h"
#include "controllers/verdicts.h"
#include "gpu/catalogue.h"

namespace nos::cmd {
namespace {

constexpr Time kNow{std::chrono::hours(1'000)};

class GetReportTest : public testing::Test {
 protected:
  cluster::Node& AddNode(const std::string& name, const std::string& layout) {
    auto node = std::make_shared<cluster::Node>();
    node->meta.name = name;
    node->meta.labels = {{"nos.nebuly.com/gpu-partitioning", "mig"},
                         {"nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB"},
                         {"nvidia.com/gpu.count", "1"}};
    if (!layout.empty()) node->meta.annotations["nos.nebuly.com/status-layout-0"] = layout;
    nodes_.push_back(node);
    return *node;
  }
  cluster::Pod& AddPod(const std::string& name) {
    auto pod = std::make_shared<cluster::Pod>();
    pod->meta.ns = "default";
    pod->meta.name = name;
    pod->meta.created = kNow - std::chrono::seconds(5);
    pod->phase = "Pending";
    pod->containers.emplace_back();
    pod->containers[0].requests["nvidia.com/mig-1g.5gb"] = Quantity::FromValue(1000);
    pods_.push_back(pod);
    return *pod;
  }
  Printout Report(Printout (*report)(const LiveCluster&, Time)) {
    return report(MakeLiveCluster(nodes_, pods_, gpu::Catalogue::Builtin()), kNow);
  }

  std::vector<std::shared_ptr<const cluster::Node>> nodes_;
  std::vector<std::shared_ptr<const cluster::Pod>> pods_;
};

TEST_F(GetReportTest, FullGpuFitsHundredColumns) {
  AddNode("gke-cluster-a100-pool-7f3d21c0-x4lz",
          "1g.5gb@0:used,1g.5gb@1:used,1g.5gb@2:used,1g.5gb@3:used,1g.5gb@4:used,1g.5gb@5:free,"
          "1g.5gb@6:used");
  AddNode("mixed", "3g.20gb@4:used,1g.5gb@1:free,1g.5gb@0:used,2g.10gb@2:free");
  EXPECT_EQ(
      Report(ReportGpus).Table().ToString(100),
      R"(NODE                                 GPU  MODEL      MODE  USED  LAYOUT (@ first slots: * used)
gke-cluster-a100-pool-7f3d21c0-x4lz  0    A100-40GB  MIG   6/8   1g.5gb@*0,*1,*2,*3,*4,5,*6
mixed                                0    A100-40GB  MIG   5/8   1g.5gb@*0,1 2g.10gb@2 3g.20gb@*4
)");
}

TEST_F(GetReportTest, ShowsProductAndSharingModeOfEachGpu) {
  cluster::Node& hybrid = AddNode("hybrid", "3g.40gb@0:used");
  hybrid.meta.labels = {{"nos.nebuly.com/gpu-partitioning", "hybrid"},
                        {"nvidia.com/gpu.count", "5"}};
  const char* unshared = "H100-80GB+GPU+TIME-4";
  const char* layouts[] = {"3g.40gb@0:used", "10gb@0:used", "shared@0:used,shared@4:free",
                           "gpu@0:used", ""};
  for (int i = 0; i < 5; ++i) {
    const std::string index = std::to_string(i);
    auto& notes = hybrid.meta.annotations;
    notes["nos.nebuly.com/status-layout-" + index] = layouts[i];
    notes["nos.nebuly.com/status-model-" + index] = i == 1 ? "MPS-79GB" : unshared;
    notes["nos.nebuly.com/status-other-model-" + index] = i == 1 ? unshared : "MPS-79GB";
  }
  cluster::Node& mps = AddNode("mps", "20gb@0:free");
  mps.meta.labels["nos.nebuly.com/gpu-partitioning"] = "mps";
  mps.meta.annotations["nos.nebuly.com/status-model-0"] = "MPS-39GB";
  const Printout out = Report(ReportGpus);
  EXPECT_TRUE(out.warnings.empty()) << out.warnings[0];
  EXPECT_EQ(out.Table().ToString(100),
            "NODE    GPU  MODEL      MODE         USED   LAYOUT (@ first slots: * used)\n"
            "hybrid  0    H100-80GB  MIG          4/8    3g.40gb@*0\n"
            "hybrid  1    H100-80GB  MPS          10/79  10gb@*0\n"
            "hybrid  2    H100-80GB  time slices  2/8    shared@*0,4\n"
            "hybrid  3    H100-80GB  whole        8/8    gpu@*0\n"
            "hybrid  4    H100-80GB  free         0/8    -\n"
            "mps     0    A100-40GB  MPS          0/39   20gb@0\n");
  ASSERT_EQ(out.ToJson().size(), 6U);
  EXPECT_EQ(out.ToJson()[1].at("model"), "MPS-79GB") << "JSON contains the node's own values";
  for (const char* key : {"sharingMode", "way"}) {
    EXPECT_EQ(out.ToJson()[1].at(key), "MPS");
    EXPECT_EQ(out.ToJson()[4].at(key), "");
  }
  for (const char* key : {"sharingModes", "ways"}) {
    EXPECT_EQ(out.ToJson()[4].at(key), Json(JsonArray{"MIG", "MPS", "time slices", "whole"}));
    EXPECT_EQ(out.ToJson()[5].at(key), Json(JsonArray{"MPS"}));
  }
}

TEST_F(GetReportTest, ShowsOptedOutNodeWhileItHasInstances) {
  AddNode("in", "7g.40gb@0:used");
  AddNode("left", "1g.5gb@0:used").meta.labels.erase("nos.nebuly.com/gpu-partitioning");
  AddNode("never", "").meta.labels.erase("nos.nebuly.com/gpu-partitioning");
  AddNode("not-mig", "").meta.labels = {};
  const Printout out = Report(ReportGpus);
  EXPECT_EQ(out.Table().ToString(),
            "NODE  GPU  MODEL      MODE  USED  LAYOUT (@ first slots: * used)\n"
            "in    0    A100-40GB  MIG   8/8   7g.40gb@*0\n"
            "left  0    A100-40GB  MIG   1/8   1g.5gb@*0\n");
  ASSERT_EQ(out.ToJson().size(), 2U);
  EXPECT_EQ(out.ToJson()[1].at("managed"), false);
  EXPECT_TRUE(out.warnings.empty()) << "nodes that have not opted in cause no warning";
}

TEST_F(GetReportTest, PendingPodShowsPartitionerMessage) {
  cluster::Pod& pod = AddPod("greedy");
  pod.conditions = {{"PodScheduled", "False", "Unschedulable", "0/4 nodes are available"}};
  const auto why = [&] { return Report(ReportPods).ToJson()[0].at("why"); };
  EXPECT_EQ(why(), "0/4 nodes are available");
  pod.conditions.push_back({std::string(controllers::kPartitionedCondition), "False", "TooBig",
                            "no GPU has 1000 x 1g.5gb. Ask for 28 at most"});
  const Printout out = Report(ReportPods);
  EXPECT_EQ(out.Table().ToString(),
            "NAMESPACE  NAME    STATUS   NODE  ASKS             AGE  WHY\n"
            "default    greedy  Pending  -     1000xmig-1g.5gb  5s   no GPU has 1000 x 1g.5gb. Ask "
            "for 28 at most\n");
  EXPECT_EQ(out.ToJson()[0].at("reason"), "TooBig");
  pod.conditions.back().status = "True";
  EXPECT_EQ(why(), "0/4 nodes are available");
  pod.node_name = "n";
  EXPECT_EQ(Report(ReportPods).Table().ToString(),
            "NAMESPACE  NAME    STATUS   NODE  ASKS             AGE  WHY\n"
            "default    greedy  Pending  n     1000xmig-1g.5gb  5s   -\n");
}

// The API server sets the condition, and leaves it when the gates are gone.
TEST_F(GetReportTest, PodWithSchedulingGatesNamesThem) {
  cluster::Pod& pod = AddPod("gated");
  pod.conditions = {{"PodScheduled", "False", "SchedulingGated", "Scheduling is blocked"}};
  pod.scheduling_gates = {"example.com/approval", "x/y"};
  const Json gated = Report(ReportPods).ToJson()[0];
  EXPECT_EQ(gated.at("reason"), "SchedulingGated");
  EXPECT_EQ(gated.at("why"),
            "waiting for scheduling gates: [example.com/approval x/y]. Remedy: wait until the "
            "component that set its scheduling gates removes them: example.com/approval, x/y.");
  pod.scheduling_gates.clear();
  EXPECT_EQ(Report(ReportPods).ToJson()[0].at("why"), "") << "no scheduler has looked at it yet";
}

TEST_F(GetReportTest, AgesFollowClockOfApiServer) {
  AddPod("p");
  LiveCluster live = MakeLiveCluster(nodes_, pods_, gpu::Catalogue::Builtin());
  EXPECT_GT(TimeIn(live), kNow + std::chrono::hours(24)) << "this machine's clock";
  live.server_time = kNow + std::chrono::minutes(7);
  EXPECT_EQ(TimeIn(live), kNow + std::chrono::minutes(7));
  live.server_time = kNow - std::chrono::minutes(1);
  EXPECT_EQ(TimeIn(live), pods_[0]->meta.created) << "it is in whole seconds, and has gone on";
}

TEST_F(GetReportTest, ComparesPlanWithCurrentLayout) {
  cluster::Node& node = AddNode("n", "1g.5gb@0:used");
  node.meta.annotations["nos.nebuly.com/spec-layout-0"] = "1g.5gb@0,1g.5gb@1,3g.20gb@4";
  node.meta.annotations["nos.nebuly.com/spec-partitioning-plan"] = "7";
  EXPECT_EQ(Report(ReportPlans).Table().ToString(),
            "NODE  GPU  PLAN  REPORTED  STATE    MODE  WANTED LAYOUT\n"
            "n     0    7               waiting  MIG   1g.5gb@0,1 3g.20gb@4\n");
  node.meta.annotations["nos.nebuly.com/status-partitioning-plan"] = "7";
  EXPECT_EQ(Report(ReportPlans).ToJson()[0].at("state"), "partly");
}

TEST(TerminalTest, TableIsUncutWithoutTerminal) { EXPECT_EQ(TableWidth(), kUncut); }

}  // namespace
}  // namespace nos::cmd
