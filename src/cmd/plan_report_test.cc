#include "cmd/plan_report.h"

#include <gtest/gtest.h>

#include <memory>

namespace nos::cmd {
namespace {

TEST(PlanReportTest, NamesAndReasonsCannotSteerTheTerminal) {
  auto pod = std::make_shared<cluster::Pod>();
  pod->meta.ns = "a\nb";
  pod->meta.name = "\x1b[2Jp";
  planning::Plan plan;
  plan.pods.emplace_back();
  plan.pods[0].pod = pod;
  plan.pods[0].reasons.push_back({"NoRoom", "\x1b[31mred", {}});
  plan.pods[0].remedy = "free \x1b]0;title\a node";
  const std::string text = PlanToText(plan, {}, 100);
  EXPECT_EQ(text.find('\x1b'), std::string::npos) << text;
  EXPECT_NE(text.find("  a?b/?[2Jp: free ?]0;title? node\n"), std::string::npos) << text;
}

TEST(PlanReportTest, EveryFigureStandsUnderItsName) {
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
  const std::string text = PlanToText(plan, std::chrono::milliseconds(8), 100);
  EXPECT_NE(text.find("2 of 9 pending pods can run (no plan can place more than 3)"),
            std::string::npos);
  EXPECT_NE(text.find("4 instances created, 5 destroyed, on 6 GPUs of 7 nodes"), std::string::npos);
}

}  // namespace
}  // namespace nos::cmd
