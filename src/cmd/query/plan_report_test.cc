#include "cmd/query/plan_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "gpu/shares.h"

namespace nos::cmd {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(PlanReportTest, EscapesControlCharactersInNamesAndReasons) {
  auto pod = std::make_shared<cluster::Pod>();
  pod->meta.ns = "a\nb";
  pod->meta.name = "\x1b[2Jp";
  planning::Plan plan;
  plan.pods.emplace_back();
  plan.pods[0].pod = pod;
  plan.pods[0].reasons.push_back({"NoRoom", "\x1b[31mred", {}});
  plan.pods[0].remedy = "free \x1b]0;title\a node";
  EXPECT_EQ(PlanToText(plan, {}, 100),
            R"(0 of 1 pending pods can run (no plan can place more than 0)
changes: 0 instances created, 0 destroyed, on 0 GPUs of 0 nodes
planned in 0.0 ms

WAITING POD  WHY
a?b/?[2Jp    ?[31mred

what would help:
  a?b/?[2Jp: free ?]0;title? node
)");
}

TEST(PlanReportTest, ShowsSharingModeOfEachGpu) {
  const gpu::Model* unshared = gpu::Catalogue::Builtin().FindSharingModes("H100-80GB+GPU+TIME-4");
  const gpu::Model* shares = &gpu::SharesOf(79);
  const auto at = [](const gpu::Model* model, std::string_view profile) {
    planning::PlannedInstance instance;
    instance.placement = {model->FindProfile(profile).value(), 0};
    instance.state = planning::PlannedInstance::State::kNew;
    return instance;
  };
  planning::Plan plan;
  plan.nodes.push_back({"n", {}});
  plan.nodes[0].gpus.push_back({0, unshared, {at(unshared, "shared")}, 1, 0, shares});
  plan.nodes[0].gpus.push_back({1, shares, {at(shares, "10gb")}, 1, 0, unshared});
  EXPECT_EQ(PlanToText(plan, {}, 100),
            "0 of 0 pending pods can run (no plan can place more than 0)\n"
            "changes: 0 instances created, 0 destroyed, on 0 GPUs of 0 nodes\n"
            "planned in 0.0 ms\n"
            "\n"
            "NODE  GPU  MODEL      MODE         LAYOUT (@ first slots: * used, + new)\n"
            "n     0    H100-80GB  time slices  shared@+0\n"
            "n     1    H100-80GB  MPS          10gb@+0\n");
  const Json json = PlanToJson(plan, planning::Objective::kPods, {});
  const Json& gpu = json.at("nodes").at(0).at("gpus").at(1);
  EXPECT_EQ(gpu.at("model"), "MPS-79GB");
  for (const char* key : {"sharingMode", "way"}) EXPECT_EQ(gpu.at(key), "MPS");
  for (const char* key : {"sharingModes", "ways"}) EXPECT_EQ(gpu.at(key).as_array().size(), 4U);
}

TEST(PlanReportTest, JsonAndTextContainAllFigures) {
  planning::Plan plan;
  plan.pods.resize(9);
  for (auto& outcome : plan.pods) outcome.pod = std::make_shared<cluster::Pod>();
  plan.placed = 2;
  plan.upper_bound = 3;
  plan.created = 4;
  plan.destroyed = 5;
  plan.gpus_touched = 6;
  plan.nodes_touched = 7;
  plan.complete = false;
  const Json json = PlanToJson(plan, planning::Objective::kMemory, std::chrono::milliseconds(8));
  EXPECT_EQ(json.at("objective"), "memory");
  EXPECT_EQ(json.at("pending"), 9);
  EXPECT_EQ(json.at("placed"), 2);
  EXPECT_EQ(json.at("upperBound"), 3);
  EXPECT_EQ(json.at("complete"), false);
  const JsonObject changes{
      {"created", 4}, {"destroyed", 5}, {"gpusTouched", 6}, {"nodesTouched", 7}};
  EXPECT_EQ(json.at("changes"), Json(changes));
  EXPECT_EQ(json.at("planMillis"), 8.0);
  EXPECT_THAT(PlanToText(plan, std::chrono::milliseconds(8), 100),
              StartsWith("2 of 9 pending pods can run (no plan can place more than 3)\n"
                         "changes: 4 instances created, 5 destroyed, on 6 GPUs of 7 nodes\n"
                         "planned in 8.0 ms; not proven to be the best plan: a longer search may "
                         "find a better one\n"
                         "\n"
                         "WAITING POD  WHY\n"));
}

TEST(PlanReportTest, HintsAtAuditWhereNosPartitionsNoNode) {
  const auto node = std::make_shared<cluster::Node>();
  node->meta.name = "n";
  node->meta.labels = {{"nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB"},
                       {"nvidia.com/gpu.count", "1"}};
  planning::Plan plan;
  const auto hint = [&] {
    return AuditHint(plan, cluster::ClusterSnapshot::Build({node}, {}, gpu::Catalogue::Builtin()));
  };
  EXPECT_EQ(hint(), "") << "no pod waits";
  plan.pods.resize(2);
  plan.pods[0].placed = true;
  plan.pods[1].reasons = {{"NotPartitioned", "node(s) were not opted in to partitioning", 1},
                          {"Tainted", "node(s) had untolerated taint(s)", 1}};
  EXPECT_THAT(hint(), HasSubstr(" --audit "));
  plan.pods.emplace_back().reasons = {{"InsufficientResource", "Insufficient cpu", 1}};
  EXPECT_EQ(hint(), "") << "partitioning would not help all";
  plan.pods.pop_back();
  node->meta.labels["nos.nebuly.com/gpu-partitioning"] = "mig";
  EXPECT_EQ(hint(), "");
}

}  // namespace
}  // namespace nos::cmd
