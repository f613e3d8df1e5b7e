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

}  // namespace
}  // namespace nos::cmd
